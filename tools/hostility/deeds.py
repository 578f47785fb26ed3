"""What a hostile task leaves, prints, writes and does to its own processes: a program that one seed decides.

    python3 -I deeds.py SEED SCALE CANARY       as a task: does the deeds of this seed, and ends as it says
    python3 -I deeds.py --list                  prints the names of all deeds

Law: the standard library alone, and nothing of spoold. A deed changes only what the task was given: its work folder,
and the files and folders that its environment names. CANARY is a folder of others, to which links and mounts lead:
the task never changes it. What a seed does is the same each time.

Touches: files, processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# How a task ends: with an exit code, by a signal of its own, or not at all until its timeout.
ENDS = ("exit 0",) * 12 + ("exit 3", "signal 9", "signal 15", "signal 6", "timeout")
MOST_DEEDS = 4
MS_BIND, MS_NOSUID = 4096, 2


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of each kind. small: for many seeds; large: what the promises speak of."""

    files: int = 3_000
    levels: int = 1_500
    printed: int = 8 << 20
    written: int = 4 << 20


SCALES = {"small": Scale(), "large": Scale(files=400_000, levels=5_000, printed=512 << 20, written=64 << 20)}


@dataclass(slots=True)
class World:
    """The place of a task: its chance, its scale, the canary, the work folder and the paths that it was given."""

    chance: random.Random
    scale: Scale
    canary: str
    work: str = field(default_factory=lambda: os.environ.get("SPOOL_WORK_DIR") or os.getcwd())

    def given(self, name: str) -> str:
        """Return a path that the environment names; one that cannot be made where it names none."""
        return os.environ.get(name) or f"/proc/none/{name}"


Deed = Callable[[World], None]
DEEDS: dict[str, Deed] = {}


def deed(function: Deed) -> Deed:
    """Enter a deed under its name."""
    DEEDS[function.__name__] = function
    return function


@dataclass(frozen=True, slots=True)
class Plan:
    """The deeds of one seed, in their order, and how the task ends."""

    deeds: tuple[str, ...]
    end: str

    @property
    def dies(self) -> bool:
        """Whether it kills what holds it, so that nobody can say how it ended."""
        return "supervisor_killed" in self.deeds


def plan(seed: int, only: str = "") -> Plan:
    """Return what a seed does. only: the one deed that it does."""
    chance = random.Random(seed)
    count = chance.choice((1, 1, 1, 2, 2, 3, MOST_DEEDS))
    # Behind a link in the place of the work folder, whatever follows would be a deed of the task against others.
    deeds = tuple(sorted(chance.sample(sorted(DEEDS), count), key=lambda name: name.startswith("work_is")))
    return Plan((only,) if only else deeds, chance.choice(ENDS))


# Names.


def _name(chance: random.Random) -> bytes:
    """A name that people would not choose."""
    return chance.choice(
        (
            b"a b",
            b"[x]*?",
            b"new\nline",
            b"-rf",
            b"\xff\xfe\x80",
            b"\xed\xa0\x80",
            b"tab\tbell\x07\x1b[2J",
            "\u202egnirts".encode(),
            b"x" * 255,
            b"'; touch owned; '",
            b"{}$(id)`id`",
            b"CON.aux",
            b"~",
            b"...",
        )
    )


# What it leaves: trees.


@deed
def deep(world: World) -> None:
    """Leave a tree that is deeper than any path or stack."""
    here = os.open(world.work, os.O_RDONLY)
    for _ in range(world.scale.levels):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@deed
def wide(world: World) -> None:
    """Leave many files in one folder."""
    folder = os.path.join(world.work, "wide")
    os.makedirs(folder, exist_ok=True)
    for number in range(world.scale.files):
        os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))


@deed
def bushy(world: World) -> None:
    """Leave many folders."""
    for number in range(world.scale.files // 10):
        os.makedirs(f"{world.work}/bush/{number % 37}/{number}", exist_ok=True)


@deed
def strange_names(world: World) -> None:
    """Leave files, folders and links with names that are no text."""
    for _ in range(20):
        path = os.path.join(os.fsencode(world.work), _name(world.chance))
        with contextlib.suppress(OSError):
            kind = world.chance.randrange(3)
            if kind == 0:
                os.mkdir(path)
            elif kind == 1:
                os.symlink(os.fsencode(world.canary), path)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY))


@deed
def links(world: World) -> None:
    """Leave links to others' folders and files, to nothing and to themselves, and a second name of another's file."""
    targets = (world.canary, f"{world.canary}/file", "/", "/proc/self/root", "nowhere", "loop", "..", "/dev/zero")
    for number, target in enumerate(targets):
        os.symlink(target, f"{world.work}/{'loop' if target == 'loop' else f'link{number}'}")
    with contextlib.suppress(OSError):
        os.link(f"{world.canary}/file", f"{world.work}/second-name")


@deed
def work_is_a_link(world: World) -> None:
    """Put a link to another's folder in the place of the work folder."""
    os.chdir("/")
    os.rename(world.work, f"{world.work}.old")
    os.symlink(world.canary, world.work)


