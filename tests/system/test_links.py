"""No call through the port follows a link below the root, wherever it stands and whenever it was put there.

Method: a directory outside has all that a call could look for, and a link to it stands in each place of the path in
turn. The calls are taken from the port itself, so that a new verb is tried here or fails here. What lies outside is
compared by name, content, mode and times before and after.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from spoold.doctor.trial_share import Share
from spoold.system.filesystem import FileSystem, ReadsTogether
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.mounts import Mount
from spoold.system.posix import PosixFileSystem
from tests.support.mounted import lie_on
from tests.support.picture import picture

# What a parameter gets that is no path. One that is called otherwise is a new kind, and has to be thought about.
ARGUMENTS = {
    "names": ("file", "empty", "new"),
    "data": b"theirs",
    "durable": True,
    "limit": None,
    "offset": 0,
    "kind": "flock",
}
PATHS = ("path", "src", "dst")
DEEP = "logs/branch/leaf"
# Which component is the link. For a verb whose last name is a file, a link there leads to a file outside.
PLACES = (0, 1, 2)
SECRET = b"what lies outside is nobody's business"


def verbs(kind: type) -> list[str]:
    """The calls that a file system offers: all public methods."""
    return sorted(name for name, found in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_"))


def tries(kind: type) -> list[tuple[str, str]]:
    """Each verb with each of its paths."""
    found = []
    for verb in verbs(kind):
        parameters = [name for name in inspect.signature(getattr(kind, verb)).parameters if name != "self"]
        unknown = [name for name in parameters if name not in PATHS and name not in ARGUMENTS]
        assert not unknown, f"say here what {verb}() is to be given as {unknown}, and whether that is a path"
        found += [(verb, name) for name in parameters if name in PATHS]
    return found


def test_the_verbs_of_the_port_are_those_that_are_tried() -> None:
    tried = {verb for verb, _ in tries(FileSystem)}
    assert set(verbs(FileSystem)) - tried == {"flush", "usage"}, "these have no path: they ask about the root"
    assert set(verbs(PosixFileSystem)) == {*verbs(FileSystem), *verbs(ReadsTogether)}
    assert {verb for verb, _ in tries(Share)} > tried


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A place that a link leads to: what a call could look for is there, in every depth."""
    made = tmp_path / "outside"
    (made / "branch" / "leaf").mkdir(parents=True)
    (made / "leaf").mkdir()
    (made / "mine").mkdir()
    for folder in (made, made / "branch", made / "mine"):
        (folder / "file").write_bytes(SECRET)
    (made / "empty").mkdir()
    (made / "branch" / "empty").mkdir()
    for below, _, _ in os.walk(made):
        os.utime(below, (1, 1))
    return made


def lay(root: Path, outside: Path, place: int, last: str) -> str:
    """A spool in which component number `place` of logs/branch/`last` is a link to its like outside; the path."""
    parts = ["logs", "branch", last]
    targets = [outside, outside / "branch", outside / "branch" / last]
    (root / Path(*parts[:place])).mkdir(parents=True, exist_ok=True)
    (root / Path(*parts[: place + 1])).symlink_to(targets[place])
    return "/".join(parts)


def call(fs: object, verb: str, through: str, path: str) -> object:
    """One call with this path in the place of the parameter `through`, and harmless things in the others."""
    given = {}
    for name in inspect.signature(getattr(fs, verb)).parameters:
        given[name] = path if name == through else ("mine" if name in PATHS else ARGUMENTS[name])
    result = getattr(fs, verb)(**given)
    if isinstance(result, AbstractContextManager):
        with result as inside:
            return inside
    return result


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("last", ["file", "empty", "new"])
@pytest.mark.parametrize(
    ("kind", "verb", "through"),
    [
        *(("posix", *one) for one in tries(PosixFileSystem)),
        *(("nfs", *one) for one in tries(PosixFileSystem)),
        *(("doctor", *one) for one in tries(Share)),
    ],
)
def test_nothing_outside_is_read_made_changed_or_removed(
    tmp_path: Path, outside: Path, kind: str, verb: str, through: str, last: str, place: int
) -> None:
    root = tmp_path / "spool"
    root.mkdir()
    path = lay(root, outside, place, last)
    (root / "mine").write_bytes(b"mine")
    fs = Share(str(root)) if kind == "doctor" else PosixFileSystem(root)
    if kind == "nfs":
        lie_on(fs, Mount(str(root), "nfs", "server:/share", ("vers=3",)))
    before = picture(outside)
    found: object = None
    with suppress(OSError):
        found = call(fs, verb, through, path)
    assert picture(outside) == before
    if place < 2:
        assert not found, "nothing below a link is seen"
    elif verb in ("read", "list"):
        assert not found


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("verb", "through"), tries(FileSystem))
def test_memory_follows_none_either(verb: str, through: str, place: int) -> None:
    fs = MemoryFileSystem()
    fs.write("mine", b"mine", durable=True)
    parts = DEEP.split("/")
    fs.make_dirs(*("/".join(parts[:place]),) if place else ())
    fs.make_symlink("/".join(parts[: place + 1]))
    with pytest.raises(NotADirectoryError):
        call(fs, verb, through, DEEP)


