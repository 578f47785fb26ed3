"""A command becomes one in a sandbox, or an error.

Law: without a sandbox only where none was asked for. Whatever is missing is a NoSandbox.

Touches: files, the environment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spoold.agents.sandbox import bwrap, podman
from spoold.agents.sandbox.ground import look
from spoold.agents.sandbox.inside import PORT
from spoold.agents.sandbox.places import places
from spoold.agents.sandbox.policy import LOADER, NoSandbox, Sandbox, Scene, Wrapped
from spoold.agents.sandbox.proxy import variables
from spoold.protocol.errors import BadFile

_PACKAGES = {"bwrap": "bubblewrap", "podman": "podman", "systemd-run": "systemd"}
_PATH = "/usr/local/bin:/usr/bin:/bin"


def wrap(sandbox: Sandbox, argv: Sequence[str], scene: Scene) -> Wrapped:
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
    ground = look(tool, names=sandbox.network == "host")
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
        return podman.command(sandbox, scene, shown, ground, env, argv, _set(podman.OWN))
    if scene.way_out or scene.others:
        env |= variables(PORT) if scene.way_out else {}
        looked = [word for place in shown for word in (place.at, place.identity)] if scene.others else []
        loader = {name: env.pop(name) for name in list(env) if name.startswith(LOADER)}
        told = [f"{name}={value}" for name, value in loader.items()]
        counted = [str(len(looked) // 2), *looked, str(len(told)), *told]
        argv = [ground.python, "-I", "-S", ground.inside, scene.way_out, *counted, *argv]
    wrapped = bwrap.command(sandbox, scene, shown, ground, env, argv)
    if sandbox.kind == "bwrap":
        return wrapped
    run = shutil.which("systemd-run")
    if run is None:
        raise _missing("systemd-run")
    return command(sandbox, wrapped, run, ground.uid, _set(BUS))


def allowed_calls(sandbox: Sandbox, folder: str) -> str:
    """Return the file that says to podman which system calls there are, and write it into a folder of ours; '' for
    other sandboxes. Errors: NoSandbox, OSError."""
    if sandbox.kind != "podman" or shutil.which("podman") is None:
        return ""
    where = next((path for path in podman.LISTS if os.path.exists(path)), None)
    if where is None:
        problem = f"podman's list of system calls is at none of {', '.join(podman.LISTS)}"
        raise NoSandbox(
            problem, "install the package containers-common, or on Debian golang-github-containers-common"
        )
    try:
        with open(where, "rb") as file:
            said = podman.shorter(file.read(), where, network=sandbox.network == "host")
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


def command(sandbox: Sandbox, wrapped: Wrapped, tool: str, uid: int, bus: dict[str, str]) -> Wrapped:
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
