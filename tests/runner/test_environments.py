"""A callable sees the environment that its worker runs in: what `python -c` of that environment would see."""

from __future__ import annotations

import json
import os
import random
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.runner import start_checks
from tests.runner.environments import BASE, Environment, draw

SEEDS = 12
# What a worker needs beside its interpreter: this checkout, and what is installed for the tests.
OURS = [str(Path(__file__).parents[2]), *site.getsitepackages()]
CALLED = Path(__file__).with_name("called.py")
SEEN = """
import importlib, importlib.metadata, sys
def found(name):
    try:
        return importlib.import_module(name).WHERE
    except ImportError as error:
        return str(error)
def seen(modules):
    own = __file__.rpartition("/")[0]
    return {
        "prefix": [sys.prefix, sys.base_prefix, sys.exec_prefix],
        "executable": sys.executable,
        "path": [entry for entry in sys.path if entry != own],
        "distributions": sorted({str(one.metadata["Name"]) for one in importlib.metadata.distributions()}),
        "modules": {name: found(name) for name in modules},
    }
"""


def told(python: str | Path, where: Path, here: Environment, target: str, **options: str) -> Any:
    """What a function says that a worker of this interpreter calls."""
    plan = {
        "ours": OURS,
        "env": here.variables,
        "options": options,
        "target": target,
        "modules": here.modules,
        "where": str(where),
    }
    done = subprocess.run(
        [str(python), str(CALLED)],
        input=f"{json.dumps(plan)}\n",
        env=here.variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    kind, message, value = json.loads(done.stdout)
    assert kind == "exited", message
    return value


def plainly(here: Environment, where: Path) -> Any:
    """What the interpreter says by itself, from a folder of no meaning."""
    script = f"import sys, json; sys.path.insert(0, {str(where)!r}); import look; "
    script += f"print(json.dumps(look.seen({here.modules!r})))"
    command = [str(here.python), "-P", "-c", script]
    done = subprocess.run(command, env=here.variables, cwd="/", stdout=subprocess.PIPE, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_callable_sees_what_its_worker_would(seed: int, tmp_path: Path) -> None:
    """N36: it saw the base interpreter's packages, and none of the worker's."""
    here = draw(random.Random(seed), tmp_path)
    (tmp_path / "look.py").write_text(SEEN)
    assert told(here.python, tmp_path, here, "look:seen") == plainly(here, tmp_path), here.made


def test_another_interpreter_may_be_named(tmp_path: Path) -> None:
    here = Environment(Path(BASE), {"PATH": os.defpath, "HOME": str(tmp_path)})
    other = tmp_path / "other"
    subprocess.run([BASE, "-m", "venv", "--without-pip", str(other)], check=True)
    (tmp_path / "look.py").write_text(SEEN)
    value = told(here.python, tmp_path, here, "look:seen", calls=f"{other}/bin/python")
    assert value["prefix"][0] == str(other)
    assert value == plainly(Environment(other / "bin" / "python", here.variables), tmp_path)


def test_an_interpreter_that_cannot_call_anything_is_named(tmp_path: Path) -> None:
    assert start_checks.useless(sys.executable) is None
    assert "cannot be started" in (start_checks.useless("/no/such/python") or "")
    old = tmp_path / "old"
    for version, problem in (("3.10", "is Python 3.10"), ("no number", "is no Python")):
        old.write_text(f"#!/bin/sh\necho {version}\n")
        old.chmod(0o755)
        assert start_checks.useless(str(old)) == problem
    old.write_text("#!/bin/sh\necho a library is missing >&2; exit 1\n")
    assert start_checks.useless(str(old)) == "is no Python that starts here: a library is missing"