def test_the_root_itself_may_be_reached_through_links(tmp_path: Path) -> None:
    (tmp_path / "real" / "logs").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    fs = PosixFileSystem(tmp_path / "link")
    fs.write("logs/a", b"1", durable=True)
    fs.sync("")
    fs.sync("logs")
    fs.flush()
    assert (fs.list(""), fs.list("logs"), fs.read("logs/a")) == (["logs"], ["a"], b"1")
    assert (tmp_path / "real" / "logs" / "a").read_bytes() == b"1"


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """Somebody puts a link in the place of logs/ and of logs/branch/, and takes it away again, all the time."""
    over = threading.Event()
    turns = 0

    def swap() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            for place, target in ((root / "logs", outside), (root / "logs" / "branch", outside / "branch")):
                aside = root / f"aside{turns}"
                place.rename(aside)
                place.symlink_to(target)
                place.unlink()
                aside.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_link_that_comes_and_goes_is_never_followed(tmp_path: Path, outside: Path) -> None:
    root = tmp_path / "spool"
    (root / "logs" / "branch").mkdir(parents=True)
    fs, before = PosixFileSystem(root), picture(outside)
    outcomes: Counter[str] = Counter()
    give_up = time.monotonic() + 60
    with swapping(root, outside):
        # Until both were met, the directory and the link: else nothing was tried.
        while min(outcomes["done"], outcomes["NotADirectoryError"]) < 100 and time.monotonic() < give_up:
            number = outcomes.total()
            for path in (f"logs/mine{number % 7}", f"logs/branch/mine{number % 7}"):
                try:
                    fs.write(path, b"mine", durable=False)
                    fs.append(path, b"more")
                    assert fs.read(path) in (b"minemore", b"mine")
                    fs.rename(path, f"{path}.new")
                    fs.unlink(f"{path}.new")
                    outcomes["done"] += 1
                except OSError as error:
                    outcomes[type(error).__name__] += 1
                for name in fs.list("") and _names(fs, path.rpartition("/")[0]):
                    assert name != "file", "a name from outside was listed"
    assert min(outcomes["done"], outcomes["NotADirectoryError"]) > 0, outcomes
    assert picture(outside) == before


def _names(fs: FileSystem, directory: str) -> list[str]:
    try:
        return fs.list(directory)
    except OSError:
        return []


@pytest.mark.parametrize("verb", ["write", "append"])
def test_a_hard_link_to_a_file_elsewhere_is_not_written(tmp_path: Path, outside: Path, verb: str) -> None:
    root = tmp_path / "spool"
    (root / "logs").mkdir(parents=True)
    os.link(outside / "file", root / "logs" / "a.1.w-1.log")
    fs = PosixFileSystem(root)
    with pytest.raises(OSError, match="hard link"):
        call(fs, verb, "path", "logs/a.1.w-1.log")
    assert (outside / "file").read_bytes() == SECRET
    if verb == "write":  # as after any failed write, the name is free again
        fs.write("logs/a.1.w-1.log", b"mine", durable=True)
        assert fs.read("logs/a.1.w-1.log") == b"mine"


def test_an_error_names_the_whole_path(tmp_path: Path) -> None:
    (tmp_path / "claimed").mkdir()
    fs = PosixFileSystem(tmp_path)
    with pytest.raises(OSError, match="claimed/w-1/a") as caught:
        fs.rename("claimed/w-1/a", "claimed/w-2/b")
    assert (caught.value.filename, caught.value.filename2) == (
        str(tmp_path / "claimed/w-1/a"),
        str(tmp_path / "claimed/w-2/b"),
    )
