"""Every fault that the mount can tell, one at a time: what the caller is told, and what is true."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from spoold.system.errnos import ERESTARTSYS
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.sim.mount import BUSY, CHANGES, LOST, NETWORK, POSITIVE_S, Mount
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import AIMED, CALLS, FLAVOURS, Weather


class Here:
    """A machine, and how often it died or stood still."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.name = "here"
        self.cut_until = self.away_until = 0.0
        self.fallen = 0
        self.frozen_s = 0.0

    def freeze(self, seconds: float) -> None:
        self.frozen_s += seconds

    def fall(self) -> None:
        self.fallen += 1
        assert self._scheduler.current is not None
        self._scheduler.kill(self._scheduler.current)


class World:
    """A server with a few files, and one mount on which exactly one kind of fault always comes."""

    def __init__(self, kind: str, flavour: str = "nfs") -> None:
        self.scheduler = Scheduler()
        self.server = Server(Wall(), rolls_back=False)
        self.server.fs.make_dirs("a", "b", "tmp", "empty")
        self.server.fs.write("a/one", b"first", durable=True)
        self.weather = Weather(seed=1)
        self.weather.flavour = flavour
        self.weather.calls = {kind: 1.0}
        self.weather.aim = None
        self.machine = Here(self.scheduler)
        self.mount = Mount(self.scheduler, self.server, self.weather, self.machine)

    @property
    def fs(self) -> MemoryFileSystem:
        """The truth."""
        return self.server.fs

    def play(self, body: Callable[[], object], seconds: float = 100.0) -> None:
        """Let a process do this; what it fails with is raised here."""

        def act() -> None:
            body()

        self.scheduler.spawn("here", act)
        self.scheduler.run(seconds, lambda: False)

    def refused(self, body: Callable[[], object]) -> int:
        """The errno that the caller is told, at once: what comes later has not yet come."""
        codes: list[int] = []

        def act() -> None:
            try:
                body()
            except OSError as error:
                codes.append(error.errno or 0)

        self.scheduler.spawn("here", act)
        self.scheduler.run(100.0, lambda: bool(codes))
        assert len(codes) == 1
        return codes[0]


class Wall:
    """A server's date."""

    def wall(self) -> float:
        return 0.0


def rename(world: World) -> Callable[[], None]:
    """The change that most tests make."""
    return lambda: world.mount.rename("a/one", "b/one")


@pytest.mark.parametrize("flavour", ["nfs", "smb"])
@pytest.mark.parametrize("verb", ["rename", "mkdir", "unlink", "rmdir", "write", "append"])
def test_lost(flavour: str, verb: str) -> None:
    world = World("lost", flavour)
    calls: dict[str, tuple[Callable[[], object], str, bool]] = {
        "rename": (rename(world), "b/one", True),
        "mkdir": (lambda: world.mount.mkdir("new"), "new", True),
        "unlink": (lambda: world.mount.unlink("a/one"), "a/one", False),
        "rmdir": (lambda: world.mount.rmdir("empty"), "empty", False),
        "write": (lambda: world.mount.write("tmp/x", b"x", durable=True), "tmp/x", True),
        "append": (lambda: world.mount.append("tmp/x", b"x"), "tmp/x", True),
    }
    act, path, there = calls[verb]
    assert world.refused(act) in LOST[flavour][verb]
    assert world.server.exists(path) is there


def test_late() -> None:
    world = World("late")
    assert world.refused(rename(world)) == errno.EIO
    assert sorted(world.fs.files()) == ["a/one"]
    world.scheduler.run(200.0, lambda: False)
    assert sorted(world.fs.files()) == ["b/one"]


def test_orphan() -> None:
    world = World("orphan")
    process = world.scheduler.spawn("here", rename(world))
    world.machine.cut_until = 5.0
    world.scheduler.run(2.0, lambda: False)
    world.scheduler.kill(process)
    world.scheduler.run(2.6, lambda: False)
    assert sorted(world.fs.files()) == ["a/one"]
    world.scheduler.run(200.0, lambda: False)
    assert sorted(world.fs.files()) == ["b/one"]


def test_a_caller_that_is_killed_has_changed_nothing() -> None:
    world = World("no such fault")
    process = world.scheduler.spawn("here", rename(world))
    world.machine.cut_until = 5.0
    world.scheduler.run(2.0, lambda: False)
    world.scheduler.kill(process)
    world.scheduler.run(200.0, lambda: False)
    assert sorted(world.fs.files()) == ["a/one"]


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("busy", BUSY),
        ("eio", (*NETWORK, ERESTARTSYS)),
        ("estale", (errno.ESTALE,)),
        ("eintr", (errno.EINTR,)),
    ],
)
@pytest.mark.parametrize("verb", CHANGES)
def test_refused_changes_change_nothing(kind: str, codes: tuple[int, ...], verb: str) -> None:
    world = World(kind, "smb")
    args = {"rename": ("a/one", "b/one"), "unlink": ("a/one",), "mkdir": ("new",), "rmdir": ("empty",)}[verb]
    before = (world.fs.files(), world.fs.list(""))
    assert world.refused(lambda: getattr(world.mount, verb)(*args)) in codes
    assert (world.fs.files(), world.fs.list("")) == before


