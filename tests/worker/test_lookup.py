"""A handler whose program cannot begin on this machine is not offered, and what is lacking is named."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol.heartbeat import Capabilities
from spoold.system.clock import ManualClock
from spoold.worker.handlers import availability
from spoold.worker.handlers.availability import LOOKUP_EVERY_S, Lookup, lacking
from spoold.worker.handlers.handler import Handler
from spoold.worker.handlers.worker_config import PythonSettings, WorkerConfig
from spoold.worker.intake.readiness import Offering


def program(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def found(path: Path, *command: str, **handler: Any) -> str | None:
    """What keeps this command from beginning where only this directory is in the PATH."""
    return lacking(Handler.model_validate({"command": command, **handler}), {"PATH": f"{path}:/nowhere"})


def test_a_program_in_the_path_or_by_its_full_name_is_found(tmp_path: Path) -> None:
    codex = program(tmp_path / "codex")
    assert found(tmp_path, "codex", "--path", "{input.path}") is None
    assert found(tmp_path, str(codex)) is None
    assert found(tmp_path / "else", "codex", env={"PATH": str(tmp_path)}) is None


def test_one_that_is_nowhere_is_named(tmp_path: Path) -> None:
    assert found(tmp_path, "codex") == "it lacks the program codex, which is nowhere in its PATH"
    assert found(tmp_path, "/opt/no/codex") == "it lacks the program /opt/no/codex"
    (tmp_path / "codex").mkdir()
    assert found(tmp_path, "codex") == "it lacks the program codex, which is nowhere in its PATH"


def test_one_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    codex = program(tmp_path / "codex", mode=0o644)
    assert found(tmp_path, "codex") == f"it may not execute {codex}"


def test_a_directory_of_the_handler_that_is_not_there_is_named(tmp_path: Path) -> None:
    program(tmp_path / "codex")
    assert found(tmp_path, "codex", cwd="/no/such/folder") == "it lacks the directory /no/such/folder"
    assert found(tmp_path, "bin/codex", cwd=str(tmp_path)) == f"it lacks the program {tmp_path}/bin/codex"


@pytest.mark.parametrize("command", ["{input.program}", "./codex"])
def test_what_differs_from_task_to_task_is_not_judged(tmp_path: Path, command: str) -> None:
    assert found(tmp_path, command) is None


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("#!/opt/no/python\n", "/opt/no/python"),
        ("#!/usr/bin/env node22\n", "node22"),
        ("#!/usr/bin/env -S node22 --flag\n", "node22"),
        ("#!/usr/bin/env -S A=b node22\n", "node22"),
        ("#!/bin/sh -e\n", None),
        ("#!/bin/sh", None),
        ("#!\n", None),
        ("", None),
        ("\x7fELF", None),
    ],
)
def test_the_interpreter_of_a_script_has_to_be_there_too(tmp_path: Path, line: str, lacks: str | None) -> None:
    codex = program(tmp_path / "codex", line)
    why = found(tmp_path, "codex")
    if lacks is None:
        assert why is None
    else:
        assert why is not None
        assert why.startswith(f"it lacks the program {lacks}")
        assert why.endswith(f"(the interpreter of {codex})")


def test_a_script_that_cannot_be_read_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "codex", "#!/opt/no/python\n")

    def refused(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "open", refused)
    assert found(tmp_path, "codex") is None


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A directory with a module that tells when it is imported."""
    path = tmp_path / "lib"
    program(path / "jobs" / "__init__.py", f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    return path


def called(path: Path, target: str, base: dict[str, str] | None = None, **handler: Any) -> dict[str, str]:
    """What keeps the handler `t`, which calls this, from beginning."""
    made = Handler.model_validate({"python": target, **handler})
    return availability.unknown(
        {"t": made, "other": Handler(command=("x",))}, PythonSettings(path=(str(path),)), base or {}
    )


def test_a_module_that_is_nowhere_is_named_and_none_is_imported(modules: Path, tmp_path: Path) -> None:
    assert called(modules, "jobs:run") == called(modules, "jobs.no_such:run") == {}
    assert called(modules, "json:loads") == {}
    assert called(tmp_path, "jobs:run") == {"t": "it lacks the Python module jobs"}
    assert called(modules, "no_such.jobs:run") == {"t": "it lacks the Python module no_such"}
    assert not (tmp_path / "imported").exists()


def test_it_is_looked_for_as_the_call_would_find_it(modules: Path, tmp_path: Path) -> None:
    there = {"PYTHONPATH": str(modules)}
    assert called(tmp_path, "jobs:run", env=there) == called(tmp_path, "jobs:run", there) == {}
    assert called(tmp_path, "jobs:run", there, env={"PYTHONPATH": "/nowhere"}) != {}
    assert called(tmp_path, "test_lookup:run") != {}, "not where the worker happens to stand"


def test_a_look_that_fails_says_nothing(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = "import sys\nclass F:\n    def find_spec(*_): raise OSError\nsys.meta_path.insert(0, F)\nprint('hello')\n"
    program(modules / "sitecustomize.py", hook)
    assert called(modules, "no_such:run", {"PYTHONPATH": str(modules)}) == {}
    program(modules / "sitecustomize.py", "import os\nos._exit(1)\n")
    assert called(modules, "no_such:run", {"PYTHONPATH": str(modules)}) == {}
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert called(modules, "no_such:run") == {}


def config(path: Path) -> tuple[WorkerConfig, dict[str, str]]:
    handlers = {"review": {"command": ["codex"]}, "call": {"python": "jobs:run"}}
    return WorkerConfig.model_validate({"handlers": handlers, "python": {"path": [str(path)]}}), {"PATH": str(path)}


def test_it_is_looked_again_now_and_then(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = ManualClock()
    looking = Lookup(*config(tmp_path), clock)
    offering = Offering(Capabilities(cpus=1, mem_mb=1, handlers=("call", "review")), looking)
    assert not offering.look({})
    assert (offering.now.handlers, set(offering.now.lacks)) == ((), {"review", "call"})
    program(tmp_path / "codex")
    program(tmp_path / "jobs.py", "")
    clock.advance(LOOKUP_EVERY_S - 1)
    assert not offering.look({})
    clock.advance(1)
    looking.lacks()
    looking._await(60)
    assert offering.look({})
    assert (offering.now.handlers, offering.now.lacks) == (("call", "review"), {})
    assert [line.partition(":")[0] for line in caplog.messages] == [
        "no task of type call is taken here",
        "no task of type review is taken here",
        "tasks of type call are taken again",
        "tasks of type review are taken again",
    ]


def test_a_look_that_hangs_hangs_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, looks = threading.Event(), []

    def hang(*_: object) -> dict[str, str]:
        looks.append(1)
        gate.wait(60)
        return {}

    monkeypatch.setattr(availability, "unknown", hang)
    monkeypatch.setattr(availability, "FIRST_WITHIN_S", 0.01)
    clock = ManualClock()
    looking = Lookup(*config(tmp_path), clock)
    for _ in range(3):
        assert looking.lacks() == {}
        clock.advance(2 * LOOKUP_EVERY_S)
    assert looks == [1], "one at a time"
    gate.set()
    looking._await(60)


def test_without_handlers_nothing_is_looked_for() -> None:
    looking = Lookup(WorkerConfig(), {}, ManualClock())
    assert looking.lacks() == {}
    assert looking._thread is None


def checked(path: Path) -> tuple[Lookup, ManualClock]:
    """A lookup of one handler, whose check is the script `check` there."""
    said = {"review": {"command": ["sh"], "check": [str(path / "check")]}}
    clock = ManualClock()
    base = {"PATH": "/usr/bin:/bin"}
    return Lookup(WorkerConfig.model_validate({"handlers": said}), base, clock), clock


def looked(looking: Lookup) -> dict[str, str]:
    """What it finds when the next look is over."""
    looking.lacks()
    looking._await(60)
    return looking.lacks()


def test_a_check_that_fails_is_the_lack_and_one_that_succeeds_says_the_version(tmp_path: Path) -> None:
    program(tmp_path / "check", "#!/bin/sh\necho ran >>$0.runs\necho 'no module' >&2; exit 1\n")
    looking, clock = checked(tmp_path)
    assert looked(looking) == {"review": "no module"}
    assert looking.versions() == {}
    program(tmp_path / "check", "#!/bin/sh\necho ran >>$0.runs\necho loading; echo 1.2\n")
    clock.advance(LOOKUP_EVERY_S)
    assert looked(looking) == {}
    assert looking.versions() == {"review": "1.2"}
    clock.advance(LOOKUP_EVERY_S)
    assert looked(looking) == {}
    assert (tmp_path / "check.runs").read_text() == "ran\n" * 2, "one that has succeeded is not run again soon"
    program(tmp_path / "check", "#!/bin/sh\nexit 4\n")
    clock.advance(availability.HOLDS_S)
    assert looked(looking) == {"review": "its check ended with exit code 4"}
    assert looking.versions() == {}, "what it said no longer holds"


def test_nothing_is_offered_before_its_check_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = threading.Event()

    def slow(*_: object) -> tuple[bool, str]:
        gate.wait(60)
        return True, "9"

    monkeypatch.setattr(availability, "tried", slow)
    monkeypatch.setattr(availability, "FIRST_WITHIN_S", 0.01)
    caplog.set_level("INFO", "spoold")
    looking, _ = checked(tmp_path)
    can = Capabilities(cpus=1, mem_mb=1, handlers=("review",), about={"review": {"agent": "codex"}})
    offering = Offering(can, looking)
    assert (offering.now.handlers, offering.now.lacks) == ((), {"review": "its check is not over yet"})
    gate.set()
    looking._await(60)
    assert offering.look({})
    assert (offering.now.handlers, offering.now.lacks) == (("review",), {})
    assert offering.now.about == {"review": {"agent": "codex", "version": "9"}}
    assert not offering.look({})
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "no task of type review is taken yet: its check is not over yet"),
        ("INFO", "tasks of type review are taken"),
    ], "every start with an agent is like that: nothing is wrong"


def test_a_check_is_made_only_where_nothing_else_is_missing(tmp_path: Path) -> None:
    program(tmp_path / "check", "#!/bin/sh\necho ran >>$0.runs\n")
    said = {"review": {"command": ["/no/program"], "check": [str(tmp_path / "check")]}}
    looking = Lookup(WorkerConfig.model_validate({"handlers": said}), {}, ManualClock())
    assert looked(looking) == {"review": "it lacks the program /no/program"}
    assert not (tmp_path / "check.runs").exists()
