"""The handoff note: short, masked, in the result and in the batch's context, where another attempt may follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.adapters.adapter import Event
from spoold.agents.attempt import prompting
from spoold.agents.configuration import redactor
from spoold.agents.configuration.profiles import REDACT, expand
from spoold.agents.process.ending import End, Outcome
from spoold.agents.process.interfaces import Saved
from spoold.agents.process.transcript import Transcript
from spoold.client.context_and_steps import SharedContext
from spoold.client.spool_client import SpoolClient
from spoold.protocol.context_entry import is_name
from tests.agents.attempts import Desk
from tests.cli.commands import spool

SECRET = "tr0ub4dor-and-3-horses"
TOKEN = "ghp_" + "a1B2" * 9


def heard(text: str = "", session: str = "") -> Transcript:
    """What an agent has said."""
    made = Transcript("sum")
    made.take(Event(text=text, session=session))
    return made


def note(end: End, words: Transcript, saved: Saved) -> str:
    """The note of an attempt where nothing is masked."""
    return prompting.note("2", "edit", "coder", end, words, saved, str)


def test_it_says_what_was_done_and_what_is_open() -> None:
    end = End("not_accepted", 1, ("make test: exit code 2\nno rule", "b.py is empty"))
    saved = Saved(("a.py", "b.py"), {"ref": "refs/spool/edit/2"})
    assert note(end, heard("I moved\n it.", "s-1"), saved) == (
        "attempt 2 of edit by coder: not_accepted\nsession: s-1\nwork: refs/spool/edit/2\nfiles: a.py, b.py\n"
        "done: I moved it.\nopen:\n- make test: exit code 2 no rule\n- b.py is empty"
    )
    assert note(End("failed", 1), heard(), Saved()) == "attempt 2 of edit by coder: failed"


def test_it_is_short_whatever_an_agent_did() -> None:
    end = End("failed", 1, tuple("é" * 5000 for _ in range(50)))
    saved = Saved(tuple(f"{'d' * 300}/{n}.py" for n in range(5000)))
    found = note(end, heard("first " + "wörter " * 100_000 + "last"), saved)
    assert len(found.encode()) <= prompting.NOTE_MAX
    assert "and 4980 more" in found
    assert "last" in found
    assert "first" not in found


def test_nothing_of_a_secret_stays_where_it_is_cut_off() -> None:
    said = {"cli": "codex", "secrets": ["KEY"]}
    table = {"agents": {"coder": said}, "redact": {"patterns": ["cust-[0-9]+"]}}
    handler = expand(table, "w.toml", {})["handlers"]["coder"]
    clean = redactor.masking({REDACT: handler["env"][REDACT], "KEY": SECRET})
    for shift in range(1150, 1230):
        words = heard(f"{SECRET} {TOKEN} cust-77 {'x' * shift}", SECRET)
        end = End("failed", 1, (f"{'y' * (shift - 940)}{SECRET}",))
        found = prompting.note("1", "t", "coder", end, words, Saved((f"{SECRET}{'z' * 110}.py",)), clean)
        for planted in (SECRET, TOKEN, "cust-77"):
            pieces = (planted[at : at + 8] for at in range(len(planted) - 7)) if len(planted) > 8 else [planted]
            assert not [piece for piece in pieces if piece in found], found
    assert TOKEN not in redactor.masking({})(TOKEN)
    assert redactor.masking({REDACT: '{"tokens": false}'})(TOKEN) == TOKEN


@pytest.mark.parametrize(
    ("outcome", "said", "leaves"),
    [
        ("done", "x", False),
        ("no_change", "x", False),
        ("refused", "x", False),
        ("failed", "", True),
        ("not_accepted", "", True),
        ("blocked", "", True),
        ("later", "", False),
        ("later", "half of it", True),
    ],
)
def test_only_where_another_attempt_may_follow(outcome: Outcome, said: str, leaves: bool) -> None:
    assert prompting.leaves_one(End(outcome, 1), heard(said), Saved()) is leaves
    assert prompting.leaves_one(End("later", 75), heard(), Saved(("a",)))


def test_its_entry_has_a_name_for_every_task() -> None:
    assert prompting.name_of("edit-1") == "handoff-edit-1"
    long = [prompting.name_of("x" * 110 + end) for end in ("a", "b", "B")]
    assert len(set(long)) == 2, "two ids that differ by case alone are one"
    assert all(is_name(name) for name in long)


SAYS = """
import sys
prompt = sys.stdin.read()
open("part.md", "w").write(prompt)
print("I tried.")
print("the key is SECRET")
"""


def desk(path: Path, **more: Any) -> Desk:
    """An attempt of a task in a batch of a spool."""
    assert spool("init", str(path / "s")).code == 0
    env = {"SPOOL_ROOT": str(path / "s"), "SPOOL_BATCH": "nightly", "KEY": SECRET}
    return Desk(path, SAYS.replace("SECRET", SECRET), {"accept": ["false"], "secrets": ["KEY"]}, env=env, **more)


def test_the_context_of_the_batch_has_it_and_so_has_the_next_prompt(tmp_path: Path) -> None:
    made = desk(tmp_path)
    ended = made.run(prompt="write")
    found = ended.result["handoff"]
    assert found.startswith("attempt 1 of t by coder: not_accepted\nfiles: part.md\ndone: I tried.")
    with SpoolClient(str(tmp_path / "s")) as client:
        shared = SharedContext(client, "nightly")
        [entry] = shared.log()
        assert entry.name == "handoff-t"
        assert shared.get(entry.name)[1].decode() == found
    for file in (tmp_path / "s").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file
    assert "[redacted:KEY]" in found
    made.previous = {"attempt": 1, "output": ended.result}
    made.run(prompt="write")
    prompt = (made.work / "part.md").read_text()
    assert "The note that attempt 1 left:\n\nattempt 1 of t by coder: not_accepted" in prompt
    assert "files: part.md" in prompt
    assert prompt.count("false: exit code 1") == 1, "its reasons are there once"
    told = json.loads(spool("context", "log", "--batch", "nightly", "--json", root=tmp_path / "s").out)
    assert [(entry["name"], entry["version"]) for entry in told] == [("handoff-t", 1), ("handoff-t", 2)]


def test_a_note_that_cannot_be_put_is_in_the_result_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = desk(tmp_path)
    made.env = {**made.env, "SPOOL_ROOT": str(tmp_path / "none")}
    ended = made.run(prompt="write")
    assert (ended.code, ended.result["outcome"]) == (1, "not_accepted")
    assert "handoff" in ended.result
    assert "its handoff note is only in its result" in ended.said
    monkeypatch.setattr(prompting, "_ROOM", 0)
    said = prompting.put(str(tmp_path / "s"), "nightly", "t", "x")
    assert said == "its handoff note is only in its result: batch nightly has 0 entries"


def test_a_task_of_no_batch_leaves_it_in_its_result(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.env = {name: value for name, value in made.env.items() if name != "SPOOL_BATCH"}
    assert "handoff" in made.run(prompt="write").result
    assert not (tmp_path / "s" / "context").exists() or not list((tmp_path / "s" / "context").iterdir())


def test_a_question_of_an_agent_is_masked_as_its_words_are(tmp_path: Path) -> None:
    assert spool("init", str(tmp_path / "s")).code == 0
    asks = f"""print('SPOOL:QUESTION {{"text": "Is {SECRET} right?", "choices": ["{SECRET}", "no"]}}')"""
    env = {"SPOOL_ROOT": str(tmp_path / "s"), "KEY": SECRET}
    ended = Desk(tmp_path, asks, {"secrets": ["KEY"], "ask_timeout": 0.5}, env=env).run(prompt="ask")
    assert (ended.code, "Is [redacted:KEY] right?" in ended.result["reasons"][0]) == (65, True), ended.said
    files = [file for file in (tmp_path / "s").rglob("*") if file.is_file()]
    assert any(b"Is [redacted:KEY] right?" in file.read_bytes() for file in files), "people are asked"
    assert not any(SECRET.encode() in file.read_bytes() for file in files)
