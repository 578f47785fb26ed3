"""An attempt of an agent without a pool: the files and variables of SPOOL_*, and the program that uses them.

The agent is a script of the test, behind the adapter `generic`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spoold.agents.configuration.profiles import VARIABLE, expand

PATIENCE_S = 60


@dataclass
class Ended:
    """How the attempt ended."""

    code: int
    result: dict[str, Any]
    progress: dict[str, Any]
    said: str


@dataclass
class Desk:
    """One attempt's folder. script: the agent, as Python; profile: more keys of its profile."""

    path: Path
    script: str
    profile: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    deps: Mapping[str, Any] = field(default_factory=dict)
    previous: Any = None
    feedback: Any = None
    cwd: Path | None = None

    def environment(self, task: Mapping[str, Any]) -> dict[str, str]:
        """Write the files of the attempt; returns its variables."""
        folder = self.path / "attempt"
        for name in ("work", "deps"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (self.path / "agent.py").write_text(self.script)
        (folder / "task.json").write_text(json.dumps({"id": "t", "agent": "coder", **task}))
        for name, record in self.deps.items():
            (folder / "deps" / f"{name}.json").write_text(json.dumps(record))
        more = {}
        for variable, value in (("SPOOL_PREVIOUS_FILE", self.previous), ("SPOOL_FEEDBACK_FILE", self.feedback)):
            if value is not None:
                path = folder / f"{variable.lower()}.json"
                path.write_text(json.dumps(value))
                more[variable] = str(path)
        said = {"cli": "generic", "command": [sys.executable, str(self.path / "agent.py")], **self.profile}
        handler = expand({"agents": {"coder": said}}, "worker.toml", {})["handlers"]["coder"]
        own = {
            "SPOOL_TASK_ID": "t",
            "SPOOL_ATTEMPT": "1",
            "SPOOL_ROOT": str(self.path / "no-spool"),
            "SPOOL_TASK_FILE": str(folder / "task.json"),
            "SPOOL_RESULT_FILE": str(folder / "result.json"),
            "SPOOL_PROGRESS_FILE": str(folder / "progress.json"),
            "SPOOL_WORK_DIR": str(folder / "work"),
            "SPOOL_DEPS_DIR": str(folder / "deps"),
            "XDG_STATE_HOME": str(self.path / "state"),
        }
        assert VARIABLE in handler["env"]
        return {**os.environ, **handler["env"], **own, **more, **self.env}

    def start(self, task: Mapping[str, Any]) -> subprocess.Popen[str]:
        """Start the attempt."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "spoold.agents"],
            cwd=self.cwd or self.path / "attempt" / "work",
            env=self.environment(task),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, **task: Any) -> Ended:
        """Run the attempt to its end."""
        self.environment(task)
        process = self.start(task)
        try:
            said, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
        return self.ended(process.returncode, said)

    def ended(self, code: int, said: str) -> Ended:
        """Read what it left."""
        found = []
        for name in ("result.json", "progress.json"):
            path = self.path / "attempt" / name
            found.append(json.loads(path.read_text()) if path.exists() else {})
        return Ended(code, found[0], found[1], said)

    @property
    def work(self) -> Path:
        """Its own folder."""
        return self.path / "attempt" / "work"
