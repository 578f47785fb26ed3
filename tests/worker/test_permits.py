"""What a task may say about how it is run: as much as the owner of the machine allows, and nothing by default."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.attempt_outcome import Charge
from spoold.runner.job import Job, Within
from spoold.worker.handlers.job_preparation import CannotRun, Workplace, inherited, prepare
from spoold.worker.handlers.worker_config import WorkerConfig

NAME = TaskName(5000, "0000000001-1", "t1")
PLACE = Workplace("w1", "/spool", "/scratch/t1.1")
OWN = "/scratch/t1.1/work"
FILE = "/home/ada/.config/spoold/config.toml"
WHERE = f"under [handlers.build] in {FILE}"
# The same rules hold for a handler that is a program, for one that is a callable, and for callables that tasks name.
RUNS: tuple[dict[str, Any], ...] = (
    {"handlers": {"build": {"command": ["make"]}}},
    {"handlers": {"build": {"python": "mine:build"}}},
    {"python": {"allow": ["mine."]}},
)


def job(config: dict[str, Any], **task: Any) -> Job:
    made = WorkerConfig.model_validate(config).found_in(FILE)
    kind = {"python": "mine.jobs:run"} if "handlers" not in config else {"type": "build"}
    base = inherited(made, {"PATH": "/bin", "SECRET": "x"})
    return prepare(Task.model_validate({**kind, **task}), NAME, PLACE, made, Settings(), base)


def allowing(config: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The same configuration, with more said of the handler, or of all callables."""
    if "python" in config:
        return {"python": {**config["python"], **more}}
    return {"handlers": {"build": {**config["handlers"]["build"], **more}}}


def refused(config: dict[str, Any], **task: Any) -> str:
    """Why the task is refused: for good, and at no charge."""
    with pytest.raises(CannotRun) as caught:
        job(config, **task)
    outcome = caught.value.outcome
    assert (outcome.code, outcome.final, outcome.charge) == (Code.SPAWN_FAILED, True, Charge.NOTHING)
    return outcome.message


def env(job: Job) -> Mapping[str, str]:
    return {**job.env, **job.own}


@pytest.mark.parametrize("config", RUNS)
def test_a_task_sets_no_variable_unless_it_is_allowed_by_its_whole_name(config: dict[str, Any]) -> None:
    for name in ("MAKEFLAGS", "PATH", "LD_PRELOAD", "PYTHONPATH", "X", "makeflags", "SPOOL_ROOT"):
        message = refused(config, env={name: "v"})
        assert f"may not set {name} here" in message
        assert f'allow_env = ["{name}"] under [' in message
        assert f"in {FILE}" in message
    assert 'may not set "A\\nB" here' in refused(config, env={"A\nB": "v"})
    free = allowing(config, allow_env=["X", "Y"])
    assert env(job(free, env={"X": "1"}))["X"] == "1"
    assert "may not set Z here" in refused(free, env={"X": "1", "Z": "2"})
    assert "may not set XX here" in refused(free, env={"XX": "1"})
    assert job(config).env == {"PATH": "/bin"}
    assert env(job(allowing(config, allow_env=["SPOOL_ROOT"]), env={"SPOOL_ROOT": "/mine"}))["SPOOL_ROOT"] == "/spool"


@pytest.mark.parametrize("config", RUNS)
def test_a_task_starts_in_its_own_folder_unless_another_is_allowed(config: dict[str, Any]) -> None:
    assert (job(config).cwd, job(config).within) == (OWN, None)
    message = refused(config, cwd="/attacker/dir")
    assert 'add allow_cwd = ["/attacker/dir"] under [' in message
    assert f"in {FILE}" in message
    free = allowing(config, allow_cwd=["/srv/repo"])
    found = job(free, cwd="/srv/repo/a")
    assert found.cwd == "/srv/repo/a"
    assert found.within is not None
    assert found.within.prefixes == ("/srv/repo",)  # judged when it starts: until then a link may be moved
    assert "'..' could lead anywhere" in refused(free, cwd="/srv/repo/../../etc")
    assert (job(free).cwd, job(free).within) == (OWN, None)


@pytest.mark.parametrize("config", RUNS)
@pytest.mark.parametrize("text", ["~!touch x\n", ""])
def test_a_task_says_nothing_on_standard_input_unless_that_is_allowed(config: dict[str, Any], text: str) -> None:
    message = refused(config, stdin=text, input={"a": 1})
    assert "a task may not set its standard input here: leave stdin out of it, or add " in message
    assert "allow_stdin = true under [" in message
    assert message.endswith(f"in {FILE}")
    free = allowing(config, allow_stdin=True)
    assert job(free, stdin=text, input={"a": 1}).stdin == text.encode()
    promised = b"" if "python" in config else b'{"a": 1}'
    assert job(free, input={"a": 1}).stdin == job(config, input={"a": 1}).stdin == promised


