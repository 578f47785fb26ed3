"""The leader's step is one table: what docs/internals.md says of it, what is walked, and which moves there are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from spoold.master import master
from spoold.master.stages import STAGES, Stage
from spoold.protocol.lifecycle import MOVES, Mover
from tests.support.cluster import Cluster

INTERNALS = Path(__file__).resolve().parents[2] / "docs/internals.md"
MADE = {f"{move.source} → {move.target}" for move in MOVES if move.mover is Mover.LEADER}
NAMED = {move for stage in STAGES for move in stage.moves}


def told() -> list[list[str]]:
    """The rows of the table, as people read them."""
    section = INTERNALS.read_text(encoding="utf-8").partition("## A step of the leader\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)[2:]
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def test_the_document_tells_the_stages_in_their_order() -> None:
    assert told() == [[stage.name, stage.reads, ", ".join(stage.moves)] for stage in STAGES]


def test_each_move_of_a_stage_is_one_that_a_leader_may_make() -> None:
    assert NAMED <= MADE


def test_each_move_of_a_leader_has_its_stage_but_those_of_what_is_no_task_or_a_copy() -> None:
    assert not [move for move in MADE - NAMED if not move.endswith("→ rejected")]


def test_a_step_walks_the_table_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []

    def marked(stage: Stage) -> Stage:
        return replace(stage, run=lambda desk, duties: walked.append(stage.name))

    made = Cluster()
    made.master("m1")
    made.settle()
    monkeypatch.setattr(master, "STAGES", tuple(map(marked, STAGES)))
    made.step("m1")
    assert walked == [stage.name for stage in STAGES]
