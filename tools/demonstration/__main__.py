"""tools/demo: a spool, three laptops, real work on a source tree, one failure, one kill -9, and the proof of it.

    dag       the work: a source tree as a DAG of tasks; tasks/ holds their programs
    cluster   the machines: a spool in a scratch folder, a master, three workers
    screen    what the terminal shows meanwhile
    ledger    the timeline of attempts, from the events
    proof     what must be true in the end
    stage     the terminal, signals, and the end of everything that was started
    agents    tools/demo agents: the same with coding agents in a git repository
    recording docs/demo.svg, from a real run

Law: every figure that is printed was counted. Exit status: 0 all claims hold, 1 one does not, 2 nothing to work on,
128 + N ended by signal N.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from spoold import Spool
from spoold.client.spool.spool_status import status
from spoold.protocol.snapshot import Snapshot
from spoold.system.clock import SystemClock
from spoold.system.host import SystemHost
from tools.demonstration.cluster import BEAT_S, LAPTOPS, MISSES, SLOTS, Cluster, Trouble, laptop_of
from tools.demonstration.dag import TWINS, NoSources, Sources, build, find_sources
from tools.demonstration.ledger import Attempt, read_attempts, timeline
from tools.demonstration.proof import Claim, prove
from tools.demonstration.screen import Screen
from tools.demonstration.stage import judge, perform, statuses, terminal

CHECKOUT = Path(__file__).resolve().parents[2]
FILES = 200
# How long the slow task takes at least, and for how long it runs before its laptop is killed, in seconds.
SLOW_S, KILL_AFTER_S = 6.0, 1.5
LOOK_EVERY_S = 0.2
READY_WITHIN_S = 30.0
GIVE_UP_S = 180.0


class Demonstration:
    """One run, from the first process to the last claim."""

    def __init__(self, cluster: Cluster, sources: Sources, console: Console) -> None:
        self.cluster = cluster
        self.sources = sources
        self.console = console
        self.report = cluster.scratch / "report.md"
        self.host, self.clock = SystemHost(), SystemClock()
        self.killed = ""

    def run(self) -> bool:
        """Everything; returns whether all claims hold. Errors: Trouble, SpoolError."""
        began = time.monotonic()
        self.cluster.start()
        with Spool(self.cluster.root) as spool:
            self._await_laptops(spool)
            tasks = build(self.sources, self.report, SLOW_S)
            ids = spool.submit_many(tasks)
            self._print(f"{len(ids)} tasks submitted, {LAPTOPS[0]} to {LAPTOPS[-1]} with {SLOTS} slots each at work.")
            self._print(f"A laptop is taken for dead after {MISSES} beats of {BEAT_S:g} s (lowered in spool.toml).\n")
            live = self.console.is_terminal and not self.console.is_dumb_terminal
            with Screen(self.console, len(ids), live=live) as screen:
                self._watch(spool, len(ids), screen)
            ended = self.cluster.stop()
            attempts = read_attempts(spool.iter_events(), spool.wait(ids, timeout=0).values())
        took_s = time.monotonic() - began
        return self._conclude(ids, attempts, ended, took_s)

    def _await_laptops(self, spool: Spool) -> None:
        """Wait until all laptops and a leader are there, so that all get their share. Errors: Trouble."""
        until = time.monotonic() + READY_WITHIN_S
        while (picture := self._look(spool)).workers.alive < len(LAPTOPS) or picture.source != "leader":
            self.cluster.check_alive()
            if time.monotonic() > until:
                raise Trouble(f"only {picture.workers.alive} laptops came within {READY_WITHIN_S:g} s")
            time.sleep(LOOK_EVERY_S)

    def _watch(self, spool: Spool, total: int, screen: Screen) -> None:
        """Show the progress until every task has ended, and kill a laptop on the way. Errors: Trouble."""
        until = time.monotonic() + GIVE_UP_S
        kill_at: float | None = None
        while True:
            self.cluster.check_alive()
            picture, events = self._look(spool), list(spool.iter_events())
            screen.update(picture, events)
            now = time.monotonic()
            victim = next((e.writer for e in events if e.event == "STARTED" and e.task == TWINS), None)
            if victim is not None and kill_at is None:
                kill_at = now + KILL_AFTER_S
            if kill_at is not None and now >= kill_at and not self.killed:
                self.killed = laptop_of(victim)
                count, after_s = self.cluster.kill(self.killed)
                gone = f"all {count} processes that it had started were gone {after_s:.2f} s later"
                screen.say(f"kill -9 of {self.killed}, which ran {TWINS}; {gone}", "red")
            if picture.tasks.completed + picture.tasks.failed + picture.tasks.rejected >= total:
                screen.update(picture, events)
                return
            if now > until:
                raise Trouble(f"not done within {GIVE_UP_S:g} s: {picture.tasks}; {'; '.join(picture.warnings)}")
            time.sleep(LOOK_EVERY_S)

    def _conclude(self, ids: list[str], attempts: list[Attempt], ended: dict[str, int], took_s: float) -> bool:
        """Print the report, the timeline, the verdict of fsck and the claims; returns whether all of them hold."""
        console = self.console
        text = self.report.read_text(encoding="utf-8") if self.report.exists() else "(there is no report)"
        console.rule("The report", align="left")
        console.print(Markdown(text) if console.is_terminal else text, markup=False)
        console.rule("What happened", align="left")
        console.print(timeline(attempts), "")
        fsck = self.cluster.spool("fsck", check=False)
        console.print("$ spool fsck", fsck.stdout.strip(), "", sep="\n", markup=False)
        claims = [
            *prove(self.cluster.root, ids, attempts, self.killed, len(self.sources.files)),
            Claim(f"fsck ends with status {fsck.returncode}", fsck.returncode == 0),
            Claim(f"{statuses(ended)} when asked to leave", not any(ended.values())),
        ]
        return judge(console, claims, took_s, f"{len(attempts)} attempts of {len(ids)} tasks")

    def _look(self, spool: Spool) -> Snapshot:
        """How the cluster stands, as `spool status` has it."""
        with spool.reaching():
            return status(spool.store, self.host, self.clock)

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False)


def main(arguments: list[str]) -> int:
    """Run the demonstration; returns the exit status."""
    if arguments[:1] == ["agents"]:
        from tools.demonstration.agents.run import main as with_agents

        return with_agents(arguments[1:])
    options = parser().parse_args(arguments)
    console = terminal()
    try:
        sources = find_sources(Path(options.path).resolve(), options.files)
    except (NoSources, OSError) as error:
        print(f"tools/demo: {error}", file=sys.stderr)
        return 2

    def play(cluster: Cluster) -> bool:
        console.print(f"{sources}\nscratch folder {cluster.scratch}", markup=False)
        return Demonstration(cluster, sources, console).run()

    return perform(Cluster, play, keep=options.keep)


def parser() -> argparse.ArgumentParser:
    """What may stand on the command line."""
    made = argparse.ArgumentParser(
        prog="tools/demo",
        description="Run real work on three pretended laptops: analyse a Python source tree, kill one of them, and "
        "prove that nothing was lost or done twice. `tools/demo agents` does it with coding agents.",
    )
    made.add_argument("path", nargs="?", default=CHECKOUT, help="the folder of a Python project (default: this one)")
    made.add_argument(
        "--files", type=at_least_one, default=FILES, help="at most so many files (default: %(default)s)"
    )
    made.add_argument("--keep", action="store_true", help="leave the scratch folder with the spool")
    return made


def at_least_one(text: str) -> int:
    """A number of files. Errors: ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of files")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
