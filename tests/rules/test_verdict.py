"""The end of an examination: what the remarks come to."""

from typing import Any

import pytest

from spoold.protocol.doctor_report import Remark, Strategy
from spoold.protocol.heartbeat import MountFacts
from spoold.rules.share.mount_options import chosen, conclude, line, ordered


def against(*strategies: Strategy, host: str = "", problem: str = "it is so") -> Remark:
    return Remark(grade="bad" if strategies else "note", probe="p", problem=problem, host=host, against=strategies)


@pytest.mark.parametrize(
    ("remarks", "verdict", "strategy", "reason"),
    [
        ([], "safe with rename", "rename", "as 2 machines saw it together"),
        ([against()], "safe with rename", "rename", "as 2 machines"),
        ([against("lock")], "safe with rename", "rename", "as 2 machines"),
        ([against("rename")], "safe with lock", "lock", "rename alone does not do, since it is so"),
        ([against("rename"), against("lock")], "not safe", None, "since it is so; and no lock either, since"),
        ([against("rename", "lock", host="nas")], "not safe", None, "since it is so (on nas)"),
        ([against("rename"), against("rename", "lock", problem="both")], "not safe", None, "since both"),
    ],
)
def test_a_strategy_is_safe_unless_something_rules_it_out(
    remarks: list[Remark], verdict: str, strategy: str | None, reason: str
) -> None:
    found = conclude(remarks, 2, network=True)
    assert found[0] == verdict
    assert found[1].startswith(reason)
    assert chosen(remarks) == strategy


@pytest.mark.parametrize(
    ("network", "words"), [(True, "as far as one machine can tell"), (False, "this machine alone")]
)
def test_what_one_machine_cannot_prove_is_said(network: bool, words: str) -> None:
    assert words in conclude([], 1, network=network)[1]


def test_the_worst_comes_first_and_what_rules_out_most_before_it() -> None:
    warning = Remark(grade="warning", probe="p", problem="")
    remarks = [against(), warning, against("lock"), against("rename", "lock")]
    assert ordered(remarks) == (remarks[3], remarks[2], warning, remarks[0])


def test_the_line_for_a_bug_report_has_what_was_measured_and_no_more() -> None:
    measured: dict[str, dict[str, Any]] = {
        "pace": {"rename": {"p50_ms": 1.5, "p99_ms": 4.0}},
        "locks": {"flock": "excludes"},
    }
    together = {"locks": {"rounds": 30, "overlaps": 0}, "claims": {"files": 500, "doubled": 0, "lost": 0}}
    found = line("not safe", MountFacts(fstype="nfs4", version="4.2"), measured, together, "spoold 1")
    assert found == (
        "spoold 1; nfs4 4.2; rename 1.5/4 ms; locks flock=excludes rounds=30 overlaps=0; "
        "claims files=500 doubled=0 lost=0; not safe"
    )
    assert line("not safe", None, {}, {}, "spoold 1") == "spoold 1; unknown mount; not safe"
