"""The command line of a container, without a daemon: its processes stay below the one that starts it.

Law: pure. The image brings the programs; nothing is fetched. No value of a variable is in it, since other users read
arguments, except those by which podman itself, which runs outside, could be led astray.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spoold.agents.sandbox.ground import Ground
from spoold.agents.sandbox.places import Place
from spoold.agents.sandbox.policy import NoSandbox, Sandbox, Scene, Wrapped

# With these podman finds its own files. They are of the one who starts it, and the container has others.
OWN = ("HOME", "PATH", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")
# Of what begins so, a loader, podman or its runtime could load code, or take settings: a task must not say that.
_LEADS = (
    "LD_",
    "GO",
    "CONTAINER",
    "_CONTAINER",
    "PODMAN",
    "_PODMAN",
    "OCI",
    "STORAGE_",
    "REGISTRY",
    "XDG_",
    "DBUS_",
    "TMPDIR",
)


def command(
    sandbox: Sandbox,
    scene: Scene,
    shown: Sequence[Place],
    ground: Ground,
    env: Mapping[str, str],
    argv: Sequence[str],
    own: Mapping[str, str],
) -> Wrapped:
    """Return the command, in its container; own: the variables of OWN as they are here. Errors: NoSandbox."""
    line = [ground.tool, "run", "--rm", "--interactive", "--pull=never", "--quiet", f"--network={sandbox.network}"]
    line += ["--read-only", "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777", "--cap-drop=all"]
    line += ["--security-opt=no-new-privileges", "--http-proxy=false", "--ipc=private", "--pid=private"]
    line += ["--uts=private", *(["--userns=keep-id"] if ground.uid else []), f"--workdir={scene.workspace}"]
    line += [] if sandbox.memory_mb is None else [f"--memory={sandbox.memory_mb}m"]
    line += [] if sandbox.processes is None else [f"--pids-limit={sandbox.processes}"]
    for place in shown:
        if set(place.source + place.at) & set(':,"\\'):
            raise NoSandbox(f"podman cannot show {place.at}: it reads : and , in a path otherwise", "rename it")
        line += [f"--volume={place.source}:{place.at}:{'rw' if place.writable else 'ro'}"]
    inner = {name for name in env if name in OWN or name.startswith(_LEADS)}
    line += [f"--env={name}={env[name]}" if name in inner else f"--env={name}" for name in env]
    program, *rest = argv
    passed = {name: value for name, value in env.items() if name not in inner}
    return Wrapped((*line, f"--entrypoint={program}", sandbox.image, *rest), {**passed, **own})
