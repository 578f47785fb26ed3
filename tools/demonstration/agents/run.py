"""tools/demo agents: three laptops, coding agents in a git repository, and everything that goes wrong with them.

    mind        what the scripted model makes of a prompt
    model       the model, on loopback; it counts
    installing  the agent's command line, from npm into a cache; else our own, and why
    agent       our own
    laptops     the cluster, with agents
    repository  what the agents work on
    claims      what must be true in the end

A plan of edits and merges runs; a laptop is killed in the middle, a quota is used up, and two edits conflict.

Law: every figure that is printed was counted. No step waits without an end, and one that is late says for what.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from spoold import Spool, State
from spoold.protocol.amount import amount, some
from spoold.protocol.event import Event
from tools.demonstration.agents.claims import Story, prove
from tools.demonstration.agents.installing import CHOICES, Cli, find
from tools.demonstration.agents.laptops import BEAT_S, MISSES, Laptops
from tools.demonstration.agents.mind import LEAST, SLOW, SPENT, feature, wish
from tools.demonstration.agents.model import CLOSED_LONGER_S, CLOSED_S, Model
from tools.demonstration.agents.repository import Repository
from tools.demonstration.cluster import LAPTOPS, Trouble, laptop_of
from tools.demonstration.ledger import read_attempts
from tools.demonstration.proof import Claim
from tools.demonstration.screen import Screen
from tools.demonstration.stage import judge, perform, statuses, terminal

EDITS, EDITS_MAX = 12, 90
PLAN = "demo"
ALL_S, READY_S, PLAN_S, LOOK_S = 280.0, 30.0, 90.0, 0.3
ENDED = (State.COMPLETED, State.FAILED, State.SKIPPED, State.REJECTED)
# So many lines of the plan are shown.
PLAN_LINES = 12
CACHE = Path(os.environ.get("ENVIRONMENT") or ".venv") / "cache" / "agents"


class Demonstration:
    """One run, from the first process to the last claim."""

    def __init__(self, laptops: Laptops, cli: Cli, count: int, within_s: float, console: Console) -> None:
        self.laptops, self.cli, self.count, self.console = laptops, cli, count, console
        self.repository = Repository(laptops.scratch)
        self.model = Model(feature(SLOW), feature(SPENT), CLOSED_LONGER_S.get(cli.name, CLOSED_S))
        self.killed = ""
        self.until = time.monotonic() + within_s

    def run(self) -> bool:
        """Everything; returns whether all claims hold. Errors: Trouble, SpoolError, OSError."""
        began = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(self.model)
            self.laptops.arm(self.cli, self.model.url, self.repository.path)
            self.laptops.start()
            spool = stack.enter_context(Spool(self.laptops.root))
            self._await("all laptops", READY_S, lambda: len(spool.roster().workers) == len(LAPTOPS))
            self._print(
                f"{LAPTOPS[0]} to {LAPTOPS[-1]} with {amount(self.laptops.slots, 'slot')} each offer {self.cli.said}."
            )
            self._print(f"A laptop is taken for dead after {MISSES} beats of {BEAT_S:g} s (lowered in spool.toml).\n")
            ids = self._plan()
            live = self.console.is_terminal and not self.console.is_dumb_terminal
            with Screen(self.console, len(ids) + 1, live=live) as screen:
                self._watch(spool, set(ids), screen)
            left = self.laptops.stop()
            events = list(spool.iter_events())
            results = spool.wait([PLAN, *ids, *self._helpers(spool)], timeout=0)
        attempts = read_attempts(events, results.values())
        seen = (ids, attempts, results, self.killed)
        story = Story(self.laptops.root, PLAN, self.count, *seen, self.model, self.repository)
        return self._conclude(story, left, time.monotonic() - began)

    def _plan(self) -> list[str]:
        """Have an agent plan, and submit what it planned; returns the ids."""
        words = ("plan", wish(self.count), "--id", PLAN, "--repo", str(self.repository.path), "--base", "main")
        self._print(f"$ spool plan '{wish(self.count)[:40]}…' --repo {self.repository.path} --yes")
        self.laptops.spool(*words, check=False, within_s=PLAN_S)  # without --yes it only shows the plan
        shown = self.laptops.spool("plan", "--task", PLAN, check=False, within_s=PLAN_S).stdout
        done = self.laptops.spool("plan", "--task", PLAN, "--yes", "--json", within_s=PLAN_S).stdout
        self._print(beginning(shown.partition("spool: nothing")[0]))
        ids: list[str] = json.loads(done[done.index("{") :])["ids"]
        return ids

    def _watch(self, spool: Spool, ids: set[str], screen: Screen) -> None:
        """Show the progress until every task of the plan has ended, and kill a laptop on the way. Errors: Trouble."""
        slow, spent = f"{PLAN}-{self.model.slow}", f"{PLAN}-{self.model.spent}"
        while True:
            self.laptops.check_alive()
            picture, events = spool.status(), list(spool.iter_events())
            screen.update(picture, events)
            if not self.killed:
                # After the refusal, since the agent that is refused may be on the same laptop.
                refused = any(one.event == "RETURNED" and one.task == spent for one in events)
                if refused and self.model.reached.is_set():
                    self._kill(next(one for one in events if one.event == "STARTED" and one.task == slow), screen)
            done = {row.id for row in spool.tasks(states=ENDED).items}
            if ids <= done:
                screen.update(spool.status(), list(spool.iter_events()))
                return
            if time.monotonic() > self.until:
                what = some(sorted(ids - done)) if self.killed else f"{slow} to begin, and {spent} to be refused"
                raise Trouble(f"not done in time: waited for {what}; {'; '.join(picture.warnings)}")
            time.sleep(LOOK_S)

    def _kill(self, started: Event, screen: Screen) -> None:
        self.killed = laptop_of(started.writer)
        count, after_s = self.laptops.kill(self.killed)
        gone = f"all {count} processes that it had started were gone {after_s:.2f} s later"
        screen.say(f"kill -9 of {self.killed} and its process group, which ran {started.task}; {gone}", "red")

    def _helpers(self, spool: Spool) -> list[str]:
        """The tasks that a merge submitted."""
        return [row.id for row in spool.tasks(states=ENDED).items if "-resolve-" in row.id]

    def _conclude(self, story: Story, left: dict[str, int], took_s: float) -> bool:
        """Print the verdict of fsck, main, and the claims; returns whether all of them hold."""
        console = self.console
        fsck = self.laptops.spool("fsck", check=False, within_s=READY_S)
        console.rule("main", align="left")
        for commit in reversed(self.repository.first_parents()):
            has = len(self.repository.features(commit))
            console.print(f"{commit[:12]}  {has} features", markup=False)
        console.print("", "$ spool fsck", fsck.stdout.strip(), "", sep="\n", markup=False)
        claims = [
            *prove(story),
            Claim(f"fsck ends with status {fsck.returncode}", fsck.returncode == 0),
            Claim(f"{statuses(left)} when asked to leave", not any(left.values())),
        ]
        many = f"{len(story.attempts)} attempts of {len(story.results)} tasks by {self.cli.said}"
        return judge(console, claims, took_s, many)

    def _await(self, what: str, within_s: float, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + within_s
        while not condition():
            self.laptops.check_alive()
            if time.monotonic() > until:
                raise Trouble(f"waited {within_s:g} s for {what}")
            time.sleep(LOOK_S)

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False)


def beginning(plan: str) -> str:
    """Return the first lines of a plan, and how many more there are: people came to see it run."""
    lines = plan.strip().split("\n")
    more = len(lines) - PLAN_LINES
    return "\n".join([*lines[:PLAN_LINES], *([f"… and {amount(more, 'more line')}"] if more > 0 else []), ""])


def main(arguments: list[str]) -> int:
    """Run the demonstration; returns the exit status."""
    options = parser().parse_args(arguments)
    console = terminal()

    def play(laptops: Laptops) -> bool:
        cli, why = find(options.cli, CACHE)
        if why:
            console.print(f"{options.cli} is not there: {why}. Our own agent takes its place.", markup=False)
        console.print(f"scratch folder {laptops.scratch}", markup=False)
        return Demonstration(laptops, cli, options.edits, options.within, console).run()

    return perform(Laptops, play, keep=options.keep)


def parser() -> argparse.ArgumentParser:
    """What may stand on the command line."""
    made = argparse.ArgumentParser(
        prog="tools/demo agents",
        description="Have coding agents plan, edit and merge in a git repository on three pretended laptops; kill "
        "one laptop, use up a quota, make a conflict; and prove that no edit was lost. The model is a script on "
        "loopback, so no account is needed.",
    )
    made.add_argument(
        "--cli", choices=CHOICES, default=CHOICES[0], help="the agent; installed from npm (default: %(default)s)"
    )
    made.add_argument("--edits", type=edits, default=EDITS, help="how many edits (default: %(default)s)")
    made.add_argument(
        "--within",
        type=float,
        default=ALL_S,
        metavar="S",
        help="give up after so many seconds (default: %(default)g)",
    )
    made.add_argument("--keep", action="store_true", help="leave the scratch folder with the spool")
    return made


def edits(text: str) -> int:
    """A number of edits. Errors: ArgumentTypeError."""
    if not text.isdecimal() or not LEAST <= int(text) <= EDITS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of edits from {LEAST} to {EDITS_MAX}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
