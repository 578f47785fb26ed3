"""An agent's command line, from npm into a cache folder: installed once, or a sentence that says why it is not there.

Law: nothing is installed outside of the cache, and npm is ended, with all that it started, when its time is over.
Touches: the cache folder, the network, processes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.agents.playing import MODELS

PACKAGES = {"opencode": "opencode-ai@1.18.33", "qwen": "@qwen-code/qwen-code@0.24.4"}
GENERIC = "generic"
CHOICES = (*PACKAGES, GENERIC)
INSTALL_S, VERSION_S = 120.0, 40.0
OWN = Path(__file__).with_name("agent.py")


@dataclass(frozen=True, slots=True)
class Cli:
    """An agent that can be started. name: of its adapter; said: what it is, for people; folder: where its program
    lies, None for our own.
    """

    name: str
    said: str
    folder: Path | None = None

    def profile(self, url: str) -> str:
        """The lines of a profile that start it with the model at this address."""
        if self.folder is None:
            return f'cli = "{GENERIC}"\ncommand = ["{sys.executable}", "-I", "{OWN}", "{url}"]'
        model = MODELS.get(self.name, "scripted")
        env = f'{{OPENAI_API_KEY = "none", OPENAI_BASE_URL = "{url}/v1"}}'
        return f'cli = "{self.name}"\nmodel = "{model}"\nenv = {env}'


class NotThere(Exception):
    """It cannot be installed or started; says why."""


def find(name: str, cache: Path) -> tuple[Cli, str]:
    """The agent of this name, or else our own, and why ('' for nothing)."""
    if name == GENERIC:
        return Cli(GENERIC, "an agent of 60 lines (generic)"), ""
    try:
        return _installed(name, cache / f"{name}-{PACKAGES[name].rpartition('@')[2]}"), ""
    except (NotThere, OSError) as error:
        return Cli(GENERIC, "an agent of 60 lines (generic)"), str(error)


def _installed(name: str, folder: Path) -> Cli:
    program = folder / "node_modules" / ".bin" / name
    if not program.exists():
        if shutil.which("npm") is None:
            raise NotThere("there is no npm on the PATH")
        folder.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
        _run([*words, PACKAGES[name]], INSTALL_S, folder)
    version = _run([str(program), "--version"], VERSION_S, folder).strip().splitlines()
    return Cli(name, f"{name} {version[0] if version else '(of an unknown version)'}", program.parent)


def _run(words: list[str], within_s: float, folder: Path) -> str:
    """What a program prints. Errors: NotThere that says what it was, and its last words."""
    what = " ".join(Path(words[0]).name if word is words[0] else word for word in words)
    # Caches of npm and of the program stay here; where its registry is, npm reads in the home of its user.
    environ = {**os.environ, "npm_config_cache": str(folder / "npm"), "XDG_DATA_HOME": str(folder / "data")}
    environ |= {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
    process = subprocess.Popen(
        words,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        raise NotThere(f"`{what}` has not ended within {within_s:g} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode:
        last = said.strip().splitlines()
        raise NotThere(f"`{what}` ended with status {process.returncode}: {last[-1] if last else 'no word'}")
    return said
