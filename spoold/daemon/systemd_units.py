"""The files for systemd: units, drop-ins, account.

Law: the text of a unit is written once, in the files under `systemd/` that ship with the package; here they only get
the path of the `spool` command, and a drop-in that names the spool. Nothing is written or started here.
May touch: its own package's data.
"""

from __future__ import annotations

import posixpath
import re
from importlib import resources
from typing import Literal

Scope = Literal["system", "user"]

MASTER, WORKER = "spool-master.service", "spool-worker@.service"
# For laptops: started by systemd, or by NetworkManager before it takes the network down; leave to stay awake.
SLEEP = "spool-sleep.service"
NETWORK = "etc/NetworkManager/dispatcher.d/pre-down.d/50-spoold"
POLICY = "etc/polkit-1/rules.d/50-spoold.rules"
# The command in the shipped files, which are complete and can be installed with `cp`.
EXECUTABLE: dict[Scope, str] = {"system": "/usr/local/bin/spool", "user": "%h/.local/bin/spool"}
# The folder of units: below / for the system, below ~/.config (or XDG_CONFIG_HOME) for a user.
FOLDER: dict[Scope, str] = {"system": "etc/systemd/system", "user": "systemd/user"}

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


def shipped(path: str) -> str:
    """Return a file of `systemd/` as it ships, by its path there. Errors: FileNotFoundError."""
    return resources.files("spoold.daemon").joinpath("systemd", *path.split("/")).read_text(encoding="utf-8")


def render(scope: Scope, spool_dir: str, name: str, executable: str | None = None) -> dict[str, str]:
    """Return every file that a machine needs to serve a spool: path -> text; equal input gives equal output.

    spool_dir is absolute; name is the worker's instance (spool-worker@NAME, /etc/spoold/NAME.toml); executable is
    the absolute path of `spool`, if not the usual one. Paths are relative: to / for the system, to ~/.config for a
    user. Errors: ValueError that names the fix.
    """
    _check(scope, spool_dir, name, executable)
    folder = FOLDER[scope]
    files = {f"{folder}/{unit}": _unit(scope, unit, executable) for unit in (MASTER, WORKER)}
    files[f"{folder}/{MASTER}.d/50-spool.conf"] = _drop_in(scope, spool_dir)
    instance = WORKER.replace("@", f"@{name}")
    files[f"{folder}/{instance}.d/50-spool.conf"] = _drop_in(scope, spool_dir)
    if scope == "system":
        files["etc/sysusers.d/spoold.conf"] = shipped("sysusers.d/spoold.conf")
        files["etc/tmpfiles.d/spoold.conf"] = shipped("tmpfiles.d/spoold.conf")
        files[f"{folder}/{SLEEP}"] = shipped(f"system/{SLEEP}")
        files[NETWORK] = shipped("networkmanager/50-spoold")
        files[POLICY] = shipped("polkit/50-spoold.rules")
    return files


def _unit(scope: Scope, unit: str, executable: str | None) -> str:
    """Return a shipped unit with this machine's path of the command."""
    text = shipped(f"{scope}/{unit}")
    if executable is None:
        return text
    return text.replace(f"ExecStart={EXECUTABLE[scope]} ", f"ExecStart={_quoted(executable)} ")


def _drop_in(scope: Scope, spool_dir: str) -> str:
    """Return the drop-in that names the spool: the one place to change when the share is mounted elsewhere."""
    # Only the system's manager can mount a share; a user's would wait in vain. With RequiresMountsFor= a share that
    # comes late would leave the unit down for ever; with Wants= the mount is tried again at every restart.
    mounts = " ".join(_mounts(spool_dir))
    mount = f"[Unit]\nWants={mounts}\nAfter={mounts}\n\n" if scope == "system" else ""
    variable = _quoted(f"SPOOL_DIR={spool_dir}")
    return f"# Written by `spool install-units`.\n{mount}[Service]\nEnvironment={variable}\n"


def _mounts(spool_dir: str) -> list[str]:
    """Return the units of all mounts that may hold the directory; systemd skips those that do not exist."""
    parts = posixpath.normpath(spool_dir).strip("/").split("/")
    return [_escaped("/".join(parts[: depth + 1])) + ".mount" for depth in range(len(parts))]


def _escaped(path: str) -> str:
    """Return a path without its first slash as systemd.unit(5) spells it in the name of a unit."""
    plain = re.compile(rb"[A-Za-z0-9:_.]")
    letters = [bytes([byte]) for byte in path.encode()]
    spelt = [
        "-" if letter == b"/" else letter.decode() if plain.match(letter) else f"\\x{letter[0]:02x}"
        for letter in letters
    ]
    return "".join(spelt) if not path.startswith(".") else "\\x2e" + "".join(spelt[1:])


def _quoted(value: str) -> str:
    """Return a value in the form of systemd.syntax(7): % is doubled, and quotes are set only where needed."""
    value = value.replace("%", "%%")
    if re.fullmatch(r"[A-Za-z0-9_./:=@%+-]+", value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _check(scope: Scope, spool_dir: str, name: str, executable: str | None) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a unit; use 1 to 63 letters, digits, _ . - and no leading dot")
    for path in (spool_dir, *([] if executable is None else [executable])):
        if not path.startswith("/") or not path.isprintable():
            raise ValueError(f"{path!r} is no absolute path in printable characters; a unit can hold no other")
    if scope == "system" and re.match(r"(/var)?/tmp(/|$)", spool_dir):
        raise ValueError(f"{spool_dir} is hidden from services, which have a /tmp of their own; use another place")
