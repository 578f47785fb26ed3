"""A command becomes one in a sandbox, or an error: by bubblewrap, systemd or podman.

It stands apart from `launch`, its one user, which decides by a run whether such a command holds.

Podman needs no daemon: its processes stay below the one that starts it. Its own list of system calls allows
keyctl(2), which finds any key of its user, and sockets of every family. It is made shorter by what `seccomp` refuses.

Law: without a sandbox only where none was asked for. Whatever is missing is a NoSandbox. The image of a container
brings the programs; nothing is fetched. No value of a variable is in the command line, since other users read
arguments, except those by which podman itself, which runs outside, could be led astray.

Touches: files, the environment.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spoold.agents.sandbox import bwrap, containers
from spoold.agents.sandbox.proxy import variables
from spoold.agents.sandbox.relay import PORT
from spoold.agents.sandbox.sandbox_mounts import Ground, Place, look, places
from spoold.agents.sandbox.sandbox_policy import LOADER, NoSandbox, SandboxPolicy, SandboxRun, Wrapped
from spoold.agents.sandbox.seccomp import FAMILIES, REFUSED
from spoold.protocol import codec
from spoold.protocol.errors import BadFile

_PACKAGES = {"bwrap": "bubblewrap", "podman": "podman", "systemd-run": "systemd"}
_PATH = "/usr/local/bin:/usr/bin:/bin"


def wrap(sandbox: SandboxPolicy, argv: Sequence[str], scene: SandboxRun) -> Wrapped:
    """Return a command in its sandbox, to be started with the variables of the answer and no others.

    Errors: NoSandbox.
    """
    env = {"PATH": _PATH, **scene.env, "HOME": scene.home}
    if sandbox.kind == "none":
        return Wrapped(tuple(argv), env)
    env.setdefault("TMPDIR", "/tmp")
    if (sandbox.network == "proxy") != bool(scene.way_out):
        raise NoSandbox("the way out of a sandbox and its network do not agree", "enter it with `entered`")
    tool = "podman" if sandbox.kind == "podman" else "bwrap"
    own = started_with(sandbox)
    search = own.get("PATH", os.defpath) if sandbox.kind == "podman" else None
    ground = look(tool, names=sandbox.network == "host", search=search)
    if not ground.tool:
        raise _missing(tool)
    if scene.way_out or scene.others:
        scene = replace(scene, shown=(*scene.shown, *ground.inside_needs))
    try:
        shown = places(scene, os.path.expanduser("~"))
    except OSError as error:
        raise NoSandbox(f"what a sandbox is to show cannot be looked at: {error}", "make it readable") from error
    if sandbox.kind == "podman":
        if not scene.calls:
            raise NoSandbox("a container has no list of system calls", "enter it with `entered`")
        return podman_command(sandbox, scene, shown, ground, env, argv, own)
    if scene.way_out or scene.others:
        env |= variables(PORT) if scene.way_out else {}
        looked = [word for place in shown for word in (place.at, place.identity)] if scene.others else []
        loader = {name: env.pop(name) for name in list(env) if name.startswith(LOADER)}
        told = [f"{name}={value}" for name, value in loader.items()]
        counted = [str(len(looked) // 2), *looked, str(len(told)), *told]
        argv = [ground.python, "-I", "-S", ground.inside, scene.way_out, *counted, *argv]
    wrapped = bwrap.bwrap_command(sandbox, scene, shown, ground, env, argv)
    if sandbox.kind == "bwrap":
        return wrapped
    run = shutil.which("systemd-run")
    if run is None:
        raise _missing("systemd-run")
    return command(sandbox, wrapped, run, ground.uid, _set(BUS))


def started_with(sandbox: SandboxPolicy) -> Mapping[str, str]:
    """Return the variables with which podman itself is started."""
    return sandbox.podman or containers.own_variables(os.environ)


def allowed_calls(sandbox: SandboxPolicy, folder: str) -> str:
    """Return the file that says to podman which system calls there are, and write it into a folder of ours; '' for
    other sandboxes. Errors: NoSandbox, OSError."""
    if sandbox.kind != "podman" or not containers.program(started_with(sandbox)):
        return ""
    where = next((path for path in LISTS if os.path.exists(path)), None)
    if where is None:
        problem = f"podman's list of system calls is at none of {', '.join(LISTS)}"
        raise NoSandbox(
            problem, "install the package containers-common, or on Debian golang-github-containers-common"
        )
    try:
        with open(where, "rb") as file:
            said = shorter(file.read(), where, network=sandbox.network == "host", nested=sandbox.nested)
    except BadFile as error:
        raise NoSandbox(
            f"podman's list of system calls cannot be used: {error}", "install its packages again"
        ) from error
    path = f"{folder}/calls.json"
    with open(path, "wb") as made:
        made.write(said)
    return path


def _set(names: Sequence[str]) -> dict[str, str]:
    environ: Mapping[str, str] = os.environ
    return {name: environ[name] for name in names if name in environ}


def _missing(tool: str) -> NoSandbox:
    return NoSandbox(f"{tool} is not on this machine", f"install the package {_PACKAGES[tool]}")


# The same sandbox as bubblewrap's, in a scope of systemd, so that the kernel's limits hold for all of it together.


# Where a user's own systemd listens: systemd-run needs it, and the agent must not have it.
BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


def command(sandbox: SandboxPolicy, wrapped: Wrapped, tool: str, uid: int, bus: dict[str, str]) -> Wrapped:
    """Return a wrapped command in a scope; tool: systemd-run; bus: the variables of BUS that are set here."""
    line = [tool, *(["--user"] if uid else []), "--scope", "--quiet", "--collect"]
    if sandbox.memory_mb is not None:
        line += ["-p", f"MemoryMax={sandbox.memory_mb}M", "-p", "MemorySwapMax=0"]
    if sandbox.processes is not None:
        line += ["-p", f"TasksMax={sandbox.processes}"]
    at = wrapped.argv.index("--")
    cleared = [word for name in bus for word in ("--unsetenv", name)]
    argv = (*line, "--", *wrapped.argv[:at], *cleared, *wrapped.argv[at:])
    return replace(wrapped, argv=argv, env={**wrapped.env, **bus})


# The command line of a container, without a daemon: its processes stay below the one that starts it.


# Where its packages put its list of system calls, and a machine's owner another one.
LISTS = ("/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json")
# Calls that make or enter a namespace, or may; and the flags of clone(2) for that, from CLONE_NEWNS to CLONE_NEWNET.
_NAMESPACES = ("unshare", "setns", "clone3")
_NEW = 0x7E020000
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


def podman_command(
    sandbox: SandboxPolicy,
    scene: SandboxRun,
    shown: Sequence[Place],
    ground: Ground,
    env: Mapping[str, str],
    argv: Sequence[str],
    own: Mapping[str, str],
) -> Wrapped:
    """Return the command, in its container; own: podman's own variables. Errors: NoSandbox."""
    line = [ground.tool, "run", "--rm", "--interactive", "--pull=never", "--quiet", f"--network={sandbox.network}"]
    labels = {containers.ATTEMPT: scene.attempt, containers.HOLDER: scene.holder}
    line += [f"--label={name}={said}" for name, said in labels.items() if said]
    line += [f"--name={containers.new_name(scene.holder)}"] if scene.holder else []
    size = scene.memory_mb << 20 or ground.memory >> 2
    # Podman itself puts a tmpfs of half the machine's memory at each of these.
    most = f",size={size}" if size else ""
    line += [f"--tmpfs={path}:rw,nosuid,nodev,mode=1777{most}" for path in ("/tmp", "/run", "/var/tmp")]
    line += [f"--shm-size={size}b"] if size else []
    # One that is removed by force is killed at once: its attempt may have no time left.
    line += ["--read-only", "--cap-drop=all", "--stop-timeout=0"]
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
    inner = {name for name in env if name in containers.OWN or name.startswith(_LEADS)}
    line += [f"--env={name}={env[name]}" if name in inner else f"--env={name}" for name in env]
    program, *rest = argv
    passed = {name: value for name, value in env.items() if name not in inner}
    return Wrapped((*line, f"--entrypoint={program}", sandbox.image, *rest), {**passed, **own})


