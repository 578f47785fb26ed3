"""A handler's command: what a task may fill in, and what its owner is warned of before any task runs."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spoold.protocol.errors import BadFile
from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.attempt_outcome import Charge
from spoold.runner.job import Command
from spoold.worker.handlers.job_preparation import CannotRun, Workplace, prepare
from spoold.worker.handlers.worker_config import WorkerConfig, load_config

NAME = TaskName(5000, "0000000001-1", "t1", attempt=3)
PLACE = Workplace("w1", "/spool", "/scratch/t1.3")


def handled(command: list[str], more: dict[str, Any] | None = None, **task: Any) -> tuple[str, ...]:
    """The words that a handler's command becomes for a task of its type. more: of the handler."""
    config = WorkerConfig.model_validate({"handlers": {"review": {"command": command, **(more or {})}}})
    run = prepare(Task.model_validate({"type": "review", **task}), NAME, PLACE, config, Settings(), {}).run
    assert isinstance(run, Command)
    return run.argv


def refused(command: list[str], more: dict[str, Any] | None = None, **task: Any) -> str:
    """Why the task is refused: for good, and at no charge."""
    with pytest.raises(CannotRun) as caught:
        handled(command, more, **task)
    outcome = caught.value.outcome
    assert (outcome.code, outcome.final, outcome.charge) == (Code.SPAWN_FAILED, True, Charge.NOTHING)
    return outcome.message


def test_a_handler_fills_in_the_fields_of_the_task() -> None:
    words = ["review", "--path={input.path}", "{id}:{attempt}:{type}:{batch}", "{meta.who}", "{}", "{ x }", "{{id}}"]
    filled = handled(words, input={"path": "a; rm -rf /"}, meta={"who": "me"}, batch="b1")
    assert filled == ("review", "--path=a; rm -rf /", "t1:3:review:b1", "me", "{}", "{ x }", "{t1}")


def test_what_is_no_text_is_filled_in_as_json() -> None:
    assert handled(["x", "{input}"], input={"ü": [1, None]}) == ("x", '{"ü": [1, null]}')
    assert handled(["x", "{input.n}", "{input.on}"], input={"n": 1.5, "on": True}) == ("x", "1.5", "true")
    assert handled(["x", "{input}"]) == ("x", "null")


def test_what_is_filled_in_is_never_filled_again() -> None:
    assert handled(["x", "{input.a}"], input={"a": "{input.b}", "b": "secret"}) == ("x", "{input.b}")


@pytest.mark.parametrize("field", ["input.path", "input.a.b", "meta.who", "input.list.0"])
def test_a_field_that_the_task_lacks_is_the_tasks_fault(field: str) -> None:
    with pytest.raises(CannotRun) as caught:
        handled(["x", f"{{{field}}}"], input={"a": 1, "list": [1]})
    assert (caught.value.outcome.code, caught.value.outcome.final) == (Code.INVALID_TASK, True)
    assert f"{{{field}}}" in caught.value.outcome.message


@pytest.mark.parametrize("value", ["", "a\0b"])
def test_a_program_that_cannot_be_named_is_the_tasks_fault(value: str) -> None:
    with pytest.raises(CannotRun) as caught:
        handled(["{input}"], input=value)
    assert (caught.value.outcome.code, caught.value.outcome.final) == (Code.INVALID_TASK, True)


@pytest.mark.parametrize("value", ["-la", "--eval=$(shell touch x)", "-", "--", "-1", -1, -0.5])
def test_a_word_that_a_task_would_begin_with_a_dash_is_refused_unless_options_are_allowed_there(
    value: object,
) -> None:
    for word, more in (("{input.a}", {}), ("{input.a}.txt", {}), ("{input.none}{input.a}", {"none": ""})):
        message = refused(["ls", word], input={"a": value, **more})
        assert 'allow_options = ["input.a"] under [handlers.review]' in message
        assert handled(["ls", word], {"allow_options": ["input.a"]}, input={"a": value, **more})[1].startswith("-")
    assert "meta.a" in refused(["ls", "{meta.a}"], meta={"a": value})
    assert handled(["ls", "--color={input.a}"], input={"a": value}) == ("ls", f"--color={value}")
    assert handled(["ls", "-{input.a}"], input={"a": "l"}) == ("ls", "-l")  # the handler's own dash