@pytest.mark.parametrize(("kind", "code"), [("full", errno.ENOSPC), ("quota", errno.EDQUOT)])
def test_no_room(kind: str, code: int) -> None:
    world = World(kind)
    halves = set()
    for number in range(20):
        path = f"tmp/{number}"
        assert world.refused(lambda path=path: world.mount.write(path, b"whole", durable=True)) == code  # type: ignore[misc]
        halves.add(world.fs.files().get(path))
    assert halves == {None, b"wh"}, "now and then half a file is left"


def test_a_full_server_takes_no_file_no_line_and_no_directory() -> None:
    world = World("no such fault")
    world.server.full = True
    assert world.refused(lambda: world.mount.write("tmp/x", b"x", durable=True)) == errno.ENOSPC
    assert world.refused(lambda: world.mount.append("tmp/x", b"x")) == errno.ENOSPC
    assert world.refused(lambda: world.mount.mkdir("new")) == errno.ENOSPC


def test_negative() -> None:
    world = World("negative")
    assert world.refused(lambda: world.mount.read("b/two")) == errno.ENOENT
    world.fs.write("b/two", b"", durable=True)
    assert world.refused(lambda: world.mount.rename("b/two", "a/two")) == errno.ENOENT
    world.play(lambda: world.mount.list("b"))
    world.play(lambda: world.mount.rename("b/two", "a/two"))
    assert "a/two" in world.fs.files()


def test_positive() -> None:
    world = World("positive")
    seen: list[bytes] = []
    world.play(lambda: seen.append(world.mount.read("a/one")), 1.0)
    world.fs.rename("a/one", "b/one")
    world.play(lambda: seen.append(world.mount.read("a/one")), 2.0)
    assert seen == [b"first", b"first"]
    assert world.refused(lambda: world.mount.rename("a/one", "b/mine")) == errno.ENOENT
    world.scheduler.now += POSITIVE_S
    assert world.refused(lambda: world.mount.read("a/one")) == errno.ENOENT


def test_attributes() -> None:
    world = World("attributes")
    sizes: list[int] = []
    world.play(lambda: sizes.append(world.mount.stat("a/one").size), 1.0)
    world.fs.append("a/one", b" and more")
    world.play(lambda: sizes.append(world.mount.stat("a/one").size), 2.0)
    assert sizes == [5, 5]


def test_scan() -> None:
    """Of two names that change places while a directory is read, one may be seen twice, or not at all."""
    world = World("scan", "local")
    seen: set[tuple[str, ...]] = set()

    def rename_to_and_fro() -> None:
        for turn in range(400):
            world.fs.rename(*(("a/one", "a/two") if turn % 2 == 0 else ("a/two", "a/one")))
            world.scheduler.sleep(0.003)

    def look() -> None:
        for _ in range(200):
            seen.add(tuple(sorted(world.mount.list("a"))))

    world.scheduler.spawn("other", rename_to_and_fro)
    world.play(look)
    assert seen == {(), ("one",), ("two",), ("one", "two")}


def test_torn() -> None:
    world = World("torn")
    assert world.refused(lambda: world.mount.write("tmp/x", b"whole", durable=True)) == errno.EIO
    assert world.machine.fallen == 1
    assert world.fs.files()["tmp/x"] == b"wh"


def ends(world: World, calls: int) -> list[float]:
    """How long (s) each of some calls took."""
    took: list[float] = []

    def look() -> None:
        for _ in range(calls):
            began = world.scheduler.now
            world.mount.list("a")
            took.append(world.scheduler.now - began)

    world.play(look)
    assert len(took) == calls
    return took


@pytest.mark.parametrize(("kind", "longest_s"), [("no such fault", 0.03), ("slow", 0.53), ("stall", 8.03)])
def test_calls_that_take_long(kind: str, longest_s: float) -> None:
    took = max(ends(World(kind), 10))
    assert longest_s / 4 < took < longest_s


def test_a_hard_mount_blocks_until_the_network_is_back() -> None:
    world = World("no such fault")
    world.machine.cut_until = 7.0
    assert ends(world, 1)[0] >= 7.0


