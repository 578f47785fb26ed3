"""What a hostile task leaves in the folders that it was given: trees, links, names, modes, devices and mounts.

Law: nothing outside of these folders is changed.

Touches: files, processes, the clock, the environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import socket
import subprocess
import time
from dataclasses import replace

from tools.hostility.world import MS_BIND, SPARSE, World, deed, left_behind, mount, taken

MS_NOSUID, NOBODY = 2, 65534


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
def many_names(world: World) -> None:
    """Leave one large file under many names, and one that is larger than any disk."""
    file = os.open(f"{world.work}/name", os.O_CREAT | os.O_WRONLY)
    os.write(file, b"x" * 65536)
    os.close(file)
    for number in range(world.scale.files // 10):
        os.link(f"{world.work}/name", f"{world.work}/name{number}")
    os.close(os.open(f"{world.work}/sparse", os.O_CREAT | os.O_WRONLY))
    os.truncate(f"{world.work}/sparse", world.chance.choice((SPARSE, 1 << 30)))


@deed
def growing(world: World) -> None:
    """Leave a process that makes files and folders on and on, also while they are removed."""
    work = f"/proc/self/fd/{os.open(world.work, os.O_RDONLY)}"

    def grow() -> None:
        for number in range(10_000_000):
            with contextlib.suppress(OSError):
                os.makedirs(f"{work}/grown/{number % 50}/{number % 7}", exist_ok=True)
                os.close(os.open(f"{work}/grown/{number % 50}/{number}", os.O_CREAT | os.O_WRONLY))
            time.sleep(0.0005)

    left_behind(grow)
    time.sleep(0.2)


@deed
def strangers(world: World) -> None:
    """Leave folders of another user, in which only their owner may remove (for root)."""
    for number, mode in enumerate((0o700, 0o1777, 0o2755)):
        folder = f"{world.work}/strange{number}"
        os.makedirs(f"{folder}/in/in", exist_ok=True)
        os.close(os.open(f"{folder}/in/file", os.O_CREAT | os.O_WRONLY))
        for path in (f"{folder}/in/file", f"{folder}/in/in", f"{folder}/in", folder):
            os.chmod(path, mode)
            os.chown(path, NOBODY, NOBODY)


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
def work_is_in_a_taken_folder(world: World) -> None:
    """Put something else in the place of the folder that all its files are in."""
    taken(world.home, world)


@deed
def slots_taken(world: World) -> None:
    """Put something else in the place of the folder of loans, or shut it."""
    if world.chance.random() < 0.3:
        os.chmod(world.folder("SPOOL_SLOT_DIR"), 0o000)
    else:
        taken(world.given("SPOOL_SLOT_DIR"), world)


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
            mount(f"{world.canary}/file", target, "", MS_BIND)
        else:
            os.mkdir(target)
            mount(*((world.canary, target, "", MS_BIND) if kind == "bind" else ("t", target, "tmpfs", MS_NOSUID)))


@deed
def shadowed(world: World) -> None:
    """Mount others' folders on the folders that it was given."""
    folders = [world.work, world.home, *map(world.folder, ("SPOOL_DEPS_DIR", "SPOOL_SLOT_DIR"))]
    for folder in world.chance.sample(folders, 2):
        mount(*((world.canary, folder, "", MS_BIND) if world.chance.random() < 0.5 else ("t", folder, "tmpfs", 0)))


@deed
def hung_mount(world: World) -> None:
    """Mount a file system that never answers, as long as its process lives."""
    given = (world.work, world.home, world.folder("SPOOL_SLOT_DIR"))
    target = world.chance.choice((f"{world.work}/hung", f"{world.work}/hung", *given))
    os.makedirs(target, exist_ok=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    libc.mount(b"hung", os.fsencode(target), b"fuse.hung", MS_NOSUID, options)
    left_behind(lambda: time.sleep(600))
    time.sleep(world.chance.choice((0, 2)))


@deed
def held_open(world: World) -> None:
    """Leave a large file that has no name any more, held open by a process that outlives the command."""
    file = os.open(f"{world.work}/large", os.O_CREAT | os.O_RDWR)
    os.truncate(file, 1 << 40)
    os.unlink(f"{world.work}/large")
    left_behind(lambda: time.sleep(600))


@deed
def elsewhere(world: World) -> None:
    """Leave in every other folder that it was given what it might leave in its own."""
    trees = (bushy, deep, many_names, strange_names, strangers)
    leaving = (*trees, links, special_files, shut_folders, immutable, mounts)
    for name in ("SPOOL_DEPS_DIR", "SPOOL_CONTEXT_DIR", "SPOOL_SLOT_DIR", "SPOOL_CHECKPOINT_DIR"):
        with contextlib.suppress(OSError):
            folder = world.folder(name)
            if not os.path.exists(f"{folder}/left"):
                os.makedirs(f"{folder}/left/behind", exist_ok=True)
                os.symlink(world.canary, f"{folder}/left/link")
                world.chance.choice(leaving)(replace(world, work=folder))
