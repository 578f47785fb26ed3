"""What a hostile task prints, and what it writes into the files that its worker and the leader read.

Law: it writes where it was told to, and where every member may.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time

from tools.hostility.world import NO_FILES, World, deed, left_behind, taken, texts, unfollowed, write


@deed
def result_written(world: World) -> None:
    """Write a result that nobody should write."""
    write(world.given("SPOOL_RESULT_FILE"), world)


@deed
def no_files(world: World) -> None:
    """Leave something that is no file in the places of the result and of the progress report."""
    for name in ("SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE"):
        write(world.given(name), world, NO_FILES)


@deed
def progress_written(world: World) -> None:
    """Write progress that nobody should write, several times."""
    for _ in range(3):
        write(world.given("SPOOL_PROGRESS_FILE"), world)
        time.sleep(0.3)


@deed
def progress_flood(world: World) -> None:
    """Write progress as often as it can, by rename, in place, and without an end."""
    path, until = world.given("SPOOL_PROGRESS_FILE"), time.monotonic() + 1.5
    while time.monotonic() < until:
        with open(f"{path}.new", "wb", opener=unfollowed) as file:
            file.write(texts(world)[:100_000])
        os.rename(f"{path}.new", path)
        with open(path, "ab", opener=unfollowed) as file:
            file.write(b"}" * 1000)


@deed
def leased(world: World) -> None:
    """Hold the files that others open by leases and locks, in a process that outlives the command."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    held = []
    for name in ("SPOOL_TASK_FILE", "SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE"):
        file = unfollowed(world.given(name), os.O_CREAT | os.O_RDWR)
        with contextlib.suppress(OSError):
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        held.append(file)
    for folder in (world.home, world.work, world.given("SPOOL_SLOT_DIR")):
        file = os.open(folder, os.O_RDONLY)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(file)
    left_behind(lambda: time.sleep(600))
    time.sleep(1)


@deed
def forged_loans(world: World) -> None:
    """Write loans that are none: without a process, of others, asking, and many."""
    folder = world.folder("SPOOL_SLOT_DIR")
    own = f"{os.environ['SPOOL_TASK_ID']}.{os.environ['SPOOL_ATTEMPT']}"
    for number, attempt in enumerate((own, own, "neighbour0.1", "neighbour1.1", "none.1", "..")):
        name = f"{folder}/{attempt}.{os.getpid()}x{number}.{world.chance.choice(('lend', 'back'))}"
        with contextlib.suppress(OSError):
            write(name, world)
            fcntl.flock(os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW), fcntl.LOCK_EX | fcntl.LOCK_NB)
    for number in range(world.chance.choice((0, 600, 4 * world.scale.files))):
        os.close(os.open(f"{folder}/{own}.{number}.lend", os.O_CREAT | os.O_WRONLY))
    if world.chance.random() < 0.5:
        left_behind(lambda: time.sleep(600))
    time.sleep(world.chance.choice((0, 1)))


@deed
def nested_progress(world: World) -> None:
    """Write progress that is nested a thousand times, and wait until it was read."""
    with open(world.given("SPOOL_PROGRESS_FILE"), "w", encoding="utf-8", opener=unfollowed) as file:
        file.write("[" * 1000 + "]" * 1000)
    time.sleep(2.5)


@deed
def dear_result(world: World) -> None:
    """Say that it cost as much as a number can say."""
    with open(world.given("SPOOL_RESULT_FILE"), "w", encoding="utf-8", opener=unfollowed) as file:
        file.write(f'{{"cost_usd": {world.chance.choice(("1e308", "1.7e308", "1e15"))}, "tokens_used": 1e308}}')


@deed
def result_renamed_away(world: World) -> None:
    """Take the files that it was given away, and put folders and links in their places."""
    for name in ("SPOOL_TASK_FILE", "SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE", "SPOOL_ANSWER_FILE"):
        write(world.given(name), world)


@deed
def checkpoint_written(world: World) -> None:
    """Leave a checkpoint, or what looks like one."""
    path = world.given("SPOOL_CHECKPOINT_DIR")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if world.chance.random() < 0.3:
        taken(path, world)
    os.makedirs(path, exist_ok=True)
    folder = world.folder("SPOOL_CHECKPOINT_DIR")
    for name in ("checkpoint", "checkpoint.json", "1.json", "a step.1.json"):
        write(f"{folder}/{name}", world)


@deed
def drops(world: World) -> None:
    """Drop what is no task, as any member may."""
    pending = os.path.join(os.environ["SPOOL_ROOT"], "pending")
    for number in range(3):
        name = f"{os.environ['SPOOL_TASK_ID']}-left{number}.{world.chance.choice(('json', 'jsonl', 'txt'))}"
        data = world.chance.choice(
            (texts(world), b"\n" * world.scale.written, b'{"id": "x", "command": ["true"]}garbage')
        )
        with open(f"{pending}/.{name}", "wb") as file:
            file.write(data)
        os.rename(f"{pending}/.{name}", f"{pending}/{name}")


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
def output_taken(world: World) -> None:
    """Put something else where its output is kept, before or after it prints, and print."""
    if world.chance.random() < 0.3:
        os.write(1, b"first\n")
        time.sleep(0.3)
    write(f"{world.home}/output", world)
    if os.path.isfile(f"{world.home}/output") and world.chance.random() < 0.5:
        with contextlib.suppress(OSError):
            signal.signal(signal.SIGIO, signal.SIG_IGN)
            file = os.open(f"{world.home}/output", os.O_RDWR | os.O_NOFOLLOW)
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            left_behind(lambda: time.sleep(600))
    os.write(world.chance.choice((1, 2)), b"printed\n" * 1000)
    time.sleep(world.chance.choice((0, 1)))


@deed
def pipes_changed(world: World) -> None:
    """Change the pipes that it prints into, and leave them full."""
    for number in (1, 2):
        with contextlib.suppress(OSError):
            fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, world.chance.choice((4096, 1 << 20)))
            fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK | world.chance.choice((0, os.O_DIRECT)))
        with contextlib.suppress(BlockingIOError):
            for _ in range(200):
                os.write(number, b"y" * world.chance.choice((1, 5000)))


@deed
def usage_printed(world: World) -> None:
    """Print lines that agents use to say what they cost, with numbers that are none."""
    for _ in range(10):
        os.write(1, b"SPOOL:USAGE " + texts(world)[:100_000] + b"\nSPOOL:RESULT {" + b"\n")


@deed
def forged_lines(_: World) -> None:
    """Print what looks like a daemon's own log, and escape sequences."""
    os.write(1, b"\x1b]52;c;QUJD\x07\r2026-01-01 INFO desk leads epoch 99\n\x1b[2J" * 100)
