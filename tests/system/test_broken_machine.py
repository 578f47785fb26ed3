"""Files of the kernel that cannot be read, or hold anything, are unknown values, and never the end of a node."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("broken_machine.py")
SEEDS = 4


def play(*arguments: str) -> list[dict[str, Any]]:
    """Run the driver where its mounts are seen by nobody else."""
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace of its own may be made here")
    done = subprocess.run([*alone, sys.executable, DRIVER, *arguments], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_node_works_whatever_the_kernel_shows() -> None:
    """N6, and its neighbours: the seed of a failure is in the message."""
    seeds = [random.randrange(10**6) for _ in range(SEEDS)]
    played = play(*map(str, seeds))
    assert [one["came"] for one in played] == ["completed/t of 2 nodes"] * SEEDS, played


def test_a_node_works_without_proc_meminfo() -> None:
    """N6: lxcfs died, so that reading /proc/meminfo is an error; and ProcSubset=pid, which also hides /proc/stat."""
    played = play("meminfo", "subset")
    assert [one["came"] for one in played] == ["completed/t of 2 nodes"] * 2, played
