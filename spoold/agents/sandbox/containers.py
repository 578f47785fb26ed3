"""What podman is started with, and what it keeps of a container whose processes were killed.

Podman keeps each container in a storage of its own: outside of the processes of an attempt, and of its folders. One
that ends is removed by podman itself. One whose processes are killed stays, and nothing that ends processes finds it.
So each carries as labels the attempt whose it is, and the process that made it, of which its name is made, too. It is
removed once the program in it was ended, at the latest when its sandbox is left. What a killed process left is
removed by the next one that makes a sandbox with podman here: an attempt, the check of a worker, or `spool doctor`.

Law: what podman reads is the worker's own, or its file's, and never a task's: `own_variables` says what that is. A
container goes only with its process. With one that lives, or of which nobody can say, it stays.

Touches: files, processes.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from spoold.system.host import HostIdentity, ProcessIdentity, SystemHost, surely_gone

# What podman(1) and containers-storage.conf(5) say that it reads. Not the ways to one elsewhere (CONTAINER_HOST): its
# containers would not be below the process that starts them. And no keys of registries, since nothing is fetched.
OWN = (
    *("HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"),
    *("CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE", "CONTAINERS_REGISTRIES_CONF", "CONTAINERS_STORAGE_CONF"),
    *("STORAGE_DRIVER", "STORAGE_OPTS", "DBUS_SESSION_BUS_ADDRESS"),
)
ATTEMPT, HOLDER = "spoold.attempt", "spoold.holder"
_ROW = f'{{{{.ID}}}} {{{{.Names}}}} {{{{index .Labels "{HOLDER}"}}}}'
# How long (s) podman may take to list or to remove, and how often it is asked to remove: of a container whose
# processes were killed it finds that out the first time, and says that it cannot.
_WITHIN_S, _TRIES = 30.0, 3


def own_variables(*said: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that podman itself is started with. said: the environment of the worker, and what its file
    says besides, of which the last counts."""
    return {name: values[name] for values in said for name in OWN if name in values}


def program(own: Mapping[str, str]) -> str:
    """Return where podman is; '' for nowhere. own: as of `own_variables`."""
    return shutil.which("podman", path=own.get("PATH", os.defpath)) or ""


def holder(run: str) -> str:
    """Return what a container says of the process that makes it. run: a word for one sandbox of this process."""
    host = SystemHost()
    here, process = host.identity(), host.process()
    where = (here.machine_id, here.boot_id, here.pid_namespace, here.time_namespace)
    start = "" if process.start_time is None else process.start_time
    return ":".join(map(str, (*where, process.pid, start, run)))


def new_name(said: str) -> str:
    """Return a name for a container, made of what it says of the process that makes it. One that a person made from
    an image of ours has the labels of that image, and another name."""
    return f"{_named(said)}{secrets.token_hex(8)}"


def _named(said: str) -> str:
    return f"spoold-{hashlib.sha256(said.encode()).hexdigest()[:24]}-"


def clear(own: Mapping[str, str], mine: str = "") -> None:
    """Remove the containers of processes that are gone, and those of one sandbox of this process: mine, as of
    `holder`. own: as of `own_variables`. Errors: none; what stays is removed by the next."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        listed = _podman(own, "ps", "--all", "--no-trunc", f"--filter=label={HOLDER}", f"--format={_ROW}").stdout
        rows = [row.split(" ") for row in listed.splitlines()]
        ours = [(row[0], row[2]) for row in rows if len(row) == 3 and row[2] and row[1].startswith(_named(row[2]))]
        left = [each for each, whose in ours if whose == mine or _is_gone(whose)]
        for _ in range(_TRIES if left else 0):
            if not _podman(own, "rm", "--force", "--ignore", "--volumes", *left).returncode:
                break


def _podman(own: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(own) or "podman", *words],
        env=dict(own),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_WITHIN_S,
        check=False,
        text=True,
        errors="replace",
    )


def _is_gone(said: str) -> bool:
    """Whether the process is gone that a container says has made it. False in doubt."""
    parts = said.split(":")
    if len(parts) != 7:
        return False
    host, then = SystemHost(), HostIdentity("", *parts[:4])
    here = host.identity()
    if then.boot_id != here.boot_id and "" not in (then.boot_id, here.boot_id):
        # The storage is one machine's, and so is its name. A home that several share has containers of all.
        return then.machine_id == here.machine_id != ""
    return surely_gone(then, ProcessIdentity(int(parts[4]), int(parts[5]) if parts[5] else None), host)
