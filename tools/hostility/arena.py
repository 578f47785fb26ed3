"""A pool in which hostile tasks run beside innocent ones, watched from outside, and the laws that must hold.

Law: black box. All that is judged is known from listings, from files that people may read, and from the `spool`
command. The laws:

1. Every innocent task ends as attempt 1, with success.
2. Every node lives on: the same process, under the same id.
3. The beats of a node are never more than BEATS_APART_S apart, as far as the observer itself was not held up.
4. A hostile task ends once, as its own exit code says; only one that kills what holds it may be tried again, and ends
   with a reason. Its slot is free again.
5. Nothing outside of its folders changes.
6. Nothing of it stays: no process, and no file that `spool status` does not name.
7. No verb calls it a bug, and no log has a traceback, or blames the share.

Touches: files, processes, threads, the clock, the environment.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from spoold.protocol.names import parse_beat
from tests.e2e.pool import Daemon, Pool, processes, wait_for
from tools.hostility.deeds import Plan, command, plan

BEATS_APART_S = 5.0
# How long (s) hostile tasks may take to end, beyond their timeout, and what they left to go.
PATIENCE_S, TIMEOUT_S, LARGE_TIMEOUT_S = 90.0, 60, 300
SLOTS, NEIGHBOURS = 8, 2
SETTINGS = """
[heartbeat]
interval_s = 1.0
misses = 20
[retry]
backoff_s = 0.1
crash_limit = 2
[drop]
grace_s = 0.5
[budgets.purse]
cost_usd = 1000000
per = "day"
[types.command]
budgets = ["purse"]
"""
# The temporary folder of the workers: nothing may take its name for a pattern or for words.
TEMPORARY = "tmp [a] *\n b"
# So many verbs are asked after each round, by turn.
ASKED = 3
VERBS = (("status",), ("status", "--json"), ("ls", "--all", "--json"), ("events", "--json"), ("fsck",))
ABOUT = (("show", "--json"), ("result",), ("explain",), ("logs",), ("history", "--json"))
BLAMES = ("Traceback", "share has been silent", "nothing can be done until")


class Beats(threading.Thread):
    """Watches heartbeats/: the longest time (s) between two beats of a node, less what the observer itself missed."""

    def __init__(self, root: Path) -> None:
        super().__init__(daemon=True)
        self._folder = root / "heartbeats"
        self._over = threading.Event()
        self.apart: dict[str, float] = {}

    def run(self) -> None:
        """Look until told to end."""
        last: dict[str, tuple[int, float]] = {}
        looked, missed_s = time.monotonic(), 0.0
        while not self._over.wait(0.1):
            now = time.monotonic()
            missed_s, looked = missed_s + max(0.0, now - looked - 0.2), now
            with contextlib.suppress(FileNotFoundError):
                for name in map(parse_beat, os.listdir(self._folder)):
                    if name is not None and (name.node not in last or name.beat > last[name.node][0]):
                        seen = now - missed_s
                        if name.node in last:
                            apart_s = seen - last[name.node][1]
                            self.apart[name.node] = max(self.apart.get(name.node, 0.0), apart_s)
                        last[name.node] = (name.beat, seen)

    def end(self) -> dict[str, float]:
        """Stop looking; returns the longest times by node."""
        self._over.set()
        self.join()
        return self.apart


class Arena:
    """One pool with its neighbours; hostile tasks are played in it, some at once."""

    def __init__(self, folder: Path, scale: str, python: str = sys.executable) -> None:
        self.scale = scale
        self._folder = folder
        self._canary = _make_canary(folder / "canary")
        self._before = picture(self._canary)
        temporary = folder / TEMPORARY
        temporary.mkdir()
        self._temporary = temporary
        self._pool = Pool(folder / "spool", folder / "desk", SETTINGS)
        self._pool.python = python
        # The tools' own path, which is on the module path, must not hide the package of an older build.
        self._pool.env |= {"TMPDIR": str(temporary), "PYTHONPATH": "", "PYTHONSAFEPATH": "1"}
        self._nodes = {name: self._pool.worker(name, slots=SLOTS + NEIGHBOURS) for name in ("left", "right")}
        self._nodes["desk"] = self._pool.master("desk")
        self._pool.ready("left", "right")
        self._ids = {name: self._pool.nodes(name) for name in self._nodes}
        self._done = folder / "done"
        script = f'while [ ! -e "{self._done}" ]; do sleep 0.2; done'
        self._neighbours = [
            self._pool.submit(f"neighbour{n}", ["sh", "-c", script], timeout=7200) for n in range(2 * NEIGHBOURS)
        ]
        for task in self._neighbours:
            self._pool.claimed(task)
        self._stood, self._turn = set(self._left()), 0
        self._beats = Beats(self._pool.root)
        self._beats.start()

    def play(self, seeds: Sequence[int], only: str = "") -> list[str]:
        """Play these seeds at once; returns the breaches, each a sentence."""
        plans = {f"hostile{seed}": plan(seed, only) for seed in seeds}
        timeout_s = TIMEOUT_S if self.scale == "small" else LARGE_TIMEOUT_S
        for task, mine in plans.items():
            line = command(task.removeprefix("hostile"), self.scale, str(self._canary), only)
            limit_s = 3 if mine.end == "timeout" and self.scale == "small" else timeout_s
            self._pool.submit(task, line, timeout=limit_s, max_retries=0)
        breaches = []
        for task in plans:
            try:
                wait_for(lambda task=task: self._pool.ended(task), f"{task} ends", PATIENCE_S + timeout_s)  # type: ignore[misc]
            except AssertionError as late:
                where = self._pool.tokens(task) or self._pool.reason(f"{task}.json")
                breaches.append(f"{task}: {late}; it is {where}")
        breaches += [said for task, mine in plans.items() for said in self._judge_end(task, mine)]
        breaches += self._judge_rest()
        breaches += judge_nodes(self._pool, self._nodes, self._ids)
        breaches += self._judge_verbs(sorted(plans))
        return breaches

    def close(self) -> list[str]:
        """Let the neighbours end, and end the pool; returns the breaches of the laws that count to the end."""
        breaches = []
        self._done.touch()
        for task in self._neighbours:
            try:
                result = self._pool.finish(task)
            except AssertionError as late:
                breaches.append(f"{task}, which is innocent: {late}")
                continue
            if (result["attempt"], result["status"]) != (1, "success"):
                breaches.append(f"{task}, which is innocent, ended as attempt {result['attempt']}: {result}")
        breaches += self._judge_slots()
        for node, apart_s in sorted(self._beats.end().items()):
            if apart_s > BEATS_APART_S:
                breaches.append(f"{node} was silent for {apart_s:.1f} s")
        try:
            self._pool.close()
        except AssertionError as stubborn:
            breaches.append(str(stubborn))
        if (after := picture(self._canary)) != self._before:
            breaches.append(f"others' files changed: {sorted(self._before.items() ^ after.items())[:6]}")
        return breaches

    def report(self) -> str:
        """The logs of the nodes."""
        return self._pool.report()

    def _judge_end(self, task: str, mine: Plan) -> Iterator[str]:
        results = self._pool.results(task)
        if not results:
            return
        last = results[-1]
        error = last.get("error") or {}
        if last["status"] != "success" and not (error.get("code") and error.get("message")):
            yield f"{task} ended without a reason: {last}"
        if mine.dies:
            return
        if mine.deeds == ("no_files",):
            for name in ("SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE"):
                if f"{name}: is a" not in (last.get("output_problem") or ""):
                    yield f"{task} left something that is no file as {name}, and its record does not say so: {last}"
        if last["attempt"] != 1:
            yield f"{task} ran {last['attempt']} times: {last['error']}"
        # A result can only take a success away by a number for its cost that is none.
        wrong_cost = error.get("code") == "OUTPUT_INVALID"
        if mine.end == "exit 0" and last["status"] != "success" and not wrong_cost:
            yield f"{task} ended with 0, and is {last['status']}: {last['error']}"
        if mine.end != "exit 0" and last["status"] == "success":
            yield f"{task} was to end with {mine.end}, and is a success"

    def _judge_slots(self) -> Iterator[str]:
        """All slots of the pool are free: as many tasks can wait for one another."""
        count, met = 2 * (SLOTS + NEIGHBOURS), self._done.with_name("met")
        met.mkdir()
        script = f'touch "{met}/$0"; while [ "$(ls "{met}" | wc -l)" -lt {count} ]; do sleep 0.3; done'
        last = [self._pool.submit(f"last{n}", ["sh", "-c", script, str(n)], timeout=60) for n in range(count)]
        for task in last:
            try:
                result = self._pool.finish(task, PATIENCE_S)
            except AssertionError as late:
                yield f"{task}, which needs every slot of the pool: {late}"
                return
            if (result["attempt"], result["status"]) != (1, "success"):
                yield f"{task}, which needs every slot of the pool, ended as attempt {result['attempt']}: {result}"
                return

    def _judge_rest(self) -> Iterator[str]:
        """What is left after a while: processes and files."""
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not processes(str(self._canary)), "no process is left", PATIENCE_S)
        for process in processes(str(self._canary)):
            with contextlib.suppress(Exception):
                yield f"a process of a task is left: {process.cmdline()}"
                process.kill()
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not self._unnamed(), "nothing is left that nobody names", PATIENCE_S)
        for path in self._unnamed()[:3]:
            told = re.findall(r'"([^"]*tasks? left [^"]*)', self._pool.run("status", "--json").stdout)
            yield f"{path!r} is left, and `spool status` does not name it; it says {told}"
        free(self._temporary)

    def _judge_verbs(self, tasks: Sequence[str]) -> Iterator[str]:
        """Some verbs are asked of the pool, and some of tasks, by turn."""
        asked: list[tuple[str, ...]] = []
        for _ in range(ASKED):
            self._turn += 1
            verb, *options = ABOUT[self._turn % len(ABOUT)]
            asked += [VERBS[self._turn % len(VERBS)], (verb, tasks[self._turn % len(tasks)], *options)]
        for words in asked:
            try:
                done = self._pool.run(*words)
            except (subprocess.TimeoutExpired, UnicodeDecodeError) as error:
                if not isinstance(error, UnicodeDecodeError):  # a log is in any encoding
                    yield f"spool {' '.join(words)} did not end"
                continue
            if done.returncode not in (0, 1, 4) or "this is a bug" in done.stderr:
                yield f"spool {' '.join(words)}: {done.returncode}: {done.stderr[-500:]}"

    def _unnamed(self) -> list[str]:
        """What was left in the temporary folder since the start, and is named nowhere."""
        left = [path for path in self._left() if path not in self._stood]
        if not left:
            return []
        done = self._pool.run("status", "--json")
        # Of a path that is no text on one line, people are told a quoted form: these names in it are the same.
        # Of much, people are told the first, and how much more: a folder that is not removed yet is one thing.
        more = sum(int(count) for count in re.findall(r"(\d+) more of what tasks left cannot be", done.stdout))
        places = {path: "/".join(Path(path).relative_to(self._temporary).parts[:2]) for path in left}
        unnamed = list(dict.fromkeys(place for place in places.values() if place not in done.stdout))
        return [path for path, place in places.items() if place in unnamed[more:]]

    def _left(self) -> Iterator[str]:
        """All that is in the folders of attempts, below the temporary folder, but for what the next attempt uses."""
        yield from mounted(self._temporary)
        for root in filter(_is_folder, _inside(self._temporary)):
            for folder in _inside(root):
                if not _is_folder(folder):
                    if folder.name != "owner.json":
                        yield f"{folder}/itself"
                    continue
                for path in _inside(folder):
                    empty = path.name in ("work", "deps") and _is_folder(path) and not _inside(path)
                    if not (folder.name.isdigit() and (empty or path.name == "task.json")):
                        yield str(path)


def judge_nodes(pool: Pool, nodes: Mapping[str, Daemon], ids: Mapping[str, list[str]]) -> Iterator[str]:
    """Judge whether the nodes of a pool live, and blame nobody. ids: what each was called at the beginning."""
    for name, daemon in nodes.items():
        if not daemon.running:
            yield f"{name} ended with {daemon.ends()}: {daemon.log.read_text(errors='replace')[-1500:]}"
        elif pool.nodes(name) != ids[name]:
            yield f"{name} was {ids[name]} and is {pool.nodes(name)}"
        said = daemon.log.read_text(errors="replace")
        for blame in BLAMES:
            if blame in said:
                yield f"{name} says {blame!r}: {said[max(0, said.index(blame) - 200) :][:1500]}"


def free(folder: Path) -> None:
    """Unmount what is mounted below a folder, and let root remove what it could not, as people are told to."""
    for point in mounted(folder):
        subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["chattr", "-R", "-f", "-i", folder], stderr=subprocess.DEVNULL, check=False)


def mounted(folder: Path) -> list[str]:
    """What is mounted below a folder, the deepest first."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [line.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape") for line in file]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode) if os.path.lexists(path) else False


def _inside(folder: Path) -> list[Path]:
    """What is in a folder that may be gone by now."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder.iterdir())
    return []


def _make_canary(folder: Path) -> Path:
    """A folder of somebody else, with something in it."""
    (folder / "sub").mkdir(parents=True)
    for name in ("file", "sub/file", "sub/other"):
        (folder / name).write_text(f"{name} of somebody else\n")
    (folder / "sub" / "shut").mkdir(mode=0o500)
    return folder


def picture(folder: Path) -> dict[str, str]:
    """What is in a folder, in every respect that counts."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files, "."):
            path = Path(at, name)
            seen = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path.relative_to(folder))] = f"{seen.st_mode:o} {seen.st_uid} {content}"
    return found
