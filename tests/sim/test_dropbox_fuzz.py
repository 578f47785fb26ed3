"""Whatever strangers drop, through the real leader: it never stops, nothing escapes, all ends in a state."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings

from spoold.master.master import Master
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.names import concerns_us, key
from spoold.store.initialise import initialise
from spoold.store.store import open_store
from spoold.system.clock import ManualClock
from spoold.system.filesystem import FileSystem
from spoold.system.host import FakeHost
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.posix import PosixFileSystem
from tests.sim.dropping import GOOD, Drop, boxes
from tests.support.faults import FaultyFileSystem
from tests.support.tokens import tokens

SETTINGS = b"[drop]\ngrace_s = 1\nmax_bytes = 4096\nmax_batch_bytes = 8192\n[disk]\nenough_free_mb = 0\n"
TICK_S = 0.5
# The pieces come one a round; then the grace, and the stillness that a batch needs, must be over.
ROUNDS = 4 + 12
EXAMPLES = 5 * settings().max_examples


class DropBox:
    """A leader of its own over a spool, and strangers who drop into it. after: what each drop consisted of."""

    def __init__(self, fs: FileSystem) -> None:
        self.fs = fs
        self.clock = ManualClock()
        initialise(fs, self.clock, "fuzz", "/spool")
        fs.write("spool.toml", SETTINGS, durable=False)
        self.mount = FaultyFileSystem(fs)
        store = open_store(self.mount, self.clock, "m1", "/spool")
        store.open_tmp()
        self.master = Master(store, FakeHost("m1"))
        self.master.step()
        self.after: dict[str, bytes] = {}
        self.vanished: set[str] = set()

    def play(self, drops: list[Drop]) -> None:
        """Drop it all, and let the leader work: no step may raise."""
        for drop in drops:
            self._begin(drop)
        for number in range(2):
            self.fs.write(f"pending/{GOOD}-{number}.json", _good(number), durable=False)
        for number in range(ROUNDS):
            for drop in drops:
                self._go_on(drop, number)
            self.clock.advance(TICK_S)
            self.master.step()

    def _begin(self, drop: Drop) -> None:
        path = f"pending/{drop.name}"
        if drop.vanishes:
            self.mount.hang(drop.vanishes, path, lambda: self._take_away(drop))
        if drop.kind == "dir":
            self.fs.mkdir(path)
            self.fs.write(f"{path}/inside.json", b"".join(drop.pieces), durable=False)
        elif drop.kind != "file":
            self._make(drop, path)

    def _make(self, drop: Drop, path: str) -> None:
        """A link or a pipe, which the port has no verb for."""
        assert isinstance(self.fs, MemoryFileSystem)
        if drop.kind == "symlink":
            self.fs.make_symlink(path, drop.target)
        else:
            self.fs.make_fifo(path)

    def _go_on(self, drop: Drop, number: int) -> None:
        """The next piece of a file that is still being copied; whoever moved it has stopped the copying."""
        if drop.kind != "file" or number >= len(drop.pieces) or drop.name in self.vanished:
            return
        if number and drop.name not in self.fs.list("pending"):
            return
        self.fs.append(f"pending/{drop.name}", drop.pieces[number])
        self.after[drop.name] = self.after.get(drop.name, b"") + drop.pieces[number]

    def _take_away(self, drop: Drop) -> None:
        """The stranger has thought better of it."""
        if drop.name not in self.fs.list("pending"):
            return
        self.vanished.add(drop.name)
        if drop.kind == "dir":
            self.fs.unlink(f"pending/{drop.name}/inside.json")
            self.fs.rmdir(f"pending/{drop.name}")
        else:
            self.fs.unlink(f"pending/{drop.name}")


def _good(number: int) -> bytes:
    return json.dumps({"id": f"{GOOD}-{number}", "command": ["work"]}).encode()


def check(box: DropBox, drops: list[Drop], files: dict[str, bytes]) -> None:
    """Every drop is in a state, nothing is lost, and the good ones are tasks. files: all that is in the spool."""
    held = {path: data for path, data in files.items() if path.startswith(("waiting/", "ready/", "failed/"))}
    rejected = sorted(box.fs.list("rejected"))
    reasons = [_reason(box, name) for name in rejected if name.endswith(".reason.json") and _beside(name) in rejected]
    for number in range(2):
        assert _good(number) in held.values(), f"a good task was not admitted: {sorted(files)}"
    assert all(f"{name}.reason.json" in rejected for name in rejected if not name.endswith(".reason.json"))
    left = set(box.fs.list("pending"))
    for drop in drops:
        if drop.name in box.vanished:
            continue
        if not concerns_us(drop.name):
            assert drop.name in left, f"{drop.name!r} is somebody's unfinished business, and was touched"
            continue
        assert drop.name not in left, f"{drop.name!r} came to no state"
        found = [name for name, reason in reasons if reason["drop"] == legible(drop.name)]
        if drop.kind == "file":
            _check_kept(drop, box.after[drop.name], held, [files[f"rejected/{name}"] for name in found])
        elif drop.kind == "dir":
            assert [files[f"rejected/{name}/inside.json"] for name in found] == [b"".join(drop.pieces)]
        else:
            assert [box.fs.stat(f"rejected/{name}").kind for name in found] == [
                {"symlink": "symlink", "fifo": "other"}[drop.kind]
            ]


def _check_kept(drop: Drop, content: bytes, held: dict[str, bytes], rejected: list[bytes]) -> None:
    """The content is a task's, or rejected; or each of its tasks is, or was, there already."""
    if content in held.values() or content in rejected:
        return
    lines = content.split(b"\n") if drop.name.lower().endswith(".jsonl") else [content]
    for line in lines:
        if line.strip():
            assert any(_same(line, data) for data in held.values()), f"lost: {line!r} of {drop.name!r}"


