"""Asks spoold in the middle of a storm, as people do who want to know why, and has what it said judged afterwards.

Law: it asks about tasks that have not ended more often than about others. What cannot be answered is a breach, too.

Touches: files through the client, the clock.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spoold import Spool, SpoolError
from tools.storming.check import Run
from tools.storming.oracle import LAG_S, OVER, Said, Shown, Truth, judge_said, judge_shown, kinds
from tools.storming.weather import Submitted

# A question so often (s); the pictures with each so many of them; so many of them are about any task.
PAUSE_S, PICTURES, ANY = 0.05, 10, 0.1


class Questions:
    """What was asked in one storm, and the answers.

    moments, answered, kills: when each task was submitted, a question of it answered, a leader killed (s since 1970).
    """

    def __init__(self, root: Path, submitted: Mapping[str, Submitted], seed: int) -> None:
        self._root, self._submitted, self._chance = root, submitted, random.Random(f"questions {seed}")
        self.moments: dict[str, float] = {}
        self.answered: dict[str, float] = {}
        self.kills: list[float] = []
        self._said: list[Said] = []
        self._shown: list[Shown] = []
        self._wrong: list[str] = []
        self._over: set[str] = set()

    def ask(self, over: threading.Event) -> None:
        """Ask until it is over."""
        with Spool(self._root) as spool:
            while not over.wait(PAUSE_S):
                known = list(self.moments)
                if not known:
                    continue
                still = [task for task in known if task not in self._over]
                one = self._chance.choice(known if not still or self._chance.random() < ANY else still)
                asked = time.time()
                try:
                    self._explain(spool, one, asked)
                    if len(self._said) % PICTURES == 0:
                        self._look(spool)
                except (SpoolError, OSError) as error:
                    if asked - self.moments[one] > LAG_S:
                        self._wrong.append(f"{one} at {asked:.2f}: {type(error).__name__}: {error}")

    def judge(self, runs: Sequence[Run], ends: Mapping[str, dict[str, Any]]) -> list[str]:
        """Return every breach, when all have ended."""
        truth = Truth(self._submitted, self.moments, runs, ends, self.answered, self.kills)
        found = [each for said in self._said for each in judge_said(said, truth)]
        return [*self._wrong, *found, *(each for shown in self._shown for each in judge_shown(shown, truth))]

    def told(self) -> str:
        """How much was asked, and of what kind the answers were."""
        each = ", ".join(f"{count} {what}" for what, count in kinds(self._said).most_common())
        return f"asked {len(self._said)} times why, {len(self._shown)} times for pictures: {each}"

    def _explain(self, spool: Spool, task: str, asked: float) -> None:
        found = spool.explain(task)
        if found.state in OVER:
            self._over.add(task)
        reasons = tuple((reason.gate, reason.reason) for reason in found.reasons)
        self._said.append(Said(task, asked, time.time(), found.state, found.attempt, found.verdict, reasons))

    def _look(self, spool: Spool) -> None:
        asked = time.time()
        counts = spool.status().tasks.model_dump()
        self._shown.append(Shown(asked, time.time(), counts=counts))

    def see(self, asked: float, asks: Sequence[str]) -> None:
        """Judge this list of open questions, too, which was asked for at that moment (s since 1970)."""
        self._shown.append(Shown(asked, time.time(), asks=tuple(asks)))