@deed
def work_is_gone(world: World) -> None:
    """Remove the work folder, or put a file in its place."""
    os.chdir("/")
    os.rename(world.work, f"{world.work}.old")
    if world.chance.random() < 0.5:
        os.close(os.open(world.work, os.O_CREAT | os.O_WRONLY))


@deed
def special_files(world: World) -> None:
    """Leave pipes, sockets and devices."""
    os.mkfifo(f"{world.work}/pipe")
    with contextlib.suppress(OSError):
        os.chdir(world.work)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
    with contextlib.suppress(OSError):
        os.mknod(f"{world.work}/zero", 0o600 | 0o020000, os.makedev(1, 5))


@deed
def shut_folders(world: World) -> None:
    """Leave folders that nobody may list, enter or change, with something in them."""
    for number, mode in enumerate((0o000, 0o555, 0o111, 0o444, 0o7777)):
        folder = f"{world.work}/shut{number}"
        os.makedirs(f"{folder}/in", exist_ok=True)
        os.close(os.open(f"{folder}/in/file", os.O_CREAT | os.O_WRONLY, 0o000))
        os.chmod(f"{folder}/in", mode)
        os.chmod(folder, mode)
    if world.chance.random() < 0.5:
        os.chmod(world.work, 0o000)


@deed
def immutable(world: World) -> None:
    """Leave a file that even root cannot remove before a flag is taken away."""
    path = f"{world.work}/immutable"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    subprocess.run(["chattr", "+i", path], stderr=subprocess.DEVNULL, check=False)


@deed
def mounts(world: World) -> None:
    """Leave others' folders mounted in the work folder (for root, in a namespace of its pool)."""
    for kind in world.chance.sample(("bind", "tmpfs", "file"), 2):
        target = f"{world.work}/mounted-{kind}"
        if kind == "file":
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
            _mount(f"{world.canary}/file", target, "", MS_BIND)
        else:
            os.mkdir(target)
            _mount(*((world.canary, target, "", MS_BIND) if kind == "bind" else ("t", target, "tmpfs", MS_NOSUID)))


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    """Mount, where this user may; elsewhere nothing is mounted."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mount(source.encode(), os.fsencode(target), kind.encode() or None, flags, None)


@deed
def held_open(world: World) -> None:
    """Leave a large file that has no name any more, held open by a process that outlives the command."""
    file = os.open(f"{world.work}/large", os.O_CREAT | os.O_RDWR)
    os.truncate(file, 1 << 40)
    os.unlink(f"{world.work}/large")
    _left_behind(lambda: time.sleep(600))


# What it writes: the files that the worker reads.


def _texts(world: World) -> bytes:
    """A text that is no JSON that anybody should write, or is just allowed."""
    chance = world.chance
    number = chance.choice(
        ("1e308", "-1e308", "1e999", "NaN", "-Infinity", "1" * 400, "-1", "0.1e-400", "12345678901234567890123")
    )
    depth = chance.choice((10, 300, 1_000, 100_000))
    return chance.choice(
        (
            b"[" * depth,
            b"[" * depth + b"]" * depth,
            b'{"a":' * depth + b"1" + b"}" * depth,
            f'{{"cost_usd": {number}}}'.encode(),
            f'{{"tokens_used": {number}, "cost_usd": {number}}}'.encode(),
            f'{{"fraction": {number}, "message": {number}}}'.encode(),
            f'{{"retry_after": {number}, "retry_after_s": {number}}}'.encode(),
            b'{"message": "\\ud800 half"}',
            b'{"message": "\xff\xfe"}',
            b'{"message": "' + b"x" * world.scale.written + b'"}',
            b"{" + b",".join(b'"%d": 1' % n for n in range(50_000)) + b"}",
            b"\xef\xbb\xbf{}",
            b"\x00" * 1000,
            b"",
            b"null",
            b'"text"',
            b"{",
            b'{"a": 1, "a": 2}',
            b'{"changed_files": ["' + b"../" * 500 + b'"], "served": "yes", "quota": {"until": 1e300}}',
            b'{"asks": 3, "notes": [[[]]], "files": {"a": null}}',
        )
    )


def _write(path: str, world: World) -> None:
    """Put a text, or something that is no file, where the worker reads."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    kind = world.chance.choice(("text",) * 8 + ("folder", "pipe", "zero", "canary", "loop"))
    if kind == "text":
        with open(path, "wb") as file:
            file.write(_texts(world))
    elif kind == "folder":
        os.makedirs(f"{path}/in", exist_ok=True)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        os.symlink({"zero": "/dev/zero", "canary": f"{world.canary}/file", "loop": path}[kind], path)


@deed
def result_written(world: World) -> None:
    """Write a result that nobody should write."""
    _write(world.given("SPOOL_RESULT_FILE"), world)


@deed
def progress_written(world: World) -> None:
    """Write progress that nobody should write, several times."""
    for _ in range(3):
        _write(world.given("SPOOL_PROGRESS_FILE"), world)
        time.sleep(0.3)


@deed
def nested_progress(world: World) -> None:
    """Write progress that is nested a thousand times, and wait until it was read."""
    with open(world.given("SPOOL_PROGRESS_FILE"), "w", encoding="utf-8") as file:
        file.write("[" * 1000 + "]" * 1000)
    time.sleep(2.5)


