"""A claimed task becomes a job: what runs, where, with which environment, under which limits."""

import json
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol import trace_ids
from spoold.protocol.errors import BadFile
from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.attempt_outcome import Charge
from spoold.runner.job import Call, Command, Job
from spoold.worker.handlers.job_preparation import CannotRun, Workplace, inherited, prepare
from spoold.worker.handlers.worker_config import WorkerConfig, load_config

NAME = TaskName(5000, "0000000001-1", "t1", attempt=3)
PLACE = Workplace("w1", "/spool", "/scratch/t1.3")


def job(
    task: dict[str, Any],
    config: dict[str, Any] | None = None,
    *,
    settings: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> Job:
    """The job of a task on a worker that is configured so."""
    made = WorkerConfig.model_validate({"allow_command": True, **(config or {})})
    base = inherited(made, environ or {})
    return prepare(Task.model_validate(task), NAME, PLACE, made, Settings.model_validate(settings or {}), base)


def environment(job: Job) -> dict[str, str]:
    """All of a job's environment."""
    return {**job.env, **job.own}


def refusal(task: dict[str, Any], config: dict[str, Any] | None = None) -> tuple[Code | None, bool, str]:
    """Why a task cannot run: the code, whether that is final, the message."""
    with pytest.raises(CannotRun) as caught:
        job(task, {"allow_command": False, **(config or {})})
    outcome = caught.value.outcome
    return outcome.code, outcome.final, outcome.message


def test_a_command_is_a_list_of_words_or_a_line_for_the_shell() -> None:
    assert job({"command": ["prog", "a b", "$HOME"]}).run == Command(("prog", "a b", "$HOME"))
    assert job({"command": "prog | tee x"}).run == Command(("/bin/sh", "-c", "prog | tee x"))


def test_raw_commands_run_only_where_that_is_allowed() -> None:
    code, final, message = refusal({"command": ["prog"]})
    assert (code, final) == (Code.SPAWN_FAILED, False)
    assert "does not run raw commands" in message


@pytest.mark.parametrize(
    ("target", "allow", "runs"),
    [
        ("jobs.mail:send", ["jobs"], True),
        ("jobs.mail:send", ["jobs."], True),
        ("jobs.mail:send", ["jobs.mail"], True),
        ("jobs:send", ["jobs"], True),
        ("anything:at", ["*"], True),
        ("jobsworth:send", ["jobs"], False),
        ("os:system", ["jobs"], False),
        ("jobs:send", [], False),
    ],
)
def test_callables_run_only_from_modules_on_the_list(target: str, allow: list[str], runs: bool) -> None:
    task, config = {"python": target, "args": [1], "kwargs": {"x": 2}}, {"python": {"allow": allow, "path": ["/lib"]}}
    many = {"python": target, "calls": [[1], [2]]}
    if runs:
        called = job(many, config).run
        assert isinstance(called, Call)
        assert (called.target, called.args, called.calls) == (target, (), ([1], [2]))
        own = None if "*" in allow else tuple(allow)  # where any module may be named, none is asked for
        found = job(task, config).run
        assert isinstance(found, Call)
        assert (found.target, found.args, found.kwargs, found.path) == (target, (1,), {"x": 2}, ("/lib",))
        assert found.allow == called.allow == own
        assert found.calls is None
    else:
        assert "is not on this worker's list" in refusal(many, config)[2]
        assert "is not on this worker's list" in refusal(task, config)[2]


@pytest.mark.parametrize(("target", "allow"), [("Jobs:send", ["jobs"]), ("jobs.mail:send", ["Jobs."])])
def test_a_module_that_is_listed_in_another_case_is_not_the_tasks_fault(target: str, allow: list[str]) -> None:
    with pytest.raises(CannotRun, match="in another case only") as caught:
        job({"python": target}, {"python": {"allow": allow}})
    assert (caught.value.outcome.charge, caught.value.outcome.rests) == (Charge.NOTHING, True)


def test_a_handler_may_be_a_callable_that_gets_the_input() -> None:
    config = {"handlers": {"review": {"python": "mine:review"}}}
    assert job({"type": "review", "input": {"a": 1}}, config).run == Call("mine:review", ({"a": 1},), {}, ())


def test_no_handler_for_the_type() -> None:
    code, final, message = refusal({"type": "review"})
    assert (code, final) == (Code.SPAWN_FAILED, False)
    assert "no handler for type review" in message


def test_a_handler_gets_the_input_on_stdin_and_a_command_what_it_asked_for() -> None:
    config = {"handlers": {"review": {"command": ["x"]}}}
    assert json.loads(job({"type": "review", "input": {"ü": 1}}, config).stdin) == {"ü": 1}
    assert job({"type": "review"}, config).stdin == b""
    assert job({"command": ["cat"], "input": {"a": 1}}).stdin == b""
    assert job({"command": ["cat"], "stdin": "hello"}).stdin == b"hello"


def test_only_what_is_needed_of_the_workers_environment_is_passed_on() -> None:
    environ = {"PATH": "/bin", "HOME": "/root", "AWS_SECRET": "x", "LC_ALL": "C", "LC_TIME": "de"}
    env = environment(job({"command": ["x"]}, environ=environ))
    own = ("SPOOL_", "TRACEPARENT", "TRACESTATE", "BAGGAGE")
    assert {name for name in env if not name.startswith(own)} == {"PATH", "HOME", "LC_ALL"}


def test_names_that_are_passed_on_come_to_the_usual_ones_and_single_names_can_be_dropped() -> None:
    environ = {"PATH": "/bin", "HOME": "/root", "LANG": "C", "OPENAI_API_KEY": "k", "OPENAI_ORG": "o", "OTHER": "x"}

    def names(**config: Any) -> set[str]:
        return {name for name in environment(job({"command": ["x"]}, config, environ=environ)) if name in environ}

    assert names(pass_env=["OPENAI_*"]) == {"PATH", "HOME", "LANG", "OPENAI_API_KEY", "OPENAI_ORG"}
    assert names(pass_env=["OPENAI_*"], drop_env=["HOME", "*_ORG"]) == {"PATH", "LANG", "OPENAI_API_KEY"}
    assert names(drop_env=["*"]) == set()
    assert names(drop_env=["HOME"], env={"HOME": "/mine"}) == {"PATH", "HOME", "LANG"}


def test_a_raw_command_has_the_last_word_about_its_environment_except_on_what_spoold_says() -> None:
    config = {
        "env": {"A": "worker", "B": "worker", "PATH": "/worker"},
        "handlers": {"review": {"command": ["x"], "env": {"B": "handler"}}},
    }
    task = {"type": "review", "command": ["x"], "env": {"PATH": "/task", "SPOOL_ATTEMPT": "99"}}
    env = environment(job(task, config, environ={"PATH": "/bin"}))
    assert [env[name] for name in ("PATH", "A", "B")] == ["/task", "worker", "worker"]
    assert env["SPOOL_ATTEMPT"] == "3"
    handled = environment(job({"type": "review"}, config))
    assert handled["B"] == "handler"


def test_a_command_is_told_who_it_is_and_where_its_files_are() -> None:
    env = environment(job({"command": ["x"], "type": "mail", "batch": "night", "max_retries": 4}))
    assert {name: value for name, value in env.items() if name.startswith("SPOOL_")} == {
        "SPOOL_TASK_ID": "t1",
        "SPOOL_TASK_TYPE": "mail",
        "SPOOL_ATTEMPT": "3",
        "SPOOL_MAX_ATTEMPTS": "5",
        "SPOOL_WORKER_ID": "w1",
        "SPOOL_ROOT": "/spool",
        "SPOOL_BATCH": "night",
        "SPOOL_CONTEXT_DIR": "/spool/context/night",
        "SPOOL_CHECKPOINT_DIR": "/spool/steps/t1",
        "SPOOL_TASK_FILE": "/scratch/t1.3/task.json",
        "SPOOL_RESULT_FILE": "/scratch/t1.3/result.json",
        "SPOOL_PROGRESS_FILE": "/scratch/t1.3/progress.json",
        "SPOOL_WORK_DIR": "/scratch/t1.3/work",
        "SPOOL_DEPS_DIR": "/scratch/t1.3/deps",
    }


def test_its_place_in_a_trace_replaces_whatever_else_is_said() -> None:
    said = {
        "TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "TRACESTATE": "a=b",
        "BAGGAGE": "c=d",
    }
    config = {"pass_env": ["TRACE*", "BAGGAGE"], "env": said, "handlers": {"review": {"command": ["x"], "env": said}}}
    for task in ({"command": ["x"], "env": said}, {"type": "review"}):
        env = environment(job({**task, "batch": "night"}, config, environ=said))
        assert {name: env[name] for name in said} == trace_ids.carrier("", "t1", 3, "night", {})
    below = environment(job({"command": ["x"], "meta": {"traceparent": said["TRACEPARENT"]}}))
    assert below["TRACEPARENT"].split("-")[1] == "0af7651916cd43dd8448eb211c80319c"


def test_it_runs_in_its_own_folder_unless_it_names_another() -> None:
    assert job({"command": ["x"]}).cwd == "/scratch/t1.3/work"
    assert job({"command": ["x"], "cwd": "/srv"}).cwd == "/srv"
    config = {"handlers": {"review": {"command": ["x"], "cwd": "/opt"}}}
    assert job({"type": "review"}, config).cwd == "/opt"


def test_the_nearest_timeout_holds() -> None:
    settings = {"timeout": 100, "types": {"review": {"timeout": 50}}}
    config = {"handlers": {"review": {"command": ["x"], "timeout": 20}, "plain": {"command": ["x"]}}}
    assert job({"command": ["x"]}, settings=settings).timeout_s == 100
    assert job({"command": ["x"], "type": "review"}, config, settings=settings).timeout_s == 50
    assert job({"type": "review"}, config, settings=settings).timeout_s == 20
    assert job({"type": "review", "timeout": 5}, config, settings=settings).timeout_s == 5
    assert job({"type": "plain"}, config, settings=settings).timeout_s == 100


def test_a_handler_may_cap_every_timeout_of_its_tasks() -> None:
    config = {"handlers": {"review": {"command": ["x"], "max_timeout": 30}}}
    assert job({"type": "review", "timeout": 5}, config).timeout_s == 5
    assert job({"type": "review", "timeout": 500}, config).timeout_s == 30
    assert job({"type": "review"}, config, settings={"timeout": 100}).timeout_s == 30
    assert job({"type": "review", "command": ["x"], "timeout": 500}, config).timeout_s == 500


def test_limits_come_from_the_task_and_from_the_worker() -> None:
    plain = job({"command": ["x"]}, {"kill_grace_s": 3, "log_max_mb": 2, "output_tail_kb": 1})
    assert (plain.memory_bytes, plain.stall_s, plain.grace_s) == (None, None, 3)
    assert (plain.output_cap_bytes, plain.tail_bytes) == (2 << 20, 1 << 10)
    assert (plain.key, plain.output_path) == ("t1.3", "/scratch/t1.3/output")
    assert plain.progress_path == "/scratch/t1.3/progress.json"
    task = {"command": ["x"], "requires": {"mem": "2G"}, "stall_timeout": 9}
    assert job(task, {"max_memory_mb": 100}).memory_bytes == 2 << 30
    assert job(task).stall_s == 9
    assert job({"command": ["x"]}, {"max_memory_mb": "100M"}).memory_bytes == 100 << 20


def test_endless_cores_are_a_mistake_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text("cpus = inf\n")
    with pytest.raises(BadFile, match="cpus"):
        load_config(str(tmp_path / "w.toml"))
