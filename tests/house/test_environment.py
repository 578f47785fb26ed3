"""The tests see the lock's packages and nothing else: one beside them would hide that something is missing (N36)."""

from __future__ import annotations

import importlib.metadata
import os
import re
import site
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from tests.house.sources import CHECKOUT
from tools import environment

PREFIX = Path(sys.prefix).resolve()
# Prints what an interpreter can import beside the standard library.
ASK = """
import importlib.metadata, os, sys
beside = [entry for entry in sys.path if entry.endswith("-packages") and os.listdir(entry)]
print(*beside, *(each.metadata["Name"] for each in importlib.metadata.distributions()), sep="; ", end="")
"""


def test_the_tests_see_only_their_environment_and_the_checkout() -> None:
    assert sys.prefix != sys.base_prefix, "run the tests with tools/test"
    assert not site.ENABLE_USER_SITE
    known = [PREFIX, CHECKOUT, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))]
    # An absent folder or archive brings nothing: Debian names some that nobody makes.
    seen = [Path(entry).resolve() for entry in sys.path if os.path.exists(entry)]
    assert [entry for entry in seen if not any(entry.is_relative_to(each) for each in known)] == []


def test_only_what_the_lock_names_is_installed() -> None:
    lock = tomllib.loads((CHECKOUT / "uv.lock").read_text())
    locked = {f"{each['name']} {each['version']}" for each in lock["package"] if "version" in each}
    own = {"spoold"}
    found = {
        f"{re.sub('[-_.]+', '-', each.metadata['Name']).lower()} {each.version}"
        for each in importlib.metadata.distributions()
        if each.metadata["Name"] not in own
    }
    assert found - locked == set()


def test_the_interpreter_below_has_no_packages() -> None:
    """Supervisors run in it, and so did callables (N36)."""
    base = os.path.realpath(sys.executable)
    done = subprocess.run([base, "-I", "-c", ASK], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_a_first_demo_installs_what_spoold_needs_at_run_time_and_no_more() -> None:
    lock = tomllib.loads((CHECKOUT / "uv.lock").read_text())
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    names = {line.partition("==")[0] for line in environment.requirements(lock, environment.RUN_TIME)}
    assert names >= {re.split("[<>=]", each)[0] for each in project["dependencies"]}
    assert names == environment.needed(lock, ["spoold", environment.BUILDER]) - {"spoold"}
    everything = {line.partition("==")[0] for line in environment.requirements(lock)}
    assert names < everything
    assert everything - names >= {"mypy", "pytest", "ruff", "textual"}


def test_a_tool_that_a_tool_starts_makes_no_environment_anew() -> None:
    """It finds another Python of the same version first: the environment's own, or the one below that."""
    found = [
        subprocess.run(
            [python, "-B", "tools/environment.py"], capture_output=True, text=True, check=True, cwd=CHECKOUT
        )
        for python in (sys.executable, os.path.realpath(sys.executable))
    ]
    assert {(each.stdout.strip(), each.stderr) for each in found} == {(str(PREFIX), "")}
