"""The command line of bubblewrap.

Law: pure. It begins with nothing and shows what it is told; it has no capability, can make no namespace of its own
unless it may, and no system call that `calls` refuses. No value of a variable is in it, since other users read
arguments, except those by which the loader or the library of what runs outside could be led astray.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spoold.agents.sandbox.ground import Ground
from spoold.agents.sandbox.places import Place
from spoold.agents.sandbox.policy import LOADER, Sandbox, Scene, Wrapped


def command(
    sandbox: Sandbox,
    scene: Scene,
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