@deed
def dear_result(world: World) -> None:
    """Say that it cost as much as a number can say."""
    with open(world.given("SPOOL_RESULT_FILE"), "w", encoding="utf-8") as file:
        file.write(f'{{"cost_usd": {world.chance.choice(("1e308", "1.7e308", "1e15"))}, "tokens_used": 1e308}}')


@deed
def result_renamed_away(world: World) -> None:
    """Take the files that it was given away, and put folders and links in their places."""
    for name in ("SPOOL_TASK_FILE", "SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE", "SPOOL_ANSWER_FILE"):
        _write(world.given(name), world)


@deed
def checkpoint_written(world: World) -> None:
    """Leave a checkpoint, or what looks like one."""
    folder = world.given("SPOOL_CHECKPOINT_DIR")
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        _write(f"{folder}/checkpoint", world)
        _write(os.path.join(folder, "checkpoint.json"), world)


# What it prints.


@deed
def flood(world: World) -> None:
    """Print more than anybody reads, without a line's end."""
    piece, left = (
        world.chance.choice((b"x", b"\x00", b"\xff", b"\x1b[2J", b"a\n", b"\n")) * 65536,
        world.scale.printed,
    )
    while left > 0:
        left -= os.write(world.chance.choice((1, 2)), piece)


@deed
def usage_printed(world: World) -> None:
    """Print lines that agents use to say what they cost, with numbers that are none."""
    for _ in range(10):
        os.write(1, b"SPOOL:USAGE " + _texts(world)[:100_000] + b"\nSPOOL:RESULT {" + b"\n")


@deed
def forged_lines(_: World) -> None:
    """Print what looks like a daemon's own log, and escape sequences."""
    os.write(1, b"\x1b]52;c;QUJD\x07\r2026-01-01 INFO desk leads epoch 99\n\x1b[2J" * 100)


# What it does to its own processes.


def _left_behind(work: Callable[[], object]) -> None:
    """Run something in a process that has left the task's session."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)


@deed
def daemons(world: World) -> None:
    """Leave processes in sessions of their own, that take no signal but the last one."""
    del world

    def stay() -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(600)

    for _ in range(5):
        _left_behind(stay)


@deed
def forks(world: World) -> None:
    """Fork on and on, as far as a bound."""
    del world

    def fork_and_stay() -> None:
        for _ in range(6):
            os.fork()
        time.sleep(600)

    _left_behind(fork_and_stay)


@deed
def stopped(world: World) -> None:
    """Stop a process of its own, or itself, as a debugger does."""
    if world.chance.random() < 0.5:
        _left_behind(lambda: os.kill(os.getpid(), signal.SIGSTOP))
    else:
        _left_behind(lambda: signal.raise_signal(signal.SIGTSTP))


@deed
def streams_closed(_: World) -> None:
    """Close its streams and go on."""
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.close(number)


@deed
def supervisor_killed(world: World) -> None:
    """Kill what holds it."""
    os.kill(os.getppid(), world.chance.choice((signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP)))


@deed
def limits_lowered(_: World) -> None:
    """Take from itself what processes need."""
    import resource

    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (8, 8))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


@deed
def elsewhere(world: World) -> None:
    """Write into every other folder that it was given."""
    for name in ("SPOOL_DEPS_DIR", "SPOOL_CONTEXT_DIR", "SPOOL_SLOT_DIR"):
        folder = os.environ.get(name)
        if folder and os.path.isdir(folder):
            with contextlib.suppress(OSError):
                os.makedirs(f"{folder}/left/behind", exist_ok=True)
                os.symlink(world.canary, f"{folder}/left/link")


@deed
def drops(world: World) -> None:
    """Drop what is no task, as any member may."""
    pending = os.path.join(os.environ["SPOOL_ROOT"], "pending")
    for number in range(3):
        name = f"{os.environ['SPOOL_TASK_ID']}-left{number}.{world.chance.choice(('json', 'jsonl', 'txt'))}"
        data = world.chance.choice(
            (_texts(world), b"\n" * world.scale.written, b'{"id": "x", "command": ["true"]}garbage')
        )
        with open(f"{pending}/.{name}", "wb") as file:
            file.write(data)
        os.rename(f"{pending}/.{name}", f"{pending}/{name}")


def main() -> int:
    """Do the deeds of a seed; returns the exit code."""
    if sys.argv[1:] == ["--list"]:
        print(json.dumps(sorted(DEEDS)))
        return 0
    seed, scale, canary, *only = sys.argv[1:]
    mine = plan(int(seed), *only)
    world = World(random.Random(f"{seed}."), SCALES[scale], canary)
    for name in mine.deeds:
        with contextlib.suppress(OSError):
            DEEDS[name](world)
    kind, _, number = mine.end.partition(" ")
    if kind == "timeout":
        time.sleep(3600)
    if kind == "signal":
        os.kill(os.getpid(), int(number))
    # Descriptors may be closed: nothing is flushed.
    os._exit(int(number or 0))


if __name__ == "__main__":
    sys.exit(main())
