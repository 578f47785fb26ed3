"""tools/storm: submits without end for a while, kills a leader every 3 s and a worker every 5 s, then lets all end.

Law: the exit status is 1 when a law was broken, or a storm did not come to its end.

Touches: files, processes, threads, the clock, the terminal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tests.e2e.pool import Daemon, Pool, wait_for
from tools.storming.asking import Questions
from tools.storming.check import budgets, ends_of, judge, runs_of
from tools.storming.weather import SETTINGS, Submitted, Weather

LEADERS, LEADER_DIES_S = 2, 3.0
WORKERS, SLOTS, WORKER_DIES_S = 3, 3, 5.0
# So many tasks (1/s) are submitted, and how long (s) the rest may take when nothing is killed any more.
A_SECOND, REST_S = 3.0, 240.0
ANSWER_S = 1.0


class Storm:
    """One storm, in a folder of its own."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._weather = Weather(seed)
        self._ledger = folder / "ledger"
        self._ledger.mkdir()
        self.pool = Pool(folder / "spool", folder / "desk", SETTINGS)
        self.submitted: dict[str, Submitted] = {}
        self.killed: Counter[str] = Counter()
        self.questions = Questions(self.pool.root, self.submitted, seed)
        self._numbers = {"m": 0, "w": 0}
        self._alive: dict[str, list[Daemon]] = {"m": [], "w": []}
        self._over = threading.Event()

    def blow(self, seconds: float) -> list[str]:
        """Let it blow for so long, and then end; returns the breaches. Errors: AssertionError if it does not end."""
        for kind, count in (("m", LEADERS), ("w", WORKERS)):
            for _ in range(count):
                self._start(kind)
        self.pool.ready("w1")
        threads = [
            threading.Thread(target=each, args=[self._over], daemon=True)
            for each in (self._answer, self.questions.ask)
        ]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        due = {"m": began + LEADER_DIES_S, "w": began + WORKER_DIES_S}
        tasks = self._weather.tasks()
        while (now := time.monotonic()) < began + seconds:
            while len(self.submitted) < (now - began) * A_SECOND:
                self._submit(next(tasks))
            for kind, every_s in (("m", LEADER_DIES_S), ("w", WORKER_DIES_S)):
                if now >= due[kind]:
                    self._kill(kind)
                    due[kind] = now + every_s
            self._over.wait(0.05)
        breaches = self._end()
        self._over.set()
        for thread in threads:
            thread.join()
        breaches += judge(self.pool.root, self._ledger, self.submitted)
        return breaches + self.questions.judge(runs_of(self._ledger), ends_of(self.pool.root))

    def _submit(self, task: Submitted) -> None:
        program = str(Path(__file__).with_name("command.py"))
        words = [str(self._ledger), str(task.seconds), ",".join(map(str, task.codes)), str(task.cost)]
        self.pool.submit(task.id, [sys.executable, "-I", "-S", program, *words], **task.fields)
        self.submitted[task.id] = task
        self.questions.moments[task.id] = time.time()

    def _start(self, kind: str) -> None:
        self._numbers[kind] += 1
        name = f"{kind}{self._numbers[kind]}"
        made = self.pool.master(name) if kind == "m" else self.pool.worker(name, slots=SLOTS)
        self._alive[kind].append(made)

    def _kill(self, kind: str) -> None:
        """Kill the leader, or a worker, and start another one."""
        alive, leader = self._alive[kind], self.pool.leader() or ""
        mine = [one for one in alive if kind == "w" or leader.rpartition("-")[0] in (one.label, f"m-{one.label}")]
        victim = self._weather.chance.choice(mine or alive)
        alive.remove(victim)
        victim.kill()
        if kind == "m":
            self.questions.kills.append(time.time())
        self.killed["leaders" if mine and kind == "m" else "workers" if kind == "w" else "standbys"] += 1
        self._start(kind)

    def _answer(self, over: threading.Event) -> None:
        """Approve all that is asked, as a person would."""
        while not over.wait(ANSWER_S):
            with contextlib.suppress(Exception):
                at = time.time()
                asks = [asked["task"] for asked in json.loads(self.pool.run("asks", "--json").stdout)]
                self.questions.see(at, asks)
                for task in asks:
                    self.pool.run("approve", task)
                    self.questions.answered.setdefault(task, time.time())

    def _end(self) -> list[str]:
        """Wait until all have ended, with the budget raised that holds some; returns breaches of that budget."""
        breaches = list(budgets(self.pool.root, self.submitted, ["purse"]))
        self.pool.cli("budget", "raise", "purse", "--cost-usd", "1000", "--reason", "the storm is over")
        wait_for(lambda: all(map(self._ended, self.submitted)), "all tasks have ended", REST_S)
        return breaches

    def _ended(self, task: str) -> bool:
        return self.pool.ended(task) is not None or any((self.pool.root / "archive").rglob(f"{task}.*.json"))


def main() -> int:
    """Storm; returns the exit status."""
    options = _parse()
    began, failed, done = time.monotonic(), 0, 0
    for seed in range(options.begin, options.begin + options.seeds):
        if options.time and time.monotonic() - began > options.time:
            print(f"storm: left out seeds from {seed} on: the time was over")
            break
        folder = Path(tempfile.mkdtemp(prefix="spoold-storm-"))
        storm = Storm(seed, folder)
        try:
            breaches = storm.blow(options.seconds)
        except AssertionError as late:
            breaches = [f"{late}: {storm.pool.run('status').stdout[-2000:]}"]
        finally:
            with contextlib.suppress(AssertionError):
                storm.pool.close()
        done += 1
        failed += bool(breaches)
        kills = ", ".join(f"{count} {what}" for what, count in sorted(storm.killed.items()))
        print(f"storm {seed}: {len(storm.submitted)} tasks, killed {kills}; breaches: {len(breaches)}")
        print(f"storm {seed}: {storm.questions.told()}")
        for breach in breaches[:20]:
            print(f"VIOLATION tools/storm --seeds 1 --from {seed} --seconds {options.seconds:g}: {breach}")
        if breaches and options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{done - failed} passed, {failed} failed in {time.monotonic() - began:.0f}s")
    return 1 if failed or not done else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/storm", description="All policy mixed, with kills.")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="so many storms")
    parser.add_argument("--from", dest="begin", type=int, default=0, metavar="S", help="the first seed (default: 0)")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="how long each blows (default: 60)")
    parser.add_argument("--time", type=float, metavar="S", help="begin no storm after that many seconds")
    parser.add_argument("--keep", action="store_true", help="keep the folder of a storm that broke a law")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("--seeds counts from 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
