"""The witness on the server reads what spoold writes: its grammar is its own, so it could fall behind unseen."""

import sys
from pathlib import Path

from spoold import Spool
from tools.laboratory.guest.tree import look
from tools.laboratory.matrix.ledger import Ledger, Token, judge, tokens


def test_the_witness_reads_a_real_spool(tmp_path: Path) -> None:
    with Spool.local(tmp_path / "spool", workers=1, slots=2) as spool:
        ids = ["first", "second", "held"]
        spool.submit(id="first", command=[sys.executable, "-c", ""])
        spool.submit(id="second", command=[sys.executable, "-c", ""], after=["first"])
        spool.submit(id="held", command=[sys.executable, "-c", ""], after=["nobody-knows"])
        spool.wait(["first", "second"], timeout=60)
    # The nodes are gone, so their journals are whole.
    told = look(tmp_path / "spool")
    found = {token.id: token for token in tokens(told.files)}
    assert found["held"] == Token("waiting", "held", 1)
    assert {task: found[task].state for task in ids} == {
        "first": "completed",
        "second": "completed",
        "held": "waiting",
    }
    names = {f"{task}.1.{found[task].decider}.json" for task in ("first", "second")}
    assert told.results == {name: (name.split(".")[0], 1, "success") for name in names}
    assert sorted(told.commits) == sorted((task, 1, found[task].decider) for task in ("first", "second"))
    verdict = judge(Ledger(dict.fromkeys(ids, ()), told.files, told.results, told.commits, []))
    assert "held did not complete: waiting (attempt 1)" in verdict.problems


def test_what_a_crash_left_half_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "results").mkdir()
    whole = '{"event": "COMPLETED", "task": "one", "attempt": 1, "writer": "laptop1-aaaa"}'
    (tmp_path / "events" / "laptop1-aaaa.0.jsonl").write_text(f'{whole}\n[]\n{{"event": "COMPL')
    (tmp_path / "results" / "one.1.laptop1-aaaa.json").write_text("")
    told = look(tmp_path)
    assert told.commits == [("one", 1, "laptop1-aaaa")]
    assert told.results == {"one.1.laptop1-aaaa.json": ("", 0, "")}
