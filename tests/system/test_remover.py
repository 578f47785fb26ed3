"""The remover against trees that others made: a seeded generator, and the plain cases that were met."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from spoold.system import mounts, same_mount
from spoold.system.remover import Left, quoted, remove
from spoold.system.walking import disk_use, walk
from tests.support.trees import deep

DESCRIPTORS_MAX = 8  # above those open before
ENTRIES_MAX, DEEP = 150, 1200
NAMES: tuple[bytes, ...] = (
    b"a",
    b"b.c",
    b"with blank",
    b"new\nline",
    b"\xff\xfe",
    b"-rf",
    b"[x]*?",
    b"e" * 255,
    b".git",
)


class Grower:
    """Makes a tree from a seed, below a directory, with a canary beside it that links and mounts lead to."""

    def __init__(self, seed: int, top: Path, canary: Path, *, mounting: bool) -> None:
        self._chance, self._top, self._canary, self._mounting = random.Random(seed), top, canary, mounting
        self._room = ENTRIES_MAX

    def grow(self) -> None:
        self._top.mkdir()
        if self._chance.random() < 0.1:
            deep(self._top / "deep", DEEP)
        self._fill(os.open(self._top, os.O_RDONLY | os.O_DIRECTORY), self._chance.choice([1, 3, 30, 60]))

    def _fill(self, at: int, depth: int) -> None:
        """Fill a directory, which is closed then: its modes are taken away last."""
        for number in range(self._chance.choice([0, 1, 3, 12]) or depth > 3):
            self._room -= 1
            if self._room < 0:
                break
            name = os.fsdecode(self._chance.choice(NAMES)[:200] + str(number).encode())
            with suppress(OSError):
                self._entry(name, at, depth)
        if self._chance.random() < 0.15:
            os.fchmod(at, self._chance.choice([0, 0o500, 0o555, 0o300]))
        os.close(at)

    def _entry(self, name: str, at: int, depth: int) -> None:
        where = f"/proc/self/fd/{at}/{name}"
        kind = self._chance.choice(["file", "link", "dir", "dir", "pipe", "socket", "hard", "mount", "fixed", "deep"])
        if kind in ("file", "fixed"):
            Path(where).write_bytes(bytes(self._chance.randrange(9000)))
            os.chmod(where, self._chance.choice([0, 0o400, 0o644]))
            if kind == "fixed" and self._mounting:
                subprocess.run(["chattr", "+i", os.path.realpath(where)], check=False, stderr=subprocess.DEVNULL)
        elif kind == "link":
            os.symlink(
                self._chance.choice([str(self._canary), "..", "/", "nowhere", "/proc/self/root"]), name, dir_fd=at
            )
        elif kind == "pipe":
            os.mkfifo(name, dir_fd=at)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(where)
        elif kind == "hard":
            os.link(self._canary / "kept", name, dst_dir_fd=at)
        elif kind == "mount" and self._mounting:
            os.mkdir(name, dir_fd=at)
            source = ["--bind", str(self._canary)] if self._chance.random() < 0.7 else ["-t", "tmpfs", "none"]
            subprocess.run(["mount", *source, os.path.realpath(where)], check=False, stderr=subprocess.DEVNULL)
        elif depth > 0:
            os.mkdir(name, dir_fd=at)
            self._fill(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at), depth - 1)


def picture(top: Path) -> dict[str, tuple[int, ...]]:
    """What is below a directory, with what a change would change."""
    found: dict[str, tuple[int, ...]] = {}
    for path in [top, *top.rglob("*")]:
        status = path.lstat()
        found[str(path)] = (status.st_ino, status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns)
    return found


def canary(beside: Path) -> Path:
    made = beside / "canary"
    (made / "below").mkdir(parents=True)
    (made / "kept").write_text("kept")
    (made / "below" / "closed").mkdir(mode=0o500)
    return made


class Watched:
    """Counts the descriptors and the frames of a removal, at each entry."""

    def __init__(self) -> None:
        self.descriptors = self.frames = 0

    def __call__(self) -> bool:
        self.descriptors = max(self.descriptors, len(os.listdir("/proc/self/fd")))
        frame, depth = sys._getframe(), 0
        while frame.f_back is not None:
            frame, depth = frame.f_back, depth + 1
        self.frames = max(self.frames, depth)
        return True


def play(seed: int, beside: Path, *, mounting: bool, act: Callable[[Path], list[Left]] | None = None) -> list[str]:
    """Grow a tree and remove it; return the laws that were broken."""
    bird, top = canary(beside), beside / "top"
    grower = Grower(seed, top, bird, mounting=mounting)
    grower.grow()
    before, open_before, watched = picture(bird), len(os.listdir("/proc/self/fd")), Watched()
    broken = []
    try:
        left = act(top) if act else remove(str(top), watched)
    except Exception as error:  # noqa: BLE001 - any is a breach
        return [f"it raised {error!r}"]
    if picture(bird) != before:
        broken.append("something outside changed")
    if watched.descriptors > open_before + DESCRIPTORS_MAX or len(os.listdir("/proc/self/fd")) != open_before:
        broken.append(f"{watched.descriptors} descriptors were open, {open_before} before")
    if watched.frames > 200:
        broken.append(f"the stack had {watched.frames} frames")
    if os.path.lexists(top) != bool(left):
        broken.append(f"{'something' if os.path.lexists(top) else 'nothing'} stays, and {left} is named")
    if len(left) < 16:
        named = [one.path for one in left]
        for folder in walk(str(top)):
            if (
                not folder.folders
                and not folder.files
                and not any(os.path.join(top, folder.path) in n for n in named)
            ):
                broken.append(f"{folder.path} stays, and is not named")
            inside = [os.path.join(top, folder.path, name) for name in folder.files]
            broken += [f"{path} stays, and is not named" for path in inside if not any(path in n for n in named)]
    mounted = {mount.point for mount in mounts.parse(Path(mounts.MOUNTINFO).read_bytes())}
    if stray := {one.path for one in left if "umount" in one.why} - mounted:
        broken.append(f"no mount is at {stray}")
    return broken


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if os.geteuid() == 0:
        subprocess.run(["chattr", "-R", "-f", "-i", str(tmp_path)], check=False, stderr=subprocess.DEVNULL)
    remove(str(tmp_path))


@pytest.mark.parametrize("seed", range(40))
def test_no_tree_breaks_a_law(seed: int, beside: Path) -> None:
    """N2, N4, N10 and their neighbours: nothing outside changes, all is gone or named, nothing is raised."""
    assert play(seed, beside, mounting=False) == []


@pytest.mark.parametrize("seed", range(40, 52))
def test_no_tree_with_mounts_breaks_a_law(seed: int, beside: Path) -> None:
    """N4: what is mounted there is not touched, and the mount is named."""
    own = ["unshare", "--mount", "--propagation", "private", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine gives no mount namespace")
    script = f"from tests.system.test_remover import mounted; mounted({seed}, {str(beside)!r})"
    done = subprocess.run([*own, sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="backslashreplace")


def mounted(seed: int, beside: str) -> None:
    """Play a seed in a mount namespace of its own; a process calls it."""
    broken = play(seed, Path(beside), mounting=True)
    assert not broken, broken


def test_the_fallback_without_openat2_keeps_the_same_laws(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_mount, "_SYSCALL", None)
    assert play(7, beside, mounting=False) == []


def test_mount_ids_are_told_apart_by_each_means(monkeypatch: pytest.MonkeyPatch) -> None:
    proc, root = os.open("/proc", same_mount.PLACE), os.open("/", same_mount.PLACE)
    try:
        by_statx = [same_mount.mount_id(descriptor) for descriptor in (proc, root, root)]
        monkeypatch.setattr(same_mount, "_STATX", None)
        by_proc = [same_mount.mount_id(descriptor) for descriptor in (proc, root, root)]
        assert by_statx[0] != by_statx[1] == by_statx[2]
        assert by_proc[0] != by_proc[1] == by_proc[2]
    finally:
        os.close(proc)
        os.close(root)


def test_any_depth_is_removed_with_a_bounded_stack(beside: Path) -> None:
    """N2: `mkdir -p $(printf "d/%.0s" $(seq 1200))` ended the worker by RecursionError."""
    deep(beside / "top", 1200)
    watched = Watched()
    before = len(os.listdir("/proc/self/fd"))
    assert sum(1 for _ in walk(str(beside / "top"))) == 1201
    assert remove(str(beside / "top"), watched) == []
    assert not (beside / "top").exists()
    assert watched.descriptors <= before + DESCRIPTORS_MAX


def test_more_directories_than_are_moved_up_at_once_are_removed(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spoold.system.remover._PENDING_MAX", 3)
    for first in range(6):
        for second in range(6):
            (beside / f"top/x/{first}/y/{second}/z").mkdir(parents=True)
    assert remove(str(beside / "top")) == []
    assert not (beside / "top").exists()


def test_a_closed_folder_of_its_owner_is_opened(beside: Path) -> None:
    """N10: Go's module cache is read-only; a worker that is not root left it for ever."""
    script = (
        "import os; from spoold.system.remover import remove\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"top = {str(beside / 'own/top')!r}\n"
        "os.makedirs(top + '/mod/pkg/in')\n"
        "open(top + '/mod/pkg/in/go.mod', 'w').close()\n"
        "for part in ('/mod/pkg/in', '/mod/pkg', '/mod', ''): os.chmod(top + part, 0o555)\n"
        "left = remove(top)\n"
        "assert not left and not os.path.lexists(top), left\n"
    )
    (beside / "own").mkdir()
    (beside / "own").chmod(0o777)
    for parent in (beside, *beside.parents):
        if parent.stat().st_uid == os.getuid() and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_stops_when_it_is_asked_to_and_goes_on_later(beside: Path) -> None:
    for number in range(20):
        (beside / f"top/{number}").mkdir(parents=True)
        (beside / f"top/{number}/x").write_bytes(b"")
    asked = iter([True] * 7)
    left = remove(str(beside / "top"), lambda: next(asked, False))
    assert [one.why for one in left] == ["it is not removed yet"]
    assert remove(str(beside / "top")) == []
    assert not (beside / "top").exists()


