"""The peers' own environment: pinned versions in a venv beside ours, and what Debian has of the rest.

Law: nothing of theirs is in our pyproject. What cannot be installed is said to be missing, with the reason, and never
left out in silence. Touches: the folder `peers` in the tools' environment; with root on Debian, `apt-get install`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# What each peer needs. A peer is installed by itself, so that one that is not to be had costs only itself.
PINS: Mapping[str, tuple[str, ...]] = {
    "huey": ("huey==3.5.4",),
    "celery": ("celery==5.7.0", "kombu==5.7.0"),
    "dirq": ("dirq==1.8",),
    "jug": ("Jug==2.7.0",),
    "hyperqueue": ("hyperqueue==0.27.0",),
}
PROGRAMS = ("nq", "strace")
APT_WITHIN_S = 180.0


class Peers:
    """Makes or finds the environment. missing: what is not there, and why."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.missing: dict[str, str] = {}

    @property
    def python(self) -> str:
        """The interpreter in which the peers are installed."""
        return str(self.home / "bin" / "python")

    def install(self) -> None:
        """Everything that is not there yet. Never raises for a peer that is not to be had: it is in `missing`."""
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with (self.home.parent / "peers.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._install_packages()
            for program in PROGRAMS:
                if shutil.which(program) is None and (why := _apt(program)):
                    self.missing[program] = why

    def _install_packages(self) -> None:
        mark, wanted = self.home / "spoold.stamp", _stamp()
        if mark.exists() and mark.read_text().splitlines()[:1] == [wanted]:
            return
        print(f"tools/bench: making the peers' environment in {self.home}", file=sys.stderr)
        made = _run(sys.executable, "-m", "venv", "--clear", str(self.home))
        if made:
            self.missing |= dict.fromkeys(PINS, f"no environment for it: {made}")
            return
        for peer, pins in PINS.items():
            why = _run(self.python, "-m", "pip", "install", "--quiet", "--no-input", *pins)
            if why:
                self.missing[peer] = f"pip could not install {' '.join(pins)}: {why}"
        if not self.missing:
            mark.write_text(f"{wanted}\n")


def _stamp() -> str:
    return hashlib.sha256(repr((sys.version, sorted(PINS.items()))).encode()).hexdigest()


def _run(*command: str) -> str:
    """Run it; '' if it went well, else the end of what it said."""
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environ)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()[-300:] or f"status {done.returncode}"


def _apt(package: str) -> str:
    """Install Debian's package of that name; '' if it is there then, else why not."""
    if shutil.which("apt-get") is None:
        return f"it is not installed, and there is no apt-get to install {package} with"
    if os.geteuid() != 0:
        return f"it is not installed; as root: apt-get install {package}"
    try:
        done = subprocess.run(
            ["apt-get", "install", "-y", "-qq", package],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=APT_WITHIN_S,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    except subprocess.TimeoutExpired:
        return f"apt-get install {package} took longer than {APT_WITHIN_S:g} s"
    return "" if shutil.which(package) else f"apt-get install {package}: {done.stderr.strip()[-200:]}"
