"""Goal: `spool doctor` says the verdict last, with the reason, and scripts see it in the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.faces.cli.doctor import show
from spoold.protocol.report import Remark, Report
from tests.cli.command import make, spool, told


def test_a_safe_directory(tmp_path: Path) -> None:
    result = spool(tmp_path, "doctor", str(tmp_path), "--quick")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{tmp_path}: ")
    assert lines[-2].startswith("safe with rename: as far as")
    assert lines[-1].startswith("for bug reports: spoold ")
    assert "spool init DIR" in result.stdout


def test_without_a_directory_it_is_the_spool(tmp_path: Path) -> None:
    answer = told(make(tmp_path / "s"), "doctor", "--quick")
    assert Report.model_validate(answer).model_dump(mode="json") == answer
    assert (answer["directory"], answer["measured"]["marker"]["present"]) == (str(tmp_path / "s"), True)


def test_what_is_not_safe_is_an_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remark = Remark(grade="bad", probe="mount", problem="it is soft", mend="hard", against=("rename", "lock"))
    report = Report(at="", node="n", verdict="not safe", reason="since it is soft", remarks=(remark,))
    monkeypatch.setattr("spoold.doctor.examine.examine", lambda order, say: report)
    result = spool(tmp_path, "doctor", str(tmp_path))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:4] == ["not safe: it is soft", "    fix: hard", "not safe: since it is soft"]


def test_what_only_one_strategy_needs_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    remark = Remark(grade="bad", probe="locks", problem="flock gives ENOLCK", against=("lock",))
    show(Report(at="", node="n", verdict="safe with rename", reason="so", remarks=(remark,)))
    assert capsys.readouterr().out.splitlines()[1] == "no lock: flock gives ENOLCK"


def test_what_was_found_on_another_machine_is_told_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    remark = Remark(grade="warning", probe="mount", problem="noac", mend="drop it", host="laptop2")
    show(Report(at="", node="n", verdict="safe with rename", reason="so", remarks=(remark,)))
    assert capsys.readouterr().out.splitlines()[1:3] == ["warning: laptop2: noac", "    fix: drop it"]


@pytest.mark.parametrize(
    ("words", "code"), [(("/nonexistent/share",), 69), (("--with", "0"), 2), (("--wait", "soon"), 2)]
)
def test_misuse(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    assert spool(tmp_path, "doctor", *words).exit_code == code
