"""The command line of a container, without a daemon: its processes stay below the one that starts it.

Podman's own list of system calls allows keyctl(2), which finds any key of its user, and sockets of every family. It
is made shorter by what `calls` refuses.

Law: pure. The image brings the programs; nothing is fetched. No value of a variable is in it, since other users read
arguments, except those by which podman itself, which runs outside, could be led astray.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spoold.agents.sandbox.calls import FAMILIES, REFUSED
from spoold.agents.sandbox.ground import Ground
from spoold.agents.sandbox.places import Place
from spoold.agents.sandbox.policy import LOADER, NoSandbox, Sandbox, Scene, Wrapped
from spoold.protocol import codec
from spoold.protocol.errors import BadFile

# With these podman finds its own files. They are of the one who starts it, and the container has others.
OWN = ("HOME", "PATH", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")
# Where its packages put its list of system calls, and a machine's owner another one.
LISTS = ("/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json")
# Of what begins so, a loader, podman or its runtime could load code, or take settings: a task must not say that.
_LEADS = (
    *LOADER,
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
    size = scene.memory_mb << 20 or ground.memory >> 2
    tmp = "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777" + (f",size={size}" if size else "")
    line += ["--read-only", tmp, "--cap-drop=all"]
    line += ["--security-opt=no-new-privileges", f"--security-opt=seccomp={scene.calls}", "--http-proxy=false"]
    line += [f"--security-opt=mask={':'.join(ground.hidden)}"] if ground.hidden else []
    line += [
        "--ipc=private",
        "--pid=private",
        "--uts=private",
        *(["--userns=keep-id"] if ground.uid else []),
        f"--workdir={scene.workspace}",
    ]
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


def shorter(said: bytes, place: str, *, network: bool) -> bytes:
    """Return podman's list of system calls without those that are refused. network: whether sockets of every family
    may be made; place: its file, for errors. Errors: BadFile."""
    found = codec.load_object(said, place)
    rules = found.get("syscalls")
    if not isinstance(rules, list) or not all(isinstance(rule, dict) and _named(rule) for rule in rules):
        raise BadFile(place, "syscalls", "is no list of rules with names.", "install podman's packages again.")
    out = {*REFUSED, *(() if network else ("socket", "socketcall"))}
    kept: list[dict[str, Any]] = [{**rule, "names": [n for n in rule["names"] if n not in out]} for rule in rules]
    for family in () if network else FAMILIES:
        only = {"index": 0, "value": family, "op": "SCMP_CMP_EQ"}
        kept.append({"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [only]})
    return codec.dump({**found, "syscalls": [rule for rule in kept if rule["names"]]})


def _named(rule: Mapping[str, Any]) -> bool:
    names = rule.get("names")
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