def test_an_empty_value_is_an_empty_word() -> None:
    assert handled(["x", "{input.a}", "b"], input={"a": ""}) == ("x", "", "b")
    assert handled(["x", "{input.a}-b"], input={"a": ""}) == ("x", "-b")  # the handler's own dash


@given(
    template=st.lists(
        st.sampled_from(["{input.a}", "{input.b}", "{id}", "-", "--x=", "/", ""]), min_size=1, max_size=4
    ),
    values=st.fixed_dictionaries({name: st.text("-ax=/ ", max_size=3) for name in ("a", "b")}),
)
@example(["{input.a}", "{input.b}"], {"a": "", "b": "-x"})
def test_no_word_begins_with_a_dash_but_by_the_handlers_own_will(template: list[str], values: dict[str, str]) -> None:
    word = None
    with suppress(CannotRun):
        _, word = handled(["ls", "".join(template)], input=values)
    if word is None:
        assert refused(["ls", "".join(template)], input=values)
        return
    filled = {"{input.a}": values["a"], "{input.b}": values["b"], "{id}": "t1"}
    first = next((part for part in template if filled.get(part, part)), "")
    assert not word.startswith("-") or first not in filled


@pytest.mark.parametrize("value", ["SHELL=/tmp/mine", "X:=$(shell touch x)", "X != touch x", "$(shell touch x)=1"])
@pytest.mark.parametrize(
    "command",
    [
        ["make", "{input.a}"],
        ["/usr/bin/gmake", "{input.a}"],
        ["env", "{input.a}"],
        ["sh", "-c", 'make "$1"', "-", "{input.a}"],
    ],
)
def test_a_word_that_make_would_take_for_an_assignment_is_refused(command: list[str], value: str) -> None:
    assert "for a variable" in refused(command, input={"a": value})
    assert handled(command, {"allow_options": ["input.a"]}, input={"a": value})[-1] == value
    assert handled(command, {"match": {"input.a": ".*"}}, input={"a": value})[-1] == value
    assert handled(command, input={"a": "all"})[-1] == "all"


@pytest.mark.parametrize(
    ("program", "word", "what"),
    [
        ("pytest", "@/share/args", "a file of options"),
        ("gcc", "@/share/args", "a file of options"),
        ("x86_64-linux-gnu-gcc-12", "@x", "a file of options"),
        ("/usr/bin/clang++-15", "@x", "a file of options"),
        ("javac", "@x", "a file of options"),
        ("vim", "+!touch x", "a command"),
        ("less", "+!touch x\n", "a command"),
        ("make", "A =1", "a variable"),
        ("make", "/tmp/x", "a path, which make builds by rules of its own"),
        ("gmake", "sub/x", "a path, which make builds by rules of its own"),
        ("dd", "of=/home/ada/.bashrc", "a variable"),
        ("ed", "!touch x", "a command"),
        ("sqlite3", " .shell touch x", "a command"),
        ("perl", ">x", "a command"),
        ("/usr/bin/perl5.36", " +<x", "a command"),
        ("convert", "|touch x", "a command"),
    ],
)
def test_a_word_that_some_program_takes_for_more_than_an_operand_is_refused_there(
    program: str, word: str, what: str
) -> None:
    line = ["sh", "-c", f'{program} "$1"', "-", "{input.a}"]
    for command in ([program, "{input.a}"], ["nice", program, "-v", "{input.a}"], line):
        assert f"would take for {what}" in refused(command, input={"a": word})
    assert handled(["agent", "{input.a}"], input={"a": word}) == ("agent", word)
    assert handled(["agent-gcc-like", "makeshift", "{input.a}"], input={"a": word})[-1] == word
    assert handled([program, "--x={input.a}"], input={"a": word})[-1] == f"--x={word}"


