"""Goal: a program finds each answer under the word that it asked with, however it spelt it, and nothing hangs.

Method: seeded spools of rejected drops (with an id, without one, batches, twins of tasks, drops without a reason) and
of ended tasks; each is asked for by its id and by its drop's name, in any case of letters, alone and together.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from spoold.protocol import layout
from spoold.protocol.names import key, task_drop
from spoold.protocol.result import Code, Status
from tests.cli.command import make
from tests.cli.commands import spool
from tests.client.trees import Tree, soon

WAIT_S = 20


def reason(drop: str, **fields: object) -> dict[str, object]:
    return {"drop": drop, "file": drop, "field": "x", "problem": "unknown field.", "mend": "remove it.", **fields}


def fill(tree: Tree, chance: Random) -> dict[str, bool]:
    """Some drops and tasks; returns the words that name one, each with whether it was rejected."""
    words: dict[str, bool] = {}
    for number in range(8):
        name = f"{chance.choice(['Build', 'a.b', 'x-1', 'job_'])}{number}"
        match chance.randrange(6):
            case 0:
                tree.rejects(f"{name}.json")
                words |= {f"{name}.json": True}
            case 1:
                tree.rejects(f"drop-{name}.json", name)
                words |= {f"drop-{name}.json": True, name: True}
            case 2:
                drop = f"{name}.jsonl"
                tree.put(
                    layout.join(layout.REJECTED, f"{drop}.reason.json"), reason(drop, ids=[f"{name}-l", "other"])
                )
                tree.put(layout.join(layout.REJECTED, drop))
                words |= {drop: True, f"{name}-l": True}
            case 3:
                drop = task_drop(number, name, unique=False)
                tree.ends(name)
                tree.rejects(drop, name)
                words |= {name: False, drop: True}
            case 4:
                tree.put(layout.join(layout.REJECTED, f"{name}.json"))
                words |= {f"{name}.json": True}
            case _:
                tree.ends(name, code=chance.choice([None, Code.TIMEOUT]))
                words |= {name: False}
    return words


def spelt(word: str, chance: Random) -> str:
    return chance.choice([word, word.upper(), word.lower()])


@pytest.mark.parametrize("seed", range(12))
def test_each_answer_is_under_the_word_that_was_asked(seed: int) -> None:
    """Black box 2: the answer for an id was under the name of the drop; a line of a rejected batch was awaited for
    ever."""
    chance = Random(seed)
    tree = Tree()
    words = {spelt(word, chance): rejected for word, rejected in fill(tree, chance).items()}
    with tree.spool() as client:
        results = client.wait(list(words), timeout=WAIT_S)
        assert list(results) == list(words)
        for word, rejected in words.items():
            result, alone = results[word], client.result(word)
            assert key(result.task_id) == key(alone.task_id) == key(word)
            assert (result.attempt == 0) is (alone.attempt == 0) is rejected
            if rejected:
                assert result.status is Status.FAILURE
            assert key(client.show(word).id) == key(word)
            assert key(client.locate(word).id) == key(word)
            assert list(client.wait(word, timeout=WAIT_S)) == [word]


def test_a_line_of_a_batch_that_is_rejected_later_is_an_answer() -> None:
    tree = Tree()
    tree.put("pending/many.jsonl", b'{"type":"t","id":"l1"}\n{"tpye":"t","id":"l2"}\n')

    def reject() -> None:
        tree.put("rejected/many.jsonl.reason.json", reason("many.jsonl", ids=["l1", "l2"]))
        tree.fs.rename("pending/many.jsonl", "rejected/many.jsonl")

    with tree.spool() as client:
        thread = soon(reject)
        results = client.wait(["l2", "l1", "many.jsonl"], timeout=WAIT_S)
        thread.join()
    assert list(results) == ["l2", "l1", "many.jsonl"]
    assert {result.status for result in results.values()} == {Status.FAILURE}


def test_wait_prints_each_result_under_the_word_that_was_asked(tmp_path: Path) -> None:
    """Black box 2, on the command line."""
    root = make(tmp_path / "s")
    dropped: dict[str, dict[str, object]] = {
        "withid.json": {"id": "Has-Id"},
        "many.jsonl": {"ids": ["l1", "l2"]},
        "plain.json": {},
    }
    for drop, said in dropped.items():
        (root / "rejected" / drop).write_text("{}")
        (root / "rejected" / f"{drop}.reason.json").write_text(json.dumps(reason(drop, **said)))
    words = ["has-id", "withid.json", "l2", "many.jsonl", "plain.json", "l1"]
    done = spool("wait", *words, "--json", root=root)
    found = json.loads(done.out)
    assert done.code == 1
    assert list(found) == words
    assert [key(result["task_id"]) for result in found.values()] == words
    for word in words:
        assert list(json.loads(spool("wait", word, "--json", root=root).out)) == [word]
        assert key(json.loads(spool("result", word, "--json", root=root).out)["task_id"]) == word
        assert key(json.loads(spool("show", word, "--json", root=root).out)["id"]) == word
        assert key(json.loads(spool("explain", word, "--json", root=root).out)["id"]) == word
        for verb in ("cancel", "retry"):
            assert list(json.loads(spool(verb, word, "--json", root=root).out)["errors"]) == [word]
    chosen = json.loads(spool("wait", "--state", "rejected", "--json", root=root).out)
    assert sorted(chosen) == ["many.jsonl", "plain.json", "withid.json"]