def shorter(said: bytes, place: str, *, network: bool, nested: bool) -> bytes:
    """Return podman's list of system calls without those that are refused. network: whether sockets of every family
    may be made; nested: whether namespaces, in which a process has all rights and can undo the mounts that hold what
    it must not write; place: its file, for errors. Errors: BadFile."""
    found = codec.load_object(said, place)
    rules = found.get("syscalls")
    if not isinstance(rules, list) or not all(isinstance(rule, dict) and _named(rule) for rule in rules):
        raise BadFile(place, "syscalls", "is no list of rules with names.", "install podman's packages again.")
    out = {*REFUSED, *(() if network else ("socket", "socketcall")), *(() if nested else (*_NAMESPACES, "clone"))}
    kept: list[dict[str, Any]] = [{**rule, "names": [n for n in rule["names"] if n not in out]} for rule in rules]
    for family in () if network else FAMILIES:
        only = {"index": 0, "value": family, "op": "SCMP_CMP_EQ"}
        kept.append({"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [only]})
    if not nested:
        # The flags of clone3 are where no filter sees them: programs take clone where there is none.
        kept.append({"names": list(_NAMESPACES), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS})
        for at, here in ((1, "includes"), (0, "excludes")):
            flags = {"index": at, "value": _NEW, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
            only_on = {here: {"arches": ["s390", "s390x"]}}
            kept.append({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [flags], **only_on})
    return codec.dump({**found, "syscalls": [rule for rule in kept if rule["names"]]})


def _named(rule: Mapping[str, Any]) -> bool:
    names = rule.get("names")
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