def test_down() -> None:
    world = World("down", "smb")
    world.machine.cut_until = 50.0
    assert world.refused(rename(world)) == errno.EHOSTDOWN
    assert sorted(world.fs.files()) == ["a/one"]


def test_an_unmounted_share_is_an_empty_folder() -> None:
    world = World("no such fault")
    world.machine.away_until = 50.0
    seen: list[list[str]] = []
    world.play(lambda: seen.append(world.mount.list("")))
    assert seen == [[]]
    assert world.refused(rename(world)) == errno.ENOENT
    assert world.refused(lambda: world.mount.list("a")) == errno.ENOENT
    assert world.refused(lambda: world.mount.write("tmp/new", b"", durable=False)) == errno.ENOENT
    assert sorted(world.fs.files()) == ["a/one"]


def test_away() -> None:
    world = World("away")
    assert world.refused(rename(world)) == errno.ENOENT
    assert 0.0 < world.machine.away_until < 1.0
    assert sorted(world.fs.files()) == ["a/one"]


@pytest.mark.parametrize(("kind", "came"), [("nap", (True, 0)), ("fall", (False, 1))])
def test_nap_and_fall_come_at_the_change_that_the_seed_aims_at(
    kind: str, came: tuple[bool, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AIMED, kind, 1.0)
    world = World("no such fault")
    world.weather.calls = {kind: 0.0}
    world.weather.aim = ("a", "b")
    world.play(lambda: world.mount.rename("a/one", "tmp/one"), 1.0)
    assert (world.machine.frozen_s, world.machine.fallen) == (0.0, 0)
    world.fs.rename("tmp/one", "a/one")
    world.play(rename(world), 2.0)
    assert (world.machine.frozen_s > 0, world.machine.fallen) == came


def test_an_outage_takes_what_was_not_durable_just_after_the_change_that_the_seed_aims_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(AIMED, "outage", 1.0)
    world = World("no such fault")
    world.weather.calls = {"outage": 0.0}
    world.weather.aim = ("a", "b")
    world.server.forgets = True
    world.play(lambda: world.mount.rename("a/one", "tmp/one"), 1.0)
    assert world.server.cuts == 0
    world.fs.rename("tmp/one", "a/one")
    world.play(rename(world), 2.0)
    assert world.server.cuts == 1


def test_a_rename_that_the_server_forgot_is_refused_by_the_client_that_made_it() -> None:
    world = World("alias", "smb")
    world.server.forgets = True
    before = world.fs.snapshot()
    world.play(lambda: world.mount.rename("a/one", "b/one"))
    world.server._history = [before]
    world.server.cut_power(lambda: 0.0)
    assert world.refused(lambda: world.mount.rename("a/one", "b/one")) == errno.EEXIST
    assert (world.fs.list("a"), world.fs.list("b")) == (["one"], [])
    world.weather.fair = True
    world.play(lambda: world.mount.rename("a/one", "b/one"))
    assert (world.fs.list("a"), world.fs.list("b")) == ([], ["one"])


def test_a_lock_that_is_not_to_be_had_and_is_free_afterwards() -> None:
    world = World("nolock")

    def hold() -> None:
        with world.mount.held(1.0):
            raise AssertionError("held")

    assert world.refused(hold) == errno.ENOLCK
    assert world.server.holder is None


def test_the_lock_has_one_holder_and_goes_with_its_process() -> None:
    world, seen = World("none"), []

    def hold() -> None:
        with world.mount.held(1.0):
            seen.append("first")
            world.scheduler.sleep(5.0)

    def want() -> None:
        with world.mount.held(10.0):
            seen.append("second")

    first = world.scheduler.spawn("first", hold)
    world.scheduler.run(1.0, lambda: False)
    assert world.refused(want_at_once(world)) == errno.EAGAIN
    world.scheduler.spawn("second", want)
    world.scheduler.run(3.0, lambda: False)
    assert seen == ["first"]
    world.scheduler.kill(first)
    world.scheduler.run(4.0, lambda: False)
    assert seen == ["first", "second"]


def want_at_once(world: World) -> Callable[[], object]:
    """Asks for the lock once."""

    def want() -> None:
        with world.mount.held(0.0):
            raise AssertionError("two holders")

    return want


def test_no_fault_is_without_a_test_here() -> None:
    told = {
        "slow", "stall", "down", "lost", "late", "orphan", "busy", "eio", "estale", "eintr", "full", "quota",
        "negative", "positive", "attributes", "scan", "torn", "nap", "fall", "nolock",
        "away", "outage", "alias",
    }  # fmt: skip
    assert set().union(*(CALLS[flavour] for flavour in FLAVOURS)) == told
