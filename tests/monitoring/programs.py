"""Debian's Prometheus and its promtool, where they are, and what they answer.

Law: where they are missing a test is skipped and says why; it never passes without them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest

from tests.docs.manual import CHECKOUT

MONITORING = CHECKOUT / "docs" / "monitoring"
WITHIN_S = 60


def program(name: str) -> str:
    """The path of a program; without it the test is skipped."""
    found = shutil.which(name)
    if found is None:
        why = os.environ.get("SPOOLD_WITHOUT_PROMETHEUS") or "tools/monitoring gets it from Debian"
        pytest.skip(f"{name} is not installed here: {why}")
    return found


def promtool(*words: str, stdin: str = "") -> str:
    """What promtool says, which must be content."""
    command = [program("promtool"), *words]
    done = subprocess.run(
        command, cwd=MONITORING, input=stdin, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Prometheus:
    """One that runs, seen through its API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer. Errors: AssertionError with what it says, OSError."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=WITHIN_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {query}: {error.read().decode()}") from None

    def query(self, expression: str) -> list[Any]:
        """The rows of an expression now."""
        found = self.get("query", query=expression)["result"]
        assert isinstance(found, list)
        return found

    def alerts(self) -> dict[str, str]:
        """The alerts that are pending or fire: name → state."""
        return {one["labels"]["alertname"]: one["state"] for one in self.get("alerts")["alerts"]}

    def ready(self) -> bool:
        """Whether it answers queries."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=WITHIN_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