def test_a_link_a_file_and_nothing_are_removed_as_they_are(beside: Path) -> None:
    (beside / "kept").mkdir()
    (beside / "link").symlink_to("kept")
    (beside / "file").write_bytes(b"")
    for name in ("link", "file", "nothing", "no/such/way"):
        assert remove(str(beside / name)) == []
    assert os.listdir(beside) == ["kept"]


def test_what_is_in_use_is_named_with_its_size(beside: Path) -> None:
    """What no user may remove is there in every container: a mount point."""
    left = remove("/proc")
    assert [one.path for one in left] == ["/proc"]
    assert left[0].why.endswith("umount /proc")


def test_a_path_is_quoted_for_a_shell_and_a_terminal() -> None:
    for path in ("/tmp/a b", "/tmp/new\nline\x1b[31m", "/tmp/" + os.fsdecode(b"\xff'\\")):
        assert quoted(path).isprintable()
        said = subprocess.run(["bash", "-c", f"printf %s {quoted(path)}"], capture_output=True, check=True).stdout
        assert os.fsdecode(said) == path


def test_use_of_the_disk_counts_a_file_with_two_names_once(beside: Path) -> None:
    (beside / "top").mkdir()
    (beside / "top/a").write_bytes(b"x" * 100_000)
    above = os.open(beside, same_mount.PLACE)
    try:
        once, whole = disk_use("top", above)
        (beside / "top/b").hardlink_to(beside / "top/a")
        assert disk_use("top", above) == (once, True)
        assert whole
        assert disk_use("top", above, 1)[1] is False
        assert disk_use("nothing", above) == (0, False)
    finally:
        os.close(above)


def test_no_walk_follows_a_link_or_enters_what_is_named_by_one(beside: Path) -> None:
    bird = canary(beside)
    (beside / "top/in").mkdir(parents=True)
    (beside / "top/in/link").symlink_to(bird)
    found = {folder.path: (folder.folders, folder.files) for folder in walk(str(beside / "top"))}
    assert found == {"": (["in"], []), "in": ([], ["link"])}
    above = os.open(beside / "top/in", same_mount.PLACE)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        same_mount.open_here("link", same_mount.LISTED, above)
    os.close(above)
