"""Workers with real agents on a lab: a repository on the share, workspaces on the disk of each laptop.

May touch: the share, /run and the own disk of the laptops, and every process in a guest that was started here.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.agents.playing import MODELS, keys
from tools.demonstration.agents.mind import LARGE, SUITE
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.protocols import EXPORT, SERVER, SHARE

DISK = "/srv/disk"
# The repositories: what most edits are in, one with a submodule, and one with large files.
APP, LINKED = "app", "linked"
NAMES = (APP, LINKED, LARGE)
AGAIN = "The push is tried again in"  # an attempt, in its log
SETTINGS = """[types.merge]
priority = "high"
"""
ACCOUNT = """
[limits.{cli}-account]
max = {units}

[types.{cli}]
uses = ["{cli}-account"]
"""
PROFILE = """[agents.{cli}]
cli = "{cli}"
model = "{model}"
env = {{{env}}}
workspace = {{repo = "{repo}", dir = "{disk}/workspaces", submodules = "fetch"}}
allow_repos = {allowed}
allow_accept = true
then = "merge"
accept_timeout = 300
{more}
"""
MERGER = """[handlers.merge]
command = [
    "{python}", "-P", "-m", "spoold.agents.merge", "--test", "{suite}", {repos}, "--dir", "{disk}/merges",
]
env = {{{env}}}
timeout = 1800
"""


def repository(name: str) -> str:
    """Return the address of a repository: one with files of git-lfs as a path of the share, where git-lfs needs no
    server of its own; all others on the git server."""
    return f"{SHARE}/{name}.git" if name == LARGE else f"git://{SERVER}/{name}.git"


@dataclass(slots=True)
class Fleet(Pool):
    """clis: the command line of each agent, and the folder of its program; url: of the model; slots: agents at once
    on each laptop; account: the command line that has a limit, and another one in its place; '' for none.
    """

    clis: dict[str, Path] = field(default_factory=dict)
    url: str = ""
    slots: int = 4
    account: str = ""
    _git: int = 0

    @property
    def settings(self) -> str:
        """The file of the spool."""
        return SETTINGS + (ACCOUNT.format(cli=self.account, units=9) if self.account else "")

    def share(self, path: Path) -> None:
        """Put a copy of a bare repository on the share, as a user would. Errors: Failed."""
        words = ("git", "clone", "-q", "--bare", str(path), f"{SHARE}/{path.name}")
        self.lab.on("laptop1").run(*words, timeout=120)

    def serve(self) -> None:
        """Start the git server, on the share's own disk. Errors: Failed."""
        words = ("git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", f"--base-path={EXPORT}")
        self._git = self.lab.on("server").start(*words, EXPORT, log="/run/git.log")

    def end_server(self) -> None:
        """Kill the git server, with all connections. Errors: Failed."""
        self.lab.on("server").run("pkill", "-KILL", "-s", str(self._git))

    def start(self, laptop: str, role: str) -> None:
        """Start a worker or a master there."""
        guest, options = self.lab.on(laptop), ["--name", laptop]
        if role == "worker":
            guest.shell(f"mkdir -p {DISK}/home {DISK}/state")
            guest.put(self.configuration().encode(), "/run/worker.toml")
            options += ["--slots", str(self.slots), "--config", "/run/worker.toml"]
        path = ":".join([*map(str, dict.fromkeys(self.clis.values())), os.environ["PATH"]])
        env = {**self.env, "PATH": path, "HOME": f"{DISK}/home", "XDG_STATE_HOME": f"{DISK}/state"}
        words = (*self.command, "--spool", self.root_on(laptop), role, *options)
        self.pids[laptop, role] = guest.start(*words, log=f"/run/{role}.log", env=env)

    def tries_again(self, tasks: Sequence[str]) -> bool:
        """Whether an attempt of these tasks has said that it tries its push again. Errors: Failed."""
        logs = " ".join(f"logs/{task}.*" for task in tasks)
        return bool(self.on_disk(f"grep -ls '{AGAIN}' {logs} || true").strip())

    def power_cut(self, laptop: str) -> None:
        """Pull the plug of a laptop. What it ran stays in `pids`, so that `boot` starts it again."""
        self.lab.kill(laptop)

    def claimed_by(self, laptop: str) -> list[str]:
        """The tasks that the workers of a laptop have, by their ids, also of one that is dead."""
        return self.on_disk(f"ls -d claimed/{laptop}-*/*.json 2>/dev/null | sed 's,.*/,,' || true").split()

    def fetch(self, folder: Path) -> None:
        """Copy all of the share from the server's own disk into a folder of the host. Errors: Failed."""
        packed = self.lab.on("server").shell(f"tar -C {EXPORT} -cz . | base64 -w0", timeout=300)
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as found:
            found.extractall(folder, filter="fully_trusted")

    def configuration(self) -> str:
        """The file of a worker."""
        own = _listed(self.env)
        repos = [repository(name) for name in NAMES]
        profiles = [
            PROFILE.format(
                cli=cli,
                model=MODELS.get(cli, "scripted"),
                env=_listed(keys(cli, self.url) | self.env),
                repo=repos[0],
                allowed=json.dumps(repos),
                disk=DISK,
                more=self._instead() if cli == self.account else "",
            )
            for cli in self.clis
        ]
        named = ", ".join(f'"--repo", "{repo}"' for repo in repos)
        merger = MERGER.format(python=sys.executable, suite=SUITE, env=own, repos=named, disk=DISK)
        return "".join(profiles) + merger

    @property
    def other(self) -> str:
        """The command line that takes the tasks of the one whose account is closed: the next one."""
        names = list(self.clis)
        return names[(names.index(self.account) + 1) % len(names)]

    def _instead(self) -> str:
        return f'limit = "{self.account}-account"\ninstead = ["{self.other}"]\n'


def _listed(env: Mapping[str, str]) -> str:
    return ", ".join(f'{name} = "{value}"' for name, value in env.items())
