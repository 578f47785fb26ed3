"""One trial: edits by real agents, merges, a power cut of a laptop, and the count of what came of it.

Law: no step waits without an end, and one that is late says for what.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from spoold import Spool
from tools.demonstration.agents.mind import CHANGES, SUITE, feature
from tools.demonstration.agents.model import Model
from tools.demonstration.agents.repository import Repository
from tools.laboratory.agents.claims import Story, prove
from tools.laboratory.agents.fleet import SETTINGS, Fleet
from tools.laboratory.channel import Failed
from tools.laboratory.lab import Lab
from tools.laboratory.matrix.ledger import Token, tokens
from tools.laboratory.network import CONTROL

NAME = "spool"
LOOK_S, LEAD_S = 3.0, 60.0
NOTHING = "none"  # no edit of the model's script is slow, and none runs out of quota


def edits(count: int, clis: list[str]) -> list[dict[str, object]]:
    """The tasks: the edits in turn by each of the command lines. The first and the last conflict."""
    made = []
    for number in range(1, count + 1):
        name, tells = feature(number), number in (1, count)
        told = f" Say so in the last line of {CHANGES}." if tells else ""
        task: dict[str, object] = {
            "id": f"edit-{number:02d}",
            "agent": clis[(number - 1) % len(clis)],
            "prompt": f"Edit {name}: make features/{name}.py, with a function value() that returns {number}.{told}",
            "must_change": True,
            "accept": [SUITE, f"python3 -B -c 'from features.{name} import value; assert value() == {number}'"],
        }
        made.append(task | ({"priority": "high"} if tells else {}))
    return made


@dataclass
class Trial:
    """One run on a lab that is up. kill_at: how many merges have landed when a laptop loses its power, in order."""

    lab: Lab
    clis: dict[str, Path]
    count: int
    slots: int
    kill_at: list[int]
    within_s: float
    scratch: Path
    say: Callable[[str], None]
    killed: list[tuple[str, list[str]]] = field(default_factory=list)
    _began: float = 0.0

    def run(self) -> bool:
        """All of it; whether all claims hold. Errors: Failed, TimeoutError, OSError."""
        self._began = time.monotonic()
        repository = Repository(self.scratch)
        with ExitStack() as stack:
            with self.lab.network.inside():
                model = Model(NOTHING, NOTHING, host=f"{CONTROL}.1")
            stack.enter_context(model)
            fleet = Fleet(self.lab, NAME, clis=self.clis, url=model.url, slots=self.slots)
            fleet.make(SETTINGS)
            fleet.share(repository.path)
            fleet.start_all()
            tasks = edits(self.count, list(self.clis))
            fleet.submit("".join(f"{json.dumps(task)}\n" for task in tasks))
            self._tell(f"{len(tasks)} edits submitted; {self.slots} agents at once on each laptop")
            try:
                self._watch(fleet)
                left = fleet.spool("laptop2", "status", check=False).out
                fleet.stop_all()
            finally:
                self._keep_logs(fleet)
                fleet.fetch(self.scratch / "share")
        self._tell(f"everything has ended\n{left}")
        story = Story(self.scratch, tasks, self.killed, repository, model)
        return self._conclude(story)

    def _watch(self, fleet: Fleet) -> None:
        """Wait for the end of all tasks, with a power cut whenever so many merges have landed."""
        due, shown = list(self.kill_at), ""
        wanted = {f"edit-{number:02d}{end}" for number in range(1, self.count + 1) for end in ("", "-merge")}
        while True:
            found = tokens(fleet.on_disk("find . -name '*.json' -printf '%P\\n'").split())
            ended = {one.id for one in found if one.state in ("completed", "failed", "archive")}
            landed = sum(one.state == "completed" and one.id.endswith("-merge") for one in found)
            if (now := _counts(found)) != shown:
                self._tell(shown := now)
            if wanted <= ended and all(one.id in ended for one in found):
                return
            if due and landed >= due[0] and (victim := self._victim(fleet)):
                due.pop(0)
                self._cut(fleet, victim)
            if time.monotonic() - self._began > self.within_s:
                raise TimeoutError(f"not done within {self.within_s:g} s: {sorted(wanted - ended)}")
            time.sleep(LOOK_S)

    def _victim(self, fleet: Fleet) -> str:
        """The laptop that runs most and was not killed yet; '' where nobody runs anything."""
        spared = {laptop for laptop, _ in self.killed}
        running = {laptop: len(fleet.claimed_by(laptop)) for laptop in self.lab.laptops if laptop not in spared}
        return max(running, key=lambda laptop: running[laptop]) if any(running.values()) else ""

    def _cut(self, fleet: Fleet, laptop: str) -> None:
        """Pull its plug, wait until its tasks were taken from it, and start it again."""
        running = sorted(one.id for one in tokens([f"claimed/x/{name}" for name in fleet.claimed_by(laptop)]))
        fleet.power_cut(laptop)
        self.killed.append((laptop, running))
        self._tell(f"power cut of {laptop}, which ran {', '.join(running)}")
        until = time.monotonic() + 300
        while fleet.claimed_by(laptop):
            if time.monotonic() > until:
                raise TimeoutError(f"{laptop} is dead for 300 s and still has {fleet.claimed_by(laptop)}")
            time.sleep(LOOK_S)
        self._tell(f"its tasks were taken from {laptop}; it boots")
        fleet.boot(laptop)

    def _keep_logs(self, fleet: Fleet) -> None:
        for laptop in self.lab.laptops:
            for role in ("master", "worker"):
                try:
                    said = fleet.log(laptop, role)
                except Failed as error:
                    said = str(error)
                (self.scratch / f"{laptop}.{role}.log").write_text(said)

    def _conclude(self, story: Story) -> bool:
        with Spool(story.root) as spool:
            claims = list(prove(story, spool))
        for claim in claims:
            self._tell(f"{'ok    ' if claim.holds else 'FAILED'} {claim.sentence}")
        return all(claim.holds for claim in claims)

    def _tell(self, text: str) -> None:
        self.say(f"{time.monotonic() - self._began:6.0f} s  {text}")


def _counts(found: list[Token]) -> str:
    states = Counter((one.state, "merges" if "-merge" in one.id else "edits") for one in found)
    return ", ".join(f"{count} {what} {state}" for (state, what), count in sorted(states.items()))
