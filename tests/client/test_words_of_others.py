"""Goal: no line of a journal passes for the word of another node, and none hides what a result says.

Method: seeded journals of several nodes, in which some lines name another node, copy its line's number and time, or
tell of an end that the attempt did not have.
"""

from __future__ import annotations

import json
from random import Random

import pytest

from spoold.protocol.result import Code
from spoold.store.journal import Reader
from tests.client.trees import WORKER, Tree

NODES = (WORKER, "w2-bbbbb", "m-1-ccccc")
EVENTS = ("CLAIMED", "STARTED", "COMPLETED", "FAILED", "RETURNED", "ODD")


def line(writer: str, seq: int, event: str, **more: object) -> str:
    said = {"at": f"2026-01-01T00:00:{seq:02}Z", "writer": writer, "seq": seq, "event": event, "task": "a", **more}
    return json.dumps(said) + "\n"


@pytest.mark.parametrize("seed", range(20))
def test_a_line_is_the_word_of_the_node_whose_journal_it_is_in(seed: int) -> None:
    """Black box 6: a line in one node's journal that named another was told as that one's."""
    chance = Random(seed)
    tree = Tree()
    written: dict[str, list[tuple[str, str]]] = {}
    for node in NODES:
        lines = [(chance.choice([node, node, *NODES]), chance.randrange(4), chance.choice(EVENTS)) for _ in range(6)]
        tree.put(f"events/{node}.0.jsonl", "".join(line(*one, attempt=1) for one in dict.fromkeys(lines)).encode())
        written[node] = [(named, event) for named, _, event in dict.fromkeys(lines)]
    found = Reader(tree.fs).read()
    for node, lines_of_it in written.items():
        mine = [event for event in found if event.writer == node]
        assert sorted((event.misattributed or node, event.event) for event in mine) == sorted(lines_of_it)
    tree.ends("a")
    with tree.spool() as client:
        chapters = client.history("a").chapters
    for chapter in chapters:
        named = [other for other in NODES if f"the line names {other} as its writer" in chapter.text]
        assert (named or [chapter.writer])[0] in [other for other, _ in written.get(chapter.writer, [])] or (
            chapter.source == "result"
        )


@pytest.mark.parametrize("failed", [True, False])
def test_an_end_that_the_result_contradicts_hides_no_result(failed: bool) -> None:
    """Black box 6: a line COMPLETED of a stranger was told in place of the failure that the record has."""
    tree = Tree()
    tree.ends("a", code=Code.TIMEOUT if failed else None)
    forged = line("w2-bbbbb", 1, "COMPLETED" if failed else "FAILED", attempt=1)
    copied = line(WORKER, 2, "CLAIMED", attempt=1)
    tree.put("events/w2-bbbbb.0.jsonl", (forged + copied).encode())
    tree.put(f"events/{WORKER}.0.jsonl", line(WORKER, 2, "STARTED", attempt=1).encode())
    with tree.spool() as client:
        told = client.history("a").chapters
    assert [(chapter.event, chapter.writer, chapter.source) for chapter in told] == [
        ("CLAIMED", "w2-bbbbb", "journal"),
        ("STARTED", WORKER, "journal"),
        ("ENDED" if failed else "COMPLETED", WORKER, "result"),
        ("COMPLETED" if failed else "FAILED", "w2-bbbbb", "journal"),
    ]
    assert told[0].text == f"the line names {WORKER} as its writer: claimed by w2-bbbbb"
    assert told[3].text.startswith("the result of attempt 1 says otherwise: ")


def test_an_end_that_the_result_confirms_is_told_once() -> None:
    tree = Tree()
    tree.ends("a", code=Code.TIMEOUT)
    tree.put(f"events/{WORKER}.0.jsonl", line(WORKER, 1, "FAILED", attempt=1).encode())
    with tree.spool() as client:
        (told,) = client.history("a").chapters
    assert (told.source, "otherwise" in told.text) == ("journal", False)
