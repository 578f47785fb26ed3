"""A turn ends when its agent hides behind retries that its model has not answered at all."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from spoold.agents.adapters import known_agents
from spoold.agents.adapters.adapter import Start
from spoold.agents.process import turns
from spoold.agents.process.ending import Turn
from spoold.agents.process.interfaces import Bare
from spoold.agents.process.program import Bounds
from spoold.agents.process.transcript import Transcript

FIXTURES = Path(__file__).parent / "fixtures" / "codex"
# It says again and again that it tries again, as codex does where nothing listens.
RETRIES = """
import sys, time
for name, stream in zip(sys.argv[1:], (sys.stdout, sys.stderr)):
    stream.write(open(name).read())
    stream.flush()
while True:
    print('{"type":"error","message":"Reconnecting... waiting for network (Connection failed)"}', flush=True)
    time.sleep(0.05)
"""


def taken(tmp_path: Path, *files: Path, idle_s: float) -> tuple[Turn, Transcript, float]:
    (tmp_path / "codex.py").write_text(RETRIES)
    adapter, began = known_agents.make("codex"), time.monotonic()
    scene = turns.Scene(Bare(), str(tmp_path), str(tmp_path), dict(os.environ), lambda: False, lambda: None)
    start = Start((sys.executable, str(tmp_path / "codex.py"), *map(str, files)))
    heard = Transcript(adapter.counting)
    turn = turns.take_turn(adapter, start, scene, heard, Bounds(idle_s, idle_s))
    return turn, heard, time.monotonic() - began


def test_one_whose_model_never_answers_is_ended_long_before_the_bound_of_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "UNANSWERED_S", 0.5)
    turn, heard, took_s = taken(tmp_path, FIXTURES / "unreached.out", FIXTURES / "unreached.err", idle_s=600)
    assert (turn.code, turn.why) == (None, "")
    assert heard.trouble is not None
    assert heard.trouble.message.startswith("Reconnecting... waiting for network")
    assert took_s < 300


def test_one_that_was_answered_before_keeps_the_bound_of_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "UNANSWERED_S", 0.0)
    (tmp_path / "nothing").write_text("")
    _, heard, took_s = taken(tmp_path, tmp_path / "nothing", FIXTURES / "text.err", idle_s=3)
    assert heard.answered
    assert took_s >= 3
