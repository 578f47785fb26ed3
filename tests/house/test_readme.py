"""The README speaks of things as they are."""

import re
from pathlib import Path

from spoold.cli.app import VERBS
from spoold.protocol.lifecycle import MOVES
from spoold.worker.config import WorkerConfig

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_every_key_of_a_workers_configuration_is_in_the_table_and_no_other() -> None:
    table = README.partition("| key of a worker's configuration |")[2].partition("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines()[2:]]
    keys = {key for cell in first for key in re.findall(r"`\[?([a-z_]+)", cell)}
    assert keys == set(WorkerConfig.model_fields)


def test_every_verb_that_is_named_exists() -> None:
    verbs = set(re.findall(r"(?:`|^)spool (?:--spool \S+ )?([a-z][a-z-]*)\b", README, re.MULTILINE))
    assert verbs
    assert verbs <= set(VERBS)


def test_the_diagram_holds_nothing_that_the_table_does_not() -> None:
    drawn = re.findall(r"^    ([a-z]+) --> ([a-z]+)", README, re.MULTILINE)
    assert len(drawn) > 10
    assert set(drawn) <= {(move.source, move.target) for move in MOVES}
