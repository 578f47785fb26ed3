"""What a sandbox shows, and at which place: of this machine, of the agent's own program, and of the run.

Every sandbox shows the programs, libraries and certificates of the machine, and what looks names up (`look`). An
agent's own program needs files beside it (`needed`). `places` puts them in order, with what the run asks for.

Law: of the machine only what every user may read anyway, and nothing that is a person's. No key, no home, no /run.
Of a program never a whole home, and no folder that is not a program's: of `~/.local/bin/agent` it shows that file
and `~/.local/lib`, not `~/.local/share`, where keys may be. Nothing is shown that holds the spool or lies in it. What
is shown at a place is what was there when the sandbox was made, with links resolved.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from spoold.agents.sandbox import relay, seccomp
from spoold.agents.sandbox.sandbox_policy import NoSandbox, SandboxRun

# Since a merged /usr the others are links into it; on other systems they are directories of their own.
_BELOW_ROOT = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "gai.conf", "group", "hosts"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd", "pki/ca-trust"),
    *("pki/tls/certs", "protocols", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf"),
)
_LOOK_UP = ("resolv.conf",)
# What the kernel says of others in there is nobody's business.
# For a worker of root these are root's own files, and need no other right to be written.
_HIDDEN = ("/proc/keys", "/proc/key-users", "/proc/kcore", "/proc/timer_list", "/proc/sched_debug")
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")


@dataclass(frozen=True, slots=True)
class Ground:
    """What is there. shown: place → file or directory of this machine; links: place → target; kernel: what of /proc
    may only be read, and hidden: what may not; tool: where the program that makes the sandbox is, '' for nowhere;
    python: an interpreter that starts `seccomp` outside, and in the sandbox `relay`, which needs `inside_needs`;
    sized: whether the tool can give a file system in memory a size; memory: of the machine, in bytes.
    """

    shown: Mapping[str, str]
    links: Mapping[str, str]
    kernel: tuple[str, ...]
    hidden: tuple[str, ...]
    tool: str
    python: str
    calls: str
    inside: str
    inside_needs: tuple[str, ...]
    uid: int
    sized: bool = True
    memory: int = 0


@cache
def _sized(tool: str) -> bool:
    """Whether a bubblewrap knows --size, which came with 0.7."""
    with suppress(OSError, subprocess.TimeoutExpired):
        return b"--size" in subprocess.run([tool, "--help"], capture_output=True, timeout=10, check=False).stdout
    return False


def look(tool: str, *, names: bool, search: str | None = None) -> Ground:
    """Return the ground of this machine, for a tool such as `bwrap`. names: with what looks names up; search: the
    folders in which the tool is looked for, None for the PATH of this process."""
    shown = {"/usr": "/usr"}
    links = {}
    for path in _BELOW_ROOT:
        if os.path.islink(path):
            links[path] = os.readlink(path)
        elif os.path.isdir(path):
            shown[path] = path
    for name in (*_ETC, *(_LOOK_UP if names else ())):
        path = f"/etc/{name}"
        if os.path.exists(path):
            shown[path] = os.path.realpath(path)
    python = os.path.realpath(sys.executable)
    script, around = os.path.realpath(relay.__file__), os.path.realpath(seccomp.__file__)
    prefix = os.path.realpath(sys.base_prefix)
    needs = tuple(path for path in (script, prefix, python) if path != "/usr" and not path.startswith("/usr/"))
    kernel, hidden = (tuple(path for path in paths if os.path.exists(path)) for paths in (_KERNEL, _HIDDEN))
    found = shutil.which(tool, path=search) or ""
    sized = tool == "bwrap" and bool(found) and _sized(found)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Ground(shown, links, kernel, hidden, found, python, around, script, needs, os.getuid(), sized, memory)


# What a sandbox shows, and at which place.


_KEYS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".config/gcloud", ".config/gh")


@dataclass(frozen=True, slots=True)
class Place:
    """A file or directory `source` of this machine, shown at `at`. identity: which one it was, as DEVICE:INODE."""

    at: str
    source: str
    writable: bool = False
    identity: str = ""


def places(scene: SandboxRun, keys_of: str) -> list[Place]:
    """Return what is shown, in the order in which it is to be mounted; keys_of: the home whose keys stay hidden.

    Errors: NoSandbox; OSError.
    """
    held = scene.held
    if held.loose:
        raise NoSandbox(*held.loose)
    own = {scene.workspace, scene.home, *scene.writable}
    wide = [
        *(_place(at, writable=True) for at in own),
        *(_place(at) for at in (*scene.shown, *held.shown, *filter(None, [scene.way_out])) if at not in own),
    ]
    keys = [f"{keys_of}/{name}" for name in _KEYS] if keys_of else []
    if scene.others and (led := next((place for place in wide if place.at == scene.workspace != place.source), None)):
        raise NoSandbox(f"{led.at} was exchanged for a link to {led.source}", "keep one agent at a time in a folder")
    for place in wide:
        _check(place, scene.hidden, "the spool", "keep workspaces, homes and settings outside of it")
        _check(place, keys, "a person's keys", "show a smaller folder")
    narrow = [
        *(_place(at, writable=True) for at in (*held.above, *held.pinned)),
        *(_place(at) for at in (*held.fixed, *(at for at in scene.fixed if os.path.lexists(at)))),
    ]
    for place in narrow:
        if not _inside(place.source, [each.source for each in wide if each.writable]):
            raise NoSandbox(
                f"{place.at} is a link out of what the agent may write, to {place.source}",
                "replace the link by what it names",
            )
    narrow += [replace(_place(scene.empty), at=at) for at in held.absent]
    # A place below another one comes later, or it would be hidden by it.
    return [*sorted(wide, key=_depth), *sorted(narrow, key=_depth)]


def _depth(place: Place) -> int:
    return place.at.count("/")


def _place(at: str, *, writable: bool = False) -> Place:
    if not at.startswith("/") or os.path.normpath(at) != at:
        raise NoSandbox(f"{at!r} is no absolute path in its plain form", "write it out from / on")
    if not os.path.exists(at):
        raise NoSandbox(f"{at} is to be shown in a sandbox, and is not there", "make it first")
    # Path and identity are of one look: a path may lead elsewhere a moment later.
    opened = os.open(at, os.O_PATH | os.O_CLOEXEC)
    try:
        return Place(at, os.readlink(f"/proc/self/fd/{opened}"), writable, relay.identity_of(opened))
    finally:
        os.close(opened)


def _check(place: Place, hidden: Iterable[str], what: str, fix: str) -> None:
    for path in hidden:
        real = os.path.realpath(path)
        if not os.path.lexists(path):
            continue
        if _inside(place.source, [real]) or _inside(real, [place.source]):
            raise NoSandbox(f"{place.at} would show {what} ({path}) in a sandbox", fix)


def _inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these, or below one."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


# Which files an agent's own program needs beside it, so that a sandbox can show them.


_BESIDE = ("lib", "lib64", "libexec", "pyvenv.cfg")
_SHOWN_ANYWAY = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")
_MOST = 16


def needed(program: str, path: str) -> list[str]:
    """Return what has to be shown so that a program, looked up in `path`, can run: its file, through all links, its
    packages and libraries, and the interpreter that its first line names. What is below /usr is shown anyway.

    Errors: FileNotFoundError.
    """
    found: dict[str, None] = {}
    todo = [program]
    while todo and len(found) < _MOST * 4:
        name = todo.pop()
        file = shutil.which(name, path=path)
        if file is None:
            raise FileNotFoundError(f"there is no program {name} in {path}")
        for step in _links(os.path.abspath(file)):
            found |= {} if step.startswith(_SHOWN_ANYWAY) else dict.fromkeys(_beside(step))
        todo += [each for each in _interpreter(os.path.realpath(file)) if each not in found]
    return [each for each in found if not each.startswith(_SHOWN_ANYWAY)]


def _links(file: str) -> list[str]:
    """Return a file, and all that it is a link to, one after another."""
    steps = [file]
    while os.path.islink(steps[-1]) and len(steps) < _MOST:
        steps.append(os.path.abspath(os.path.join(os.path.dirname(steps[-1]), os.readlink(steps[-1]))))
    return list(dict.fromkeys([*steps, os.path.realpath(file)]))


def _beside(file: str) -> list[str]:
    above, modules, _ = file.partition("/node_modules/")
    if modules:
        return [f"{above}/node_modules"]
    folder, name = os.path.split(file)
    top = os.path.dirname(folder)
    beside = [f"{top}/{each}" for each in _BESIDE] if os.path.basename(folder) == "bin" else []
    return [f"{folder}/{name}", *(each for each in beside if os.path.exists(each))]


def _interpreter(file: str) -> list[str]:
    """Return the program that a script names in its first line; of `env NAME` the name."""
    with open(file, "rb") as script:
        first = script.readline(256)
    if not first.startswith(b"#!"):
        return []
    words = os.fsdecode(first[2:]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[:1]


def of_python() -> list[str]:
    """Return what has to be shown so that this Python, and what is installed for it, can run."""
    return needed(sys.executable, os.path.dirname(sys.executable))