def _same(line: bytes, data: bytes) -> bool:
    try:
        return codec.same_content(codec.load(line, ""), codec.load(data, ""))
    except BadFile:
        return False


def _beside(reason: str) -> str:
    return reason.removesuffix(".reason.json")


def _reason(box: DropBox, name: str) -> tuple[str, dict[str, Any]]:
    """A rejected drop's name, and the reason beside it, which people can read."""
    reason = json.loads(box.fs.read(f"rejected/{name}").decode())
    assert reason["file"]
    assert reason["problem"]
    assert reason["mend"]
    assert isinstance(reason["field"], str)
    assert "made spoold itself fail" not in reason["problem"], reason
    return _beside(name), reason


@given(boxes)
@example([Drop("a.json", "symlink", (b"",), target="../spool.json"), Drop(".json", "file", (b"{}",))])
# Taken away between the look at it and the question what it is: that once ended the leader's step.
@example([Drop("a.json", "dir", (b"{}",), vanishes="stat")])
@example([Drop("a.json", "file", (b"x" * 5000,), vanishes="stat")])
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_dropped_ends_in_a_state(drops: list[Drop]) -> None:
    fs = MemoryFileSystem()
    box = DropBox(fs)
    box.play(drops)
    check(box, drops, fs.files())
    ids = [key(token.id) for token in tokens(fs)]
    assert len(ids) == len(set(ids)), f"two tasks with one id: {sorted(ids)}"


class PosixBox(DropBox):
    """The same over a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        super().__init__(PosixFileSystem(str(root)))

    def _make(self, drop: Drop, path: str) -> None:
        if drop.kind == "symlink":
            os.symlink(drop.target, self.root / path)
        else:
            os.mkfifo(self.root / path)

    def files(self) -> dict[str, bytes]:
        """All that is in the spool; links are not followed."""
        found = {}
        for directory, _, names in os.walk(self.root):
            for name in names:
                path = Path(directory, name)
                if path.is_file() and not path.is_symlink():
                    found[str(path.relative_to(self.root))] = path.read_bytes()
        return found


@given(boxes)
@settings(max_examples=EXAMPLES // 10, suppress_health_check=[HealthCheck.too_slow])
def test_on_a_disk_nothing_leaves_the_spool(drops: list[Drop]) -> None:
    with tempfile.TemporaryDirectory() as here:
        outside = Path(here, "outside")
        outside.mkdir()
        canary = outside / "canary"
        canary.write_bytes(b'{"id": "canary", "command": ["work"]}')
        before = (canary.read_bytes(), canary.stat().st_mtime_ns, canary.stat().st_nlink)
        box = PosixBox(Path(here, "spool"))
        box.play(drops)
        files = box.files()
        check(box, drops, files)
        assert sorted(os.listdir(here)) == ["outside", "spool"]
        assert os.listdir(outside) == ["canary"]
        assert (canary.read_bytes(), canary.stat().st_mtime_ns, canary.stat().st_nlink) == before
        assert canary.read_bytes() not in files.values(), "a link was followed"
