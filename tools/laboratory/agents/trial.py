"""One trial: edits by real agents, merges, a power cut of a laptop, and the count of what came of it.

Law: no step waits without an end, and one that is late says for what.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from spoold import Spool
from tools.demonstration.agents.mind import LARGE, SUITE, WORD, asked_for, feature
from tools.demonstration.agents.repository import FILES, Repository
from tools.laboratory.agents.claims import Story, prove
from tools.laboratory.agents.fleet import APP, LINKED, Fleet, repository
from tools.laboratory.agents.provider import Provider
from tools.laboratory.channel import Failed
from tools.laboratory.lab import Lab
from tools.laboratory.matrix.ledger import Token, tokens
from tools.laboratory.network import CONTROL

NAME = "spool"
LOOK_S, LEAD_S = 3.0, 60.0
COPIED, LARGE_ONE, LARGE_BYTES = 2, 3, 300_000
HOLD_S = 120.0  # for how long the last word of an agent is waited for


def edits(count: int, clis: list[str]) -> list[dict[str, object]]:
    """The tasks: the edits in turn by each of the command lines. The first and the last conflict; one is in a
    repository with a submodule, and one in a repository with files of git-lfs."""
    made = []
    for number in range(1, count + 1):
        name, tells = feature(number), number in (1, count)
        copies, large = number == COPIED, number == LARGE_ONE
        accept = [SUITE, f"python3 -B -c 'from features.{name} import value; assert value() == {number}'"]
        accept += [f"cmp {WORD} features/{name}.txt"] if copies else []
        accept += [f'test "$(wc -c <{LARGE}/{name}.bin)" = {LARGE_BYTES}'] if large else []
        task: dict[str, object] = {
            "id": f"edit-{number:02d}",
            "agent": clis[(number - 1) % len(clis)],
            "prompt": asked_for(number, tells=tells, copies=copies, large=large),
            "must_change": True,
            "accept": accept,
        }
        if copies or large:
            task["workspace"] = {"repo": repository(LINKED if copies else LARGE)}
        made.append(task | ({"priority": "high"} if tells else {}))
    return made


def repositories(scratch: Path) -> dict[str, Repository]:
    """Make all repositories, by name."""
    word = Repository(scratch, "lib", {"word.txt": "spool\n"})
    tracked = {".gitattributes": f"{LARGE}/*.bin filter=lfs diff=lfs merge=lfs -text\n", f"{LARGE}/.gitkeep": ""}
    return {
        "lib": word,
        APP: Repository(scratch, APP),
        LINKED: Repository(scratch, LINKED, lib=word),
        LARGE: Repository(scratch, LARGE, FILES | tracked),
    }


@dataclass
class Trial:
    """One run on a lab that is up. kill_at: how many merges have landed when a laptop loses its power, in order;
    away_at: how many edits are done when the git server goes, for away_s; account: the command line whose account is
    closed for closed_s, '' for none.
    """

    lab: Lab
    clis: dict[str, Path]
    count: int
    slots: int
    kill_at: list[int]
    within_s: float
    scratch: Path
    say: Callable[[str], None]
    away_at: list[int] = field(default_factory=list)
    away_s: float = 60
    account: str = ""
    closed_s: float = 240
    killed: list[tuple[str, list[str]]] = field(default_factory=list)
    away: list[list[str]] = field(default_factory=list)
    _began: float = 0.0

    def run(self) -> bool:
        """All of it; whether all claims hold, also of what was done when the time was over. Errors: Failed,
        TimeoutError, OSError."""
        self._began, late = time.monotonic(), False
        found = repositories(self.scratch)
        tasks = edits(self.count, list(self.clis))
        share = sum(task["agent"] == self.account for task in tasks)
        with ExitStack() as stack:
            with self.lab.network.inside():
                model = Provider(self.account, self.closed_s, min(2, share), host=f"{CONTROL}.1")
            stack.enter_context(model)
            fleet = Fleet(self.lab, NAME, clis=self.clis, url=model.url, slots=self.slots, account=self.account)
            fleet.make(fleet.settings)
            for one in found.values():
                fleet.share(one.path)
            fleet.serve()
            fleet.start_all()
            fleet.submit("".join(f"{json.dumps(task)}\n" for task in tasks))
            self._tell(f"{len(tasks)} edits submitted; {self.slots} agents at once on each laptop")
            try:
                try:
                    self._watch(fleet, model)
                except TimeoutError as error:
                    self._tell(str(error))
                    late = True
                left = fleet.spool("laptop2", "status", check=False).out
                with suppress(*([TimeoutError] if late else [])):
                    fleet.stop_all()
            finally:
                self._keep_logs(fleet)
                fleet.fetch(self.scratch / "share")
        self._tell(f"{'the time is over' if late else 'everything has ended'}\n{left}")
        other = fleet.other if self.account else ""
        return self._conclude(Story(self.scratch, tasks, self.killed, self.away, found, model, other))

    def _watch(self, fleet: Fleet, model: Provider) -> None:
        """Wait for the end of all tasks; a laptop goes whenever so many merges have landed, and the git server when
        so many edits are done, since one of them shall miss it."""
        due, away, shown = list(self.kill_at), list(self.away_at), ""
        wanted = {f"edit-{number:02d}{end}" for number in range(1, self.count + 1) for end in ("", "-merge")}
        while True:
            found = tokens(fleet.on_disk("find . -name '*.json' -printf '%P\\n'").split())
            ended = {one.id for one in found if one.state in ("completed", "failed", "archive")}
            completed = [one.id for one in found if one.state == "completed"]
            landed = sum(task.endswith("-merge") for task in completed)
            if (now := _counts(found)) != shown:
                self._tell(shown := now)
            if wanted <= ended and all(one.id in ended for one in found):
                return
            if due and landed >= due[0] and (victim := self._victim(fleet)):
                due.pop(0)
                self._cut(fleet, victim)
            elif away and len(completed) - landed >= away[0]:
                away.pop(0)
                self._take_away(fleet, model)
            if time.monotonic() - self._began > self.within_s:
                raise TimeoutError(f"not done within {self.within_s:g} s: {sorted(wanted - ended)}")
            time.sleep(LOOK_S)

    def _take_away(self, fleet: Fleet, model: Provider) -> None:
        """End the git server when an agent is about to say its last word, so that its push is due. Start it after
        away_s, but not before such a push has failed."""
        model.hold()
        until = time.monotonic() + HOLD_S
        while not model.held and time.monotonic() < until:
            time.sleep(0.2)
        fleet.end_server()
        model.release()
        self.away.append(list(model.held))
        self._tell(f"the git server is away, while pushes of {', '.join(model.held) or 'nobody'} are due")
        since = time.monotonic()
        tasks = [f"edit-{name[1:]}" for name in model.held]
        # A push comes late on a busy machine; one that finds the server back proves nothing.
        while (gone_s := time.monotonic() - since) < self.away_s or (
            gone_s < self.away_s + HOLD_S and tasks and not fleet.tries_again(tasks)
        ):
            time.sleep(LOOK_S)
        fleet.serve()
        self._tell("the git server is back")

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