@pytest.mark.parametrize(
    ("program", "value", "what"),
    [
        ("make", "$(shell touch x)", "text that a shell runs"),
        ("gmake", "a; touch x", "text that a shell runs"),
        ("make", "deploy-`touch x`", "text that a shell runs"),
        ("make", "a\nb", "text that a shell runs"),
        ("perl", "x; touch y |", "a command"),
        ("perl", "touch x| ", "a command"),
    ],
)
def test_a_value_that_some_program_runs_wherever_it_stands_is_refused_there(
    program: str, value: str, what: str
) -> None:
    line = ["sh", "-c", f'{program} -x /srv/repo "X=$1"', "-", "{input.a}"]
    for command in ([program, "X={input.a}"], [program, "/data/{input.a}/b"], [program, "{input.a}"], line):
        assert f"would take for {what}" in refused(command, input={"a": value})
        assert handled(command, {"allow_options": ["input.a"]}, input={"a": value})
        assert handled(command, {"match": {"input.a": "(?s).*"}}, input={"a": value})
    assert handled(["agent", "X={input.a}"], input={"a": value}) == ("agent", f"X={value}")
    assert handled([program, "{input.a}", "X=$(pwd)|{id}"], input={"a": "a-b-1.o %x ü"})[1] == "a-b-1.o %x ü"


def test_a_value_has_to_match_what_the_handler_names_as_a_whole() -> None:
    more = {"match": {"input.path": "tests/[a-z_/]+[.]py"}}
    assert handled(["pytest", "{input.path}"], more, input={"path": "tests/a/test_b.py"})[1] == "tests/a/test_b.py"
    for value in (
        "/tmp/x.py",
        "tests/../x.py",
        "tests/a.py\n",
        " tests/a.py",
        "tests/a.py x",
        "",
        "xtests/a.py",
        5,
        None,
    ):
        message = refused(["pytest", "in={input.path}"], more, input={"path": value})
        assert "does not match tests/[a-z_/]+[.]py" in message
        assert "under [handlers.review]" in message
    either = {"match": {"input.path": "a|b"}}
    assert "does not match" in refused(["x", "{input.path}"], either, input={"path": "ax"})
    assert "an option" in refused(["x", "{input.path}"], {"match": {"input.path": ".*"}}, input={"path": "-x"})


def test_no_pattern_and_no_value_keep_the_worker_busy() -> None:
    more = {"match": {"input.a": "(a+)+b"}}
    assert "does not match" in refused(["x", "{input.a}"], more, input={"a": "a" * 50_000})


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "ls {input.a}"],
        ["sh", "-c", "ls '{input.a}'"],
        ["/bin/bash", "-lc", "{meta.a}"],
        ["bash", "-o", "pipefail", "-c", "x {input}"],
        ["env", "A=1", "dash", "-ec", "x {input}"],
        ["su", "ada", "-c", "x {input}"],
        ["python3", "-I", "-c", "print({input.a})"],
        ["perl", "-ne", "{input.a}"],
        ["node", "--eval", "{input.a}"],
        ["node", "--eval=f({input.a})"],
        ["python3", "-cprint({input.a})"],
        ["bash", "--rcfile", "/dev/null", "-c", "{input.a}"],
        ["node", "-r", "lib", "--require", "more", "-e", "{input.a}"],
        ["script", "-qc", "x {input.a}", "/dev/null"],
        ["flock", "-n", "/lock", "-c", "{input.a}"],
        ["timeout", "5", "expect", "-c", "{input.a}"],
        ["vim", "-es", "+{input.a}"],
        ["vim", "file", "-c", "{input.a}"],
        ["psql", "db", "--command={input.a}"],
        ["julia", "-E", "{input.a}"],
        ["emacs", "--batch", "--eval", "{input.a}"],
        ["gdb", "-batch", "-ex", "{input.a}", "prog"],
        ["pwsh", "-NoProfile", "-Command", "{input.a}"],
        ["env", "-S", "prog {input.a}"],
        ["watch", "-n1", "ls {input.a}"],
    ],
)
def test_a_field_in_a_line_that_an_interpreter_runs_is_refused_before_any_task_comes(command: list[str]) -> None:
    with pytest.raises(ValueError, match="would become code in the line after"):
        handled(command, input={"a": "x"}, meta={"a": "x"})


