"""The cluster of tools/demo agents: three laptops that offer coding agents and merges, each with a disk of its own.

Law: as of every cluster. What a worker may do stands in its file, as on a real machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools.demonstration.agents.installing import Cli
from tools.demonstration.agents.mind import SUITE
from tools.demonstration.cluster import Cluster

# Several agents that start at once may keep a small machine from its beats for some seconds.
BEAT_S, MISSES = 1.0, 10
# All that an agent has started ends with it; on a busy machine that takes longer than the end of a command.
ALL_GONE_S = 10.0
MANY_CPUS = 6
LIMIT = "model"
SETTINGS = f"""# Written by tools/demo agents: a dead laptop is noticed sooner than by default.
[heartbeat]
interval_s = {BEAT_S:g}
misses = {MISSES}

[limits.{LIMIT}]
max = 6

[types.coder]
uses = ["{LIMIT}"]
"""
PROFILES = """# Written by tools/demo agents.
[agents.planner]
{cli}
workspace = {{repo = "{repo}", dir = "{disk}"}}
allow_repos = ["{repo}"]
idle_timeout = 90

[agents.coder]
{cli}
limit = "{limit}"
workspace = {{repo = "{repo}", dir = "{disk}"}}
allow_repos = ["{repo}"]
allow_accept = true
idle_timeout = 90

[handlers.merge]
command = ["{python}", "-P", "-m", "spoold.agents.merge", "--test", "{suite}", "--repo", "{repo}", "--dir", "{disk}"]
timeout = 200
"""


class Laptops(Cluster):
    """Three laptops. arm: says which agents they have, before they are started."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)
        self.all_gone_s = ALL_GONE_S
        self._cli, self._url, self._repository = Cli("generic", ""), "", Path()

    def arm(self, cli: Cli, url: str, repository: Path) -> None:
        """Take over which agent is started, where its model is, and on which repository it works."""
        if cli.folder is not None and (os.cpu_count() or 1) < MANY_CPUS:
            self.slots = 1  # each start of a real one keeps a processor busy for seconds
        self._cli, self._url, self._repository = cli, url, repository

    def worker_options(self, laptop: str) -> tuple[str, ...]:
        """Return the options of a worker: its file, which is written here."""
        disk, file = self.scratch / laptop, self.scratch / f"{laptop}.toml"
        disk.mkdir()
        text = PROFILES.format(
            cli=self._cli.profile(self._url),
            repo=self._repository,
            disk=disk / "workspaces",
            limit=LIMIT,
            python=sys.executable,
            suite=SUITE,
        )
        file.write_text(text, encoding="utf-8")
        return "--config", str(file)

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment of a process: what it keeps is on its own disk, and the agent is on its PATH."""
        made = {**super().environment(name), "XDG_STATE_HOME": str(self.scratch / (name or "desk") / "state")}
        if self._cli.folder is not None:
            made["PATH"] = f"{self._cli.folder}:{made['PATH']}"
        return made
