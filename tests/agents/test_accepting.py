"""The conditions that we check ourselves: each holds, or says why not."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.process.turns import CannotStart
from spoold.agents.workspace import acceptance
from spoold.agents.workspace.acceptance import Check, Ran, inside, judge


def never(words: Sequence[str]) -> Ran:
    raise AssertionError(words)


def why(success_if: dict[str, Any], text: str, directory: Path) -> list[str]:
    return [check.why for check in judge([], success_if, text, partial(inside, str(directory)), never)]


def test_a_command_holds_when_it_ends_with_0(tmp_path: Path) -> None:
    ends = {"a": Ran(0, "fine"), "b": Ran(2, "boom\n"), "c": Ran(None, "")}

    def run(words: Sequence[str]) -> Ran:
        if words[-1] not in ends:
            raise CannotStart(words[-1], FileNotFoundError(2, "No such file or directory"))
        return ends[words[-1]]

    checks = judge(["a", ["b"], ["x", "c"]], {"command": ["d"]}, "", partial(inside, str(tmp_path)), run)
    assert [check.what for check in checks] == ["a", "b", "x c", "d"]
    assert [check.why for check in checks] == [
        "",
        "exit code 2",
        "it took too long",
        "d cannot be started: No such file or directory",
    ]
    assert checks[1].reason == "b: exit code 2\nboom"
    assert checks[0].plain() == {"check": "a", "holds": True, "why": "", "output": "fine"}
    assert Check("c", "no").reason == "c: no"


def test_the_answer_is_looked_at_where_no_file_is_named(tmp_path: Path) -> None:
    assert why({"nonempty": True, "regex": "^a.c$"}, "abc", tmp_path) == ["", ""]
    assert why({"nonempty": True, "regex": "^b"}, " \n", tmp_path) == ["it is empty", "it does not match"]
    assert why({"nonempty": False}, "", tmp_path) == []
    assert "is no regular expression" in why({"regex": "("}, "a", tmp_path)[0]


def test_a_pattern_takes_no_long_time(tmp_path: Path) -> None:
    began = time.monotonic()
    assert why({"regex": "(a+)+$"}, "a" * 50_000 + "b", tmp_path) == ["it does not match"]
    assert time.monotonic() - began < 5


def test_a_file_counts_only_within_the_workspace(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    (work / "sub" / "a").write_text("yes")
    os.symlink(tmp_path / "secret", work / "out")
    os.symlink("sub/a", work / "in")
    os.mkfifo(work / "pipe")
    assert why({"file": "in", "regex": "yes", "nonempty": True}, "", work) == ["", "", ""]
    assert why({"file": "out", "nonempty": True}, "words", work) == ["it is not in the workspace", "it is empty"]
    assert why({"file": "gone"}, "", work) == ["it is not there"]
    assert why({"file": "pipe"}, "", work) == ["it is no regular file"]
    assert why({"file": "sub"}, "", work) == ["it is no regular file"]
    with (work / "large").open("wb") as file:
        file.truncate(acceptance.FILE_MAX + 1)
    assert why({"file": "large"}, "", work) == ["it has more than 16 MiB"]


def test_a_schema_says_where_it_does_not_fit(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
    }
    assert why({"schema": schema}, '{"a": [1]}', tmp_path) == [""]
    assert why({"schema": schema}, 'Here:\n```json\n{"a": [1]}\n```\nDone.', tmp_path) == [""]
    assert why({"schema": schema}, '{"a": [1, "x"]}', tmp_path) == ["['a'][1]: 'x' is not of type 'integer'"]
    assert why({"schema": schema}, "{}", tmp_path) == ["it: 'a' is a required property"]
    assert why({"schema": schema}, "no", tmp_path)[0].startswith("it is no JSON")
    assert why({"schema": False}, "1", tmp_path)[0].startswith("it: False schema")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_schema_fetches_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x.json"
        with ThreadPoolExecutor(1) as others:
            asked = others.submit(server.accept)
            found = why({"schema": {"$ref": address}}, "1", tmp_path)
            assert found[0].startswith("the schema cannot be used: Unresolvable")
            with pytest.raises(TimeoutError):
                asked.result()[0].close()


def test_a_schema_takes_no_long_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why({"schema": {"type": 7}}, "1", tmp_path)[0].startswith("the schema cannot be used")
    monkeypatch.setattr(acceptance, "SCHEMA_S", 0.2)
    slow = why({"schema": {"pattern": "(a+)+$"}}, f'"{"a" * 64}b"', tmp_path)
    assert slow == ["the schema took more than 0.2 s"]


def test_a_worker_without_the_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(acceptance, "import_module", absent)
    assert "install spoold[agents]" in why({"schema": {}}, "1", tmp_path)[0]
