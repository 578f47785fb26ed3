"""The command line of bubblewrap, and the cage that is made with it: walls around programs of ours.

Git, and what saves a workspace, read files whose writer may have meant harm. In a cage they have no network, no
credentials and no variable of the worker; they read what they are given, and write in the folders that they are
given.

Law: the command line is pure. It begins with nothing and shows what it is told; it has no capability, can make no
namespace of its own unless it may, and no system call that `seccomp` refuses. No value of a variable is in it, since
other users read arguments, except those by which the loader or the library of what runs outside could be led astray.

Where the walls of a cage hold on this machine, nothing that reads an agent's files runs without them. They are tried
out first, by a run. Where they do not hold, the same program runs without them: then only what it does not do
protects.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from spoold.agents.sandbox.sandbox_mounts import Ground, Place, look
from spoold.agents.sandbox.sandbox_policy import LOADER, SandboxPolicy, SandboxRun, Wrapped


def bwrap_command(
    sandbox: SandboxPolicy,
    scene: SandboxRun,
    shown: Sequence[Place],
    ground: Ground,
    env: Mapping[str, str],
    argv: Sequence[str],
) -> Wrapped:
    """Return the command, in its sandbox."""
    line = [ground.python, "-I", "-S", ground.calls, sandbox.network or "none", ground.tool]
    line += ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    line += [] if sandbox.network == "host" else ["--unshare-net"]
    line += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    line += [] if sandbox.nested else ["--disable-userns"]
    for at, source in ground.shown.items():
        line += ["--ro-bind", source, at]
    for at, target in ground.links.items():
        line += ["--symlink", target, at]
    line += ["--proc", "/proc"]
    for path in ground.kernel:
        line += ["--ro-bind", path, path]
    for path in ground.hidden:
        line += ["--ro-bind", "/dev/null", path]
    size = scene.memory_mb << 20 or ground.memory >> 2
    room = ["--size", str(size)] if ground.sized and size else []
    line += ["--dev", "/dev", *room, "--tmpfs", "/dev/shm", "--remount-ro", "/dev", *room, "--tmpfs", "/tmp"]
    for place in shown:
        line += ["--bind" if place.writable else "--ro-bind", place.source, place.at]
    line += ["--remount-ro", "/", "--chdir", scene.workspace]
    for name, value in env.items():
        line += ["--setenv", name, value] if name.startswith(LOADER) else []
    outside = {name: value for name, value in env.items() if not name.startswith(LOADER)}
    return Wrapped((*line, "--", *argv), outside)


# A cage: walls around a program of ours that opens what an agent wrote.


# How long (s) a trial of the walls may take.
TRIAL_S = 20.0
_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Cage:
    """What a program in it sees: folders that it reads, folders that it writes, and programs besides those of the
    machine itself."""

    reads: tuple[str, ...]
    writes: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def around(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> list[str]:
        """Return the command within the walls; itself where this machine has none. It has to be started with these
        variables and no others. Errors: NotADirectoryError for a folder that is none, or a link."""
        for path in (*self.reads, *self.writes):
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(f"{path} is no folder any more")
        walls = _walls()
        if walls is None:
            return list(argv)
        return _within(*walls, argv, env, directory, self)


def variables() -> dict[str, str]:
    """Return the variables that a program in a cage begins with: none that leads it to anything of this user."""
    return {"PATH": os.environ.get("PATH", _PATH), "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}


@cache
def _walls() -> tuple[SandboxPolicy, Ground] | None:
    ground = look("bwrap", names=False)
    if not ground.tool:
        return None
    for nested in (False, True):  # bubblewrap before 0.8 cannot forbid namespaces inside
        walls = SandboxPolicy(kind="bwrap", network="none", nested=nested)
        line = _within(walls, ground, ["git", "--version"], variables(), "/", Cage(()))
        with suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(line, env=variables(), capture_output=True, timeout=TRIAL_S, check=False)
            if done.returncode == 0:
                return walls, ground
    return None


def _within(
    walls: SandboxPolicy, ground: Ground, argv: Sequence[str], env: Mapping[str, str], directory: str, cage: Cage
) -> list[str]:
    programs = [path for path in cage.programs if path != "/usr" and not path.startswith("/usr/")]
    shown = [Place(path, path) for path in (*programs, *cage.reads)]
    shown += [Place(path, path, writable=True) for path in cage.writes]
    shown.sort(key=lambda place: place.at.count("/"))
    command = list(bwrap_command(walls, SandboxRun(directory, "/nonexistent"), shown, ground, env, argv).argv)
    if ground.uid == 0:  # what root's agents made, also with no right to read it
        at = command.index("--cap-drop")
        command[at + 2 : at + 2] = ["--cap-add", "CAP_DAC_READ_SEARCH"]
    return command
