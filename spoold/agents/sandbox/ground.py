"""What of this machine every sandbox shows: programs, libraries, certificates, and what looks names up.

Law: only what every user of the machine may read anyway, and nothing that is a person's. No key, no home, no /run.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from spoold.agents.sandbox import calls, inside

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
    python: an interpreter that starts `calls` outside, and in the sandbox `inside`, which needs `inside_needs`;
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


def look(tool: str, *, names: bool) -> Ground:
    """Return the ground of this machine, for a tool such as `bwrap`. names: with what looks names up."""
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
    script, around = os.path.realpath(inside.__file__), os.path.realpath(calls.__file__)
    prefix = os.path.realpath(sys.base_prefix)
    needs = tuple(path for path in (script, prefix, python) if path != "/usr" and not path.startswith("/usr/"))
    kernel, hidden = (tuple(path for path in paths if os.path.exists(path)) for paths in (_KERNEL, _HIDDEN))
    found = shutil.which(tool) or ""
    sized = tool == "bwrap" and bool(found) and _sized(found)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Ground(shown, links, kernel, hidden, found, python, around, script, needs, os.getuid(), sized, memory)
