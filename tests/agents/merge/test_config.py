"""[merge] of a worker's file becomes a handler; every mistake names file, key and fix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration.merge_settings import VARIABLE, MergeConfig, read_back
from spoold.agents.configuration.profiles import REDACT, expand
from spoold.agents.merge.__main__ import main
from spoold.agents.sandbox.launch import Verdict
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.worker.handlers.worker_config import load_config

SAID = {"repos": "/srv/a.git"}


def handler(said: dict[str, Any], environ: dict[str, str] | None = None, **table: Any) -> dict[str, Any]:
    found: dict[str, Any] = expand({"merge": said, **table}, "w.toml", environ or {})["handlers"]["merge"]
    return found


def test_the_table_is_a_handler_that_finds_it_again() -> None:
    said = {
        "repos": ["/srv/a.git", "https://example.org/b.git"],
        "test": "make ${WHAT}",
        "setup": ["npm ci"],
        "protect": "tests/**",
        "max_file_mb": 0.5,
        "sandbox": {"kind": "bwrap", "show": ["/srv/tools"]},
    }
    given = {"timeout": 60, "secrets": ["KEY"], "env": {"A": "b"}, "concurrent": 2}
    found = handler({**said, **given}, {"WHAT": "test"}, redact={"tokens": False})
    command = [sys.executable, "-P", "-m", "spoold.agents.merge"]
    assert (found["command"], found["check"], found["needs"]) == (command, [*command, "--check"], ["git"])
    assert (found["timeout"], found["secrets"], found["max_concurrent"]) == (60, ["KEY"], 2)
    assert found["env"]["A"] == "b"
    assert codec.load(found["env"][REDACT].encode(), "") == {"tokens": False, "secrets": ["KEY"]}
    config = read_back(found["env"][VARIABLE])
    assert (config.test, config.protect, config.sandbox) == (("make test",), ("tests/**",), said["sandbox"])
    assert config.confined


def test_all_that_keeps_work_out_is_off_by_default() -> None:
    config = MergeConfig.model_validate(SAID)
    assert not any((config.confined, config.protect, config.no_fewer_tests, config.no_secrets, config.retest))
    assert (config.max_files, config.max_lines, config.max_file_mb) == (None, None, None)
    assert "check" not in handler(SAID)


def test_a_worker_reads_it_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text('[merge]\nrepos = "/srv/a.git"\n[handlers.x]\ncommand = ["x"]\n')
    config = load_config(str(tmp_path / "w.toml"), expand=expand)
    assert sorted(config.handlers) == ["merge", "x"]


@pytest.mark.parametrize(
    ("table", "key", "said"),
    [
        ({"merge": 7}, "merge", "is no table"),
        ({"merge": {}}, "merge.repos", "missing"),
        ({"merge": {"repos": []}}, "merge.repos", "at least one"),
        ({"merge": {"repos": "a"}}, "merge.repos", "not the address"),
        ({"merge": {**SAID, "tset": "x"}}, "merge.tset", "did you mean 'test'"),
        ({"merge": {**SAID, "protect": ["/x"]}}, "merge.protect.0", "no pattern of paths"),
        ({"merge": {**SAID, "protect": ["a/../b"]}}, "merge.protect.0", "no pattern of paths"),
        ({"merge": {**SAID, "max_lines": 0}}, "merge.max_lines", "too small"),
        ({"merge": {**SAID, "sandbox": "chroot"}}, "merge.sandbox.kind", "'bwrap'"),
        ({"merge": {**SAID, "secrets": 5}}, "merge.secrets", ""),
        ({"merge": {**SAID, "test": "${NO}"}}, "merge.test", "environment has no NO"),
        ({"merge": SAID, "handlers": {"Merge": {}}}, "merge", "there is a handler merge, too"),
    ],
)
def test_a_mistake_names_file_key_and_fix(table: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(BadFile) as error:
        expand(table, "w.toml", {})
    assert (error.value.file, error.value.field) == ("w.toml", key)
    assert said in str(error.value)
    assert error.value.mend


@pytest.mark.parametrize("holds", [True, False])
def test_a_worker_whose_sandbox_does_not_hold_takes_no_merges(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], holds: bool
) -> None:
    asked: list[str] = []

    def probe(sandbox: Any) -> Verdict:
        asked.append(sandbox.kind)
        return Verdict(holds, "bwrap", "it shows the spool; fix: look")

    monkeypatch.setattr("spoold.agents.merge.__main__.probe", probe)
    assert main(["--check"], handler({**SAID, "sandbox": "bwrap"})["env"]) == (0 if holds else 1)
    assert asked == ["bwrap"]
    assert ("sandbox refuses: it shows the spool" in capsys.readouterr().err) is not holds