def test_a_field_beside_such_a_line_is_an_argument() -> None:
    line = ["sh", "-c", 'grep -c "$1" /etc/hosts', "sh", "{input.a}"]
    assert handled(line, input={"a": "$(touch x); `y`"})[-1] == "$(touch x); `y`"
    assert handled(["sh", "-c", "echo {id}.{attempt}"]) == ("sh", "-c", "echo t1.3")
    assert handled(["python3", "tool.py", "-c", "{input.a}"], input={"a": "x"})[-1] == "x"
    assert handled(["agent", "-p", "{input.a}"], input={"a": "x"})[-1] == "x"
    for command in (
        ["node", "--experimental", "server.js", "-p", "{input.a}"],
        ["psql", "-p", "{input.a}"],
        ["flock", "/lock", "agent", "-c", "{input.a}"],
        ["gdb", "prog", "-x{input.a}"],
        ["python3", "tool.py", "--command={input.a}"],
        ["agent", "--eval={input.a}"],
        ["grep", "-c{input.a}"],
        ["julia", "-p", "{input.a}"],
    ):
        assert handled(command, input={"a": "7"})[-1].endswith("7")


@pytest.mark.parametrize(
    ("said", "field", "problem"),
    [
        ('env = {"A=B" = "x"}', "env", "'A=B' cannot be the name of a variable"),
        ('env = {A = "x\\u0000"}', "env", "or its value holds a NUL"),
        ('[handlers.t]\ncommand = ["x"]\nenv = {"C=D" = "y"}', "handlers.t.env", "'C=D' cannot be the name"),
        ('[handlers.t]\ncommand = ["x"]\ncwd = "rel"', "handlers.t.cwd", "not an absolute path"),
        ('[handlers.t]\ncommand = ["x\\u0000"]', "handlers.t.command", "holds a NUL character"),
        ('[handlers.t]\ncommand = [" "]', "handlers.t.command", "empty"),
        ('[handlers.t]\ncommand = ["awk", "{print}"]', "handlers.t.command", "{print} is no field of a task"),
        ('[handlers.t]\ncommand = ["x", "{inputs.path}"]', "handlers.t.command", "{inputs.path} is no field"),
        ("[handlers.t]\ncommand = []", "handlers.t", "a handler has either a command"),
        ('[handlers.t]\ncommand = ["x"]\nallow_env = ["CARGO_*"]', "handlers.t.allow_env", "is not the name of one"),
        ('[handlers.t]\ncommand = ["x"]\nallow_env = ["A=B"]', "handlers.t.allow_env", "is not the name of one"),
        ('[handlers.t]\ncommand = ["x"]\nallow_cwd = ["srv"]', "handlers.t.allow_cwd.0", "not an absolute path"),
        ('[handlers.t]\ncommand = ["x"]\nallow_cwd = ["/a/../b"]', "handlers.t.allow_cwd", "goes back by '..'"),
        ('[handlers.t]\ncommand = ["x"]\nallow_options = ["input.a"]', "handlers.t", "input.a is not in its command"),
        ('[handlers.t]\ncommand = ["x", "{input.a}"]\nmatch = {"a" = "x"}', "handlers.t", "a is not in its command"),
        ('[handlers.t]\ncommand = ["x", "{input}"]\nmatch = {input = "a)|(b"}', "handlers.t.match", "no regular"),
        ('[handlers.t]\ncommand = ["x", "{input}"]\nmatch = {input = "("}', "handlers.t.match", "no regular"),
        ('[handlers.t]\ncommand = ["x"]\ntimeout = 9\nmax_timeout = 8', "handlers.t", "is above max_timeout"),
        ('[python]\nallow_env = ["*"]', "python.allow_env", "is not the name of one"),
        ('[handlers.Dup]\ncommand = ["x"]\n[handlers.dup]\ncommand = ["y"]', "handlers", "Dup and dup are the same"),
    ],
)
def test_a_configuration_that_would_fail_every_task_is_refused(
    said: str, field: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "worker.toml"
    file.write_text(said)
    with pytest.raises(BadFile) as caught:
        load_config(str(file))
    assert (caught.value.file, caught.value.field) == (str(file), field)
    assert problem in caught.value.problem
    assert caught.value.mend != "correct this field."


def test_the_words_of_a_refusal_name_the_file_that_would_allow_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[handlers."a.b"]\ncommand = ["ls", "{input}"]\n')
    with pytest.raises(CannotRun) as caught:
        prepare(Task(type="a.b", input="-x"), NAME, PLACE, load_config(str(file)), Settings(), {})
    said = caught.value.outcome.message
    assert said.endswith(f'add allow_options = ["input"] under [handlers."a.b"] in {file}')
