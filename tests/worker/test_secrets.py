"""A secret comes from this machine, is given only to who names it, and no message holds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol.errors import BadFile
from spoold.protocol.names import TaskName
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.system.clock import ManualClock
from spoold.worker.handlers.availability import Lookup
from spoold.worker.handlers.job_preparation import Workplace, inherited, prepare
from spoold.worker.handlers.secrets import MOST, Lacking, Secrets, Source
from spoold.worker.handlers.worker_config import WorkerConfig, load_config

VALUE = "hunter2-hunter3"
SHORT = 'command = ["x"]\nsecrets = ["A"]'


def kept(path: Path, data: bytes = VALUE.encode() + b"\n", mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def given(environ: dict[str, str] | None = None, **source: Any) -> str:
    """The value of a secret A from there."""
    secrets = Secrets({"A": Source.model_validate(source)}, environ or {}, "[secrets] in worker.toml")
    return secrets.given(["A"])["A"]


def lacking(environ: dict[str, str] | None = None, **source: Any) -> str:
    """Why it cannot be given."""
    with pytest.raises(Lacking) as caught:
        given(environ, **source)
    said = str(caught.value)
    assert said.startswith("it lacks the secret A: ")
    assert said.endswith(" (A in [secrets] in worker.toml)")
    assert VALUE not in said
    return said


def test_it_comes_from_a_file_a_variable_or_a_credential(tmp_path: Path) -> None:
    assert given(file=str(kept(tmp_path / "a"))) == VALUE
    assert given(file=str(kept(tmp_path / "b", b" two\nlines \r\n\n", 0o400))) == " two\nlines "
    assert given({"FROM": VALUE}, env="FROM") == VALUE
    kept(tmp_path / "c", mode=0o440)
    assert given({"CREDENTIALS_DIRECTORY": str(tmp_path)}, credential="c") == VALUE


def test_what_keeps_it_from_being_given_is_named_with_its_place_and_fix(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert f"{path} cannot be read (No such file or directory); create it with mode 0600" in lacking(file=str(path))
    kept(path, mode=0o640)
    assert f"{path} is open to others (mode 0640); run: chmod 600 {path}" in lacking(file=str(path))
    assert f"{tmp_path} is no regular file" in lacking(file=str(tmp_path))
    assert "the variable FROM is not set; start the worker with it" in lacking(env="FROM")
    assert "the variable FROM is not set" in lacking({"FROM": ""}, env="FROM")
    assert "add LoadCredential=c:/path to its unit" in lacking(credential="c")
    place = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert "the credential c cannot be read (No such file or directory)" in lacking(place, credential="c")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(tmp_path: Path) -> None:
    os.chown(kept(tmp_path / "a"), 12345, -1)
    assert "belongs to user 12345; make it the worker's own, or root's" in lacking(file=str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"short\n", "holds less than 6 bytes"),
        (b"", "holds less than 6 bytes"),
        (b"\xff\xfe\xfd\xfc\xfb\xfa", "is not UTF-8"),
        (b"hunter2\0hunter3", "holds a NUL"),
        (b"x" * (MOST + 1), "holds more than 64 KiB"),
        (b"redacted", "holds what stands in the place of the secret"),
    ],
)
def test_a_value_that_could_not_be_masked_or_given_is_refused(data: bytes, why: str, tmp_path: Path) -> None:
    said = lacking(file=str(kept(tmp_path / "a", data)))
    assert f"{tmp_path / 'a'} {why}" in said


def test_a_variable_that_is_not_utf_8_is_refused() -> None:
    assert "the variable FROM holds a NUL or half a character" in lacking({"FROM": "hunter2\udcff"}, env="FROM")


@pytest.mark.parametrize(
    ("said", "field", "problem"),
    [
        (f"[handlers.t]\n{SHORT}", "", "the handler of t gets the secret A, and [secrets] has none of that name"),
        (f'[handlers.t]\n{SHORT}\nenv = {{A = "x"}}\n[secrets]\nA = {{env = "B"}}', "", "as a secret and in its env"),
        ("[secrets]\nA = {}", "secrets.A", "a secret is in one place"),
        ('[secrets]\nA = {env = "B", file = "/a"}', "secrets.A", "a secret is in one place"),
        ('[secrets]\nA = {file = "a"}', "secrets.A.file", "not an absolute path"),
        ('[secrets]\nA = {credential = "../a"}', "secrets.A.credential", "is not the name of a credential"),
        ('[secrets]\nA = "hunter2"', "secrets.A", ""),
        ('[secrets]\n"A-B" = {env = "B"}', "secrets.A-B", "cannot be the name of a secret"),
        ('[secrets]\nSPOOL_X = {env = "B"}', "secrets.SPOOL_X", "cannot be the name of a secret"),
        ('[redact]\npatterns = ["("]', "redact.patterns", "is no regular expression"),
        ('[redact]\npatterns = ["a*"]', "redact.patterns", "also finds an empty text"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(said: str, field: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "worker.toml"
    file.write_text(said)
    with pytest.raises(BadFile) as caught:
        load_config(str(file))
    assert caught.value.field.startswith(field)
    assert problem in caught.value.problem
    assert caught.value.mend


CONFIG = {
    "handlers": {"with": {"command": ["x"], "secrets": ["A"]}, "without": {"command": ["x"]}},
    "secrets": {"A": {"env": "FROM"}},
    "pass_env": ["FROM", "OTHER"],
    "allow_command": True,
}


def test_only_the_handler_that_names_it_gets_it_and_a_task_cannot_replace_it() -> None:
    config = WorkerConfig.model_validate(CONFIG)
    base = inherited(config, {"FROM": VALUE, "OTHER": "other"})
    assert base == {"OTHER": "other"}
    name, place = TaskName(5000, "0000000001-1", "t1"), Workplace("w1", "/spool", "/scratch/t1.1")
    made = prepare(Task(type="with"), name, place, config, Settings(), base, secrets={"A": VALUE})
    assert (made.own["A"], made.own["SPOOL_TASK_ID"]) == (VALUE, "t1")
    assert "A" not in prepare(Task(type="without"), name, place, config, Settings(), base).own


def test_a_type_whose_secret_is_lacking_is_not_offered_until_it_is_there(tmp_path: Path) -> None:
    handlers = {"t": {"command": ["/bin/sh"], "secrets": ["A"]}, "u": {"command": ["/bin/sh"]}}
    config = WorkerConfig.model_validate({"handlers": handlers, "secrets": {"A": {"file": f"{tmp_path}/a"}}})
    assert set(Lookup(config, {}, ManualClock()).lacks()) == {"t"}
    assert "it lacks the secret A" in Lookup(config, {}, ManualClock()).lacks()["t"]
    kept(tmp_path / "a")
    assert Lookup(config, {}, ManualClock()).lacks() == {}
    by_variable = WorkerConfig.model_validate({"handlers": handlers, "secrets": {"A": {"env": "FROM"}}})
    assert Lookup(by_variable, {}, ManualClock(), {"FROM": VALUE}).lacks() == {}
