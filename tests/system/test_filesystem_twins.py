"""Random sequences of verbs, on a real directory and in memory: the same outcome, errno or content, at each
step.

The contract suite shows the cases somebody thought of; this one looks for those nobody did.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from spoold.system.filesystem import FileSystem
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.posix import PosixFileSystem

Step = Callable[[FileSystem], object]

# Few names and little depth, so that steps meet: a path is now a file, now a directory, now gone.
START = ["a", "b", "a/a", "a/b"]
paths = st.sampled_from(["", "a", "b", "a/a", "a/b", "b/a", "b/b", "a/a/a", "a/a/b", "a/b/a"])
data = st.binary(max_size=3)


def kind_and_size(fs: FileSystem, path: str) -> object:
    found = fs.stat(path)
    return found.kind if found.kind == "dir" else (found.kind, found.size)


steps: st.SearchStrategy[tuple[str, Step]] = st.one_of(
    st.builds(lambda p: (f"list {p}", lambda fs: sorted(fs.list(p))), paths),
    st.builds(lambda p: (f"read {p}", lambda fs: fs.read(p)), paths),
    st.builds(lambda p, d: (f"write {p}", lambda fs: fs.write(p, d, durable=False)), paths, data),
    st.builds(lambda p, d: (f"append {p}", lambda fs: fs.append(p, d)), paths, data),
    st.builds(lambda p, q: (f"rename {p} {q}", lambda fs: fs.rename(p, q)), paths, paths),
    st.builds(lambda p: (f"unlink {p}", lambda fs: fs.unlink(p)), paths),
    st.builds(lambda p: (f"mkdir {p}", lambda fs: fs.mkdir(p)), paths),
    st.builds(lambda p: (f"rmdir {p}", lambda fs: fs.rmdir(p)), paths),
    st.builds(lambda p: (f"stat {p}", lambda fs: kind_and_size(fs, p)), paths),
    st.builds(lambda p: (f"sync {p}", lambda fs: fs.sync(p)), paths),
)


def outcome(fs: FileSystem, step: Step) -> object:
    try:
        return step(fs)
    except OSError as error:
        return type(error), error.errno


def tree(fs: FileSystem, path: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name in sorted(fs.list(path)):
        inside = f"{path}/{name}" if path else name
        if fs.stat(inside).kind == "dir":
            found[inside] = tree(fs, inside)
        else:
            found[inside] = fs.read(inside)
    return found


@settings(deadline=None, max_examples=300)
@given(st.lists(steps, min_size=10, max_size=60), st.lists(steps, max_size=10))
def test_memory_behaves_as_a_real_directory_does(
    sequence: list[tuple[str, Step]], later: list[tuple[str, Step]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        real, memory = PosixFileSystem(root), MemoryFileSystem()
        for path in START:
            real.mkdir(path)
            memory.mkdir(path)
        for name, step in sequence:
            assert outcome(memory, step) == outcome(real, step), name
        assert tree(memory) == tree(real)

        # Snapshots and the tree they came from go separate ways, whichever side changes first.
        changed, kept = memory.snapshot(), memory.snapshot()
        before = tree(memory)
        for _, step in later:
            outcome(changed, step)
        assert tree(memory) == before
        for name, step in later:
            assert outcome(memory, step) == outcome(real, step), name
        assert tree(changed) == tree(memory) == tree(real)
        assert tree(kept) == before
        used = sum(len(content) for content in memory.files().values())
        assert memory.usage().total_bytes - memory.usage().free_bytes == used
