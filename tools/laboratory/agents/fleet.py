"""Workers with real agents on a lab: a repository on the share, workspaces on the disk of each laptop.

May touch: the share, /run and the own disk of the laptops, and every process in a guest that was started here.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.agents.playing import MODELS
from tools.demonstration.agents.mind import SUITE
from tools.laboratory.matrix.pool import Pool
from tools.laboratory.protocols import EXPORT, SHARE

REPOSITORY = f"{SHARE}/app.git"
DISK = "/srv/disk"
SETTINGS = """[types.merge]
priority = "high"
"""
PROFILE = """[agents.{cli}]
cli = "{cli}"
model = "{model}"
env = {{OPENAI_API_KEY = "none", OPENAI_BASE_URL = "{url}/v1"{env}}}
workspace = {{repo = "{repo}", dir = "{disk}/workspaces"}}
allow_accept = true
then = "merge"
accept_timeout = 300

"""
MERGER = """[handlers.merge]
command = [
    "{python}", "-P", "-m", "spoold.agents.merge", "--test", "{suite}", "--repo", "{repo}", "--dir", "{disk}/merges",
]
env = {{{env}}}
timeout = 1800
"""


@dataclass(slots=True)
class Fleet(Pool):
    """clis: the command line of each agent, and the folder of its program; url: of the model; slots: agents at once
    on each laptop."""

    clis: dict[str, Path] = field(default_factory=dict)
    url: str = ""
    slots: int = 4

    def share(self, repository: Path) -> None:
        """Put a copy of a bare repository on the share, as a user would. Errors: Failed."""
        self.lab.on("laptop1").run("git", "clone", "-q", "--bare", str(repository), REPOSITORY, timeout=120)

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
        env = ", ".join(f'{name} = "{value}"' for name, value in self.env.items())
        common = {"repo": REPOSITORY, "disk": DISK, "url": self.url}
        profiles = [
            PROFILE.format(cli=cli, model=MODELS.get(cli, "scripted"), env=f", {env}" if env else "", **common)
            for cli in self.clis
        ]
        return "".join(profiles) + MERGER.format(python=sys.executable, suite=SUITE, env=env, **common)