def test_the_handlers_own_directory_and_variables_always_count() -> None:
    config = {"command": ["make"], "env": {"MODE": "safe"}, "cwd": "/opt"}
    fixed = {"handlers": {"build": config}}
    assert (job(fixed).cwd, job(fixed).within, env(job(fixed))["MODE"]) == ("/opt", None, "safe")
    assert "the handler itself sets MODE" in refused(fixed, env={"MODE": "evil"})
    assert 'always starts in "/opt"' in refused(fixed, cwd="/srv/repo")
    assert f'allow_cwd = ["/srv/repo"] in place of cwd {WHERE}' in refused(fixed, cwd="/srv/repo")
    same = job(fixed, cwd="/opt", env={"MODE": "safe"})
    assert (same.cwd, env(same)["MODE"]) == ("/opt", "safe")
    both = {"handlers": {"build": {**config, "allow_cwd": ["/srv/repo"], "allow_env": ["MODE", "X"]}}}
    found = job(both, cwd="/srv/repo/a", env={"MODE": "evil", "X": "1"})
    assert (found.cwd, found.within, env(found)["MODE"], env(found)["X"]) == ("/opt", None, "safe", "1")
    for other in ("/srv/repository", "/srv", "/srv/repo/../x"):
        assert refused(both, cwd=other)


def test_a_workers_own_variables_yield_to_one_that_its_handler_lets_tasks_set() -> None:
    config = {"env": {"MODE": "worker"}, "handlers": {"build": {"command": ["make"], "allow_env": ["MODE"]}}}
    assert env(job(config))["MODE"] == "worker"
    assert env(job(config, env={"MODE": "task"}))["MODE"] == "task"


def test_where_any_callable_or_command_may_run_a_task_says_what_it_likes() -> None:
    any_callable = {"python": {"allow": ["*"]}}
    for config, what in ((any_callable, {}), ({"allow_command": True}, {"python": None, "command": ["x"]})):
        found = job(config, cwd="/srv", env={"LD_PRELOAD": "/x.so"}, stdin="in", **what)
        assert (found.cwd, found.within, found.env["LD_PRELOAD"], found.stdin) == ("/srv", None, "/x.so", b"in")


def test_raw_commands_being_allowed_does_not_open_a_handler() -> None:
    config = {"allow_command": True, "handlers": {"build": {"command": ["make"]}}}
    assert "may not set MAKEFLAGS" in refused(config, env={"MAKEFLAGS": "x"})
    assert "may not choose where it starts" in refused(config, cwd="/srv")
    assert "may not set its standard input" in refused(config, stdin="x")


def test_a_refusal_says_which_line_to_add_where() -> None:
    (config, *_) = RUNS
    message = refused(config, cwd="/srv/re po")
    assert message.endswith(f'leave cwd out of it, or add allow_cwd = ["/srv/re po"] {WHERE}')
    message = refused(config, env={"B": "1", "A": "2"})
    assert message.endswith(f'leave it out of env, or add allow_env = ["B", "A"] {WHERE}')
    assert job(allowing(config, allow_cwd=["/srv/re po"]), cwd="/srv/re po").within == Within(
        ("/srv/re po",), f"[handlers.build] in {FILE}"
    )


NAMES = st.sampled_from(["A", "B", "a", "PATH", "LD_PRELOAD", "SPOOL_ROOT", "AB"])


@given(
    allowed=st.sets(NAMES),
    own=st.dictionaries(NAMES, st.just("handler")),
    asked=st.dictionaries(NAMES, st.just("task")),
)
def test_no_variable_reaches_a_handler_but_those_that_are_allowed(
    allowed: set[str], own: dict[str, str], asked: dict[str, str]
) -> None:
    config = {"handlers": {"build": {"command": ["make"], "allow_env": sorted(allowed), "env": own}}}
    if not asked.keys() <= allowed:
        refused(config, env=asked)
        return
    found = env(job(config, env=asked))
    assert {name for name, value in found.items() if value == "task"} <= allowed - own.keys()
    assert all(found[name] == "handler" for name in own if not name.startswith("SPOOL_"))


def test_what_a_profile_does_not_allow_is_said_of_its_own_table() -> None:
    config = {"handlers": {"build": {"command": ["x"], "about": {"agent": "claude"}}}}
    assert f'allow_cwd = ["/srv"] under [agents.build] in {FILE}' in refused(config, cwd="/srv")
    assert f'allow_env = ["X"] under [agents.build] in {FILE}' in refused(config, env={"X": "1"})
    assert "allow_stdin" not in refused(config, stdin="x")
