"""A pool in which hostile agents work beside innocent ones, watched from outside; the laws are in `judging`.

Law: black box. All that is judged is known from listings, from files that people may read, from git's own commands on
the remotes, from the `spool` command, and from what the agents say that they left.

Touches: files, processes, threads, the network, the clock, the environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.pool import Daemon, Pool, processes, wait_for
from tools.hostility.agents import judging
from tools.hostility.agents.agent import Plan, plan
from tools.hostility.agents.canaries import Canaries
from tools.hostility.agents.judging import Manifest
from tools.hostility.agents.killing import Killer, of_tasks
from tools.hostility.agents.place import OF_THE_USER, SAVED
from tools.hostility.agents.profiles import worker_file
from tools.hostility.agents.remotes import Remote, owned
from tools.hostility.arena import SETTINGS, judge_nodes

SLOTS, REMOTES = 6, 64
# How long (s) an attempt may take, beyond that its task, a merge, an innocent task, and one look of the owner's.
TIMEOUT_S, LARGE_TIMEOUT_S, PATIENCE_S, MERGE_S, NEXT_S, STATUS_S, GC_S = 90, 600, 60.0, 45.0, 60.0, 20.0, 240.0
CORES = os.cpu_count() or 1
LFS = """[filter "lfs"]
clean = git-lfs clean -- %f
smudge = git-lfs smudge -- %f
process = git-lfs filter-process
required = true
"""


class Ear(threading.Thread):
    """Hears what agents say: when they begin, and what they leave."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        path.parent.mkdir()
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(path))
        self._door.listen(64)
        self.begun: dict[str, float] = {}
        self.left: dict[str, list[Manifest]] = {}

    def run(self) -> None:
        """Listen until the door is shut."""
        with contextlib.suppress(OSError):
            while True:
                way, _ = self._door.accept()
                threading.Thread(target=self._hear, args=(way,), daemon=True).start()

    def close(self) -> None:
        """Shut the door."""
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _hear(self, way: socket.socket) -> None:
        with way, contextlib.suppress(OSError, ValueError):
            data = b""
            while piece := way.recv(1 << 20):
                data += piece
            said = json.loads(data)
            if said["event"] == "begun":
                self.begun.setdefault(said["task"], time.time())
            else:
                self.left.setdefault(said["task"], []).append(Manifest.of(said))
            way.sendall(b"k")


class Arena:
    """One pool; hostile agents work in it, some at once, and innocent ones after them. calm_s: how long it takes in a
    calm pool until an innocent agent begins."""

    def __init__(self, folder: Path, scale: str, python: str = sys.executable) -> None:
        self.scale, self._folder = scale, folder
        self._canaries = Canaries(folder / "canary")
        self.timeout_s = TIMEOUT_S if scale == "small" else LARGE_TIMEOUT_S
        way = folder / "way" / "ear"
        self._ear = Ear(way)
        self._ear.start()
        (folder / "owned").mkdir()
        self._pool = Pool(folder / "spool", folder / "desk", SETTINGS)
        self._pool.python = python
        (folder / "desk" / ".config" / "git").mkdir(parents=True)
        (folder / "desk" / ".config" / "git" / "ignore").write_text(f"*.{OF_THE_USER}\n")
        keys = {
            "SSH_AUTH_SOCK": str(folder / "canary" / "agent.sock"),
            "HOSTILE_SECRET": self._canaries.words["variable"],
        }
        self._pool.env |= {
            "PYTHONPATH": "",
            "PYTHONSAFEPATH": "1",
            "XDG_CACHE_HOME": "",
            "XDG_CONFIG_HOME": "",
            "XDG_STATE_HOME": "",
            **keys,
        }
        self._paths = [folder / "remotes" / f"{number}.git" for number in range(REMOTES)]
        self._nodes: dict[str, Daemon] = {}
        self._ids: dict[str, list[str]] = {}
        self._played, self.calm_s = 0, 0.0
        try:
            self._begin(way, python)
        except BaseException:
            print(self.report(), file=sys.stderr)
            self.close()
            raise

    def _begin(self, way: Path, python: str) -> None:
        """Start the nodes, and see how soon an innocent agent begins where nothing hostile is."""
        for host, name in (("lfs", "left"), ("plain", "right")):
            text = LFS if host == "lfs" and shutil.which("git-lfs") else ""
            (self._folder / f"{host}.gitconfig").write_text(text)
            merger = {"python": python} if host == "lfs" else {}
            file, owned = self._folder / f"{host}.toml", str(self._folder / "owned")
            remotes = [str(path) for path in self._paths]
            file.write_text(worker_file(host, str(way), owned, remotes, merger, self.timeout_s))
            self._pool.env["GIT_CONFIG_SYSTEM"] = str(self._folder / f"{host}.gitconfig")
            self._nodes[name] = self._pool.worker(name, "--config", str(file), slots=SLOTS)
        self._nodes["desk"] = self._pool.master("desk")
        self._pool.ready("left", "right")
        self._ids = {name: self._pool.nodes(name) for name in self._nodes}
        self.calm_s = self._calm()

    def play(self, seeds: Sequence[int], only: str = "") -> list[str]:
        """Play these seeds at once; returns the breaches, each a sentence."""
        plans = {seed: plan(seed, only) for seed in seeds}
        matches = [Match(self, seed, mine, only) for seed, mine in plans.items()]
        breaches: list[str] = []
        for step in (Match.begin, Match.end_task, Match.end_merge, Match.end_base, Match.begin_next, Match.end_next):
            for match in matches:
                breaches += match.told(step(match))
        for match in matches:
            breaches += match.told(match.owner_looks())
        kept = self._collect(breaches)
        places: dict[str, list[str]] | None = None
        try:
            places = self.workspaces()
        except (AssertionError, subprocess.TimeoutExpired) as failed:
            breaches.append(f"5: `spool workspace ls`: {failed}")
        for match in matches:
            where = None if places is None else places.get(match.task, [])
            breaches += match.told(match.judge(kept.get(match.task, ""), where))
        breaches += self._judge_canaries(seeds, matches)
        breaches += self._judge_rest([match.task for match in matches])
        return breaches + [f"5: {one}" for one in judge_nodes(self._pool, self._nodes, self._ids)]

    def close(self) -> list[str]:
        """End the pool; returns the breaches of the laws that count to the end."""
        breaches = []
        try:
            self._pool.close()
        except AssertionError as stubborn:
            breaches.append(f"5: {stubborn}")
        self._ear.close()
        self._canaries.close()
        return breaches

    def report(self) -> str:
        """The logs of the nodes, and what agents could not do."""
        undone = [
            f"{task}, attempt {one.attempt}: {name}: {why}"
            for task, manifests in self._ear.left.items()
            for one in manifests
            for name, why in one.problems.items()
        ]
        return "\n".join([self._pool.report(), "--- what agents could not do", *undone])

    @property
    def pool(self) -> Pool:
        """The pool."""
        return self._pool

    @property
    def ear(self) -> Ear:
        """What the agents said."""
        return self._ear

    def prompt(self, task: str, role: str, seed: int, only: str, again: str) -> str:
        """Return what an agent is told."""
        words = {"task": task, "role": role, "seed": seed, "only": only, "again": again, "scale": self.scale}
        canary = {
            "canary": str(self._canaries.folder),
            "marks": str(self._canaries.marks),
            "port": self._canaries.port,
        }
        return json.dumps({**words, **canary, "root": str(self._pool.root)})

    def remote(self, kind: str) -> Remote:
        """Make the next repository."""
        path = self._paths[self._played % REMOTES]
        self._played += 1
        subprocess.run(["rm", "-rf", path], check=True)
        return Remote(path, kind)

    def _calm(self) -> float:
        """Measure how soon an innocent agent begins where nothing hostile is."""
        waited = [0.0]
        for number, host in enumerate(("lfs", "plain")):
            task, remote = f"calm{number}", self.remote("plain")
            self.submit(task, f"{host}-innocent", self.prompt(task, "innocent", 0, "", ""), repo=str(remote.path))
            for one in (task, f"{task}-merge"):
                result = self._pool.finish(one, NEXT_S)
                assert result["status"] == "success", f"{one}, where nothing hostile is: {result}"
            waited.append(self.waited_s(task) or 0.0)
        return max(waited)

    def submit(
        self, task: str, profile: str, prompt: str, *, retries: int = 0, cwd: str = "", **workspace: str
    ) -> None:
        """Drop a task for an agent."""
        said: dict[str, Any] = {"id": task, "agent": profile, "prompt": prompt, "max_retries": retries}
        said |= {"workspace": workspace} if workspace else {}
        said |= {"cwd": cwd} if cwd else {}
        self._pool.drop(f"{task}.json", said)

    def waited_s(self, task: str) -> float | None:
        """Return how long it took from the claim to the start of an agent; None where it has not begun."""
        begun, results = self._ear.begun.get(task), self._pool.results(task)
        if begun is None or not results:
            return None
        started = datetime.fromisoformat(str(results[0]["started_at"]))
        return begun - started.timestamp()

    def workspaces(self) -> dict[str, list[str]]:
        """Return where the workspaces of each task are. Errors: AssertionError."""
        places: dict[str, list[str]] = {}
        for row in self._pool.json("workspace", "ls"):
            places.setdefault(row["task"], []).append(row["directory"])
        return places

    def _collect(self, breaches: list[str]) -> dict[str, str]:
        """Have all workspaces removed that may go; returns what is said of those that stay, by task."""
        rows: list[dict[str, Any]] = []
        try:
            done = self._pool.run("workspace", "gc", "--keep", "0s", "--json", within_s=GC_S)
        except subprocess.TimeoutExpired:
            breaches.append(f"3: `spool workspace gc` had not ended after {GC_S:g} s")
            return {}
        if "this is a bug" in done.stderr:
            breaches.append(f"5: `spool workspace gc` ended with {done.returncode}: {done.stderr[-1000:]}")
        with contextlib.suppress(ValueError):
            rows = json.loads(done.stdout)
        kept: dict[str, str] = {}
        for row in rows:
            if not row["removed"]:
                kept[row["task"]] = f"{kept.get(row['task'], '')} {row['why']}"
        return kept

    def _judge_canaries(self, seeds: Sequence[int], matches: Sequence[Match]) -> Iterator[str]:
        for told in dict.fromkeys(self._canaries.told()):
            seed = judging.seed_of(told, seeds)
            yield f"1: {told}{'' if seed is None else f' (seed {seed}: {_blocks(matches, seed)})'}"
        for match in matches:
            remote = {word for data in match.remote.everything() for word in self._canaries.words_in(data)}
            kept = set[str]()
            for path in self._pool.root.rglob(f"*{match.task}.*"):
                with contextlib.suppress(OSError):
                    kept.update(self._canaries.words_in(path.read_bytes()))
            found = {f"the remote of {match.task}": remote, f"what the spool keeps of {match.task}": kept}
            for one in judging.judge_words_of_canaries({place: sorted(words) for place, words in found.items()}):
                yield f"{one} (seed {match.seed}: {_blocks(matches, match.seed)})"

    def _judge_rest(self, tasks: Sequence[str]) -> Iterator[str]:
        """What goes on of attempts that have ended."""
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not self._left(tasks), "no process is left", PATIENCE_S)
        for pid, line in self._left(tasks):
            yield f"5: a process of a task is left: {line}"
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _left(self, tasks: Sequence[str]) -> list[tuple[int, str]]:
        """Return processes of ended tasks: those with their variables, and agents, which may have dropped them."""
        agents = [(one.pid, " ".join(one.cmdline())) for one in processes(str(self._folder / "way" / "ear"))]
        return of_tasks(str(self._pool.root), tasks, bool) + agents


class Match:
    """One seed in a pool: its repository, its task, and what follows it."""

    def __init__(self, arena: Arena, seed: int, mine: Plan, only: str) -> None:
        self.seed, self.plan = seed, mine
        self._arena, self._pool, self._only = arena, arena.pool, only
        self.task, self._next, self._after = f"hostile{seed}", f"next{seed}", f"base{seed}"
        self.remote = arena.remote(mine.base if mine.kind in SAVED else "plain")
        self._owned = self._pool.desk.with_name("owned") / self.task
        self._looked = list[Path]()
        self._killer = Killer(self.task, str(self._pool.root), mine.kill, seed) if mine.kill else None
        self._killed = ""

    def told(self, breaches: Iterator[str]) -> Iterator[str]:
        """Say of each breach whose it is."""
        for breach in breaches:
            yield f"{breach} (seed {self.seed}: {', '.join(self.plan.blocks)}; {self.plan.end})"

    def begin(self) -> Iterator[str]:
        """Submit the task of the hostile agent."""
        mine = self.plan
        workspace: dict[str, Any] = {}
        if mine.kind in SAVED:
            workspace = {"repo": str(self.remote.path)}
        elif mine.kind == "cwd":
            self._looked = owned(self.remote.path, self._owned, mine.base)
        retries = 2 if mine.kill else int(mine.again == "retry")
        cwd = str(self._owned) if mine.kind == "cwd" else ""
        prompt = self._arena.prompt(self.task, "hostile", self.seed, self._only, mine.again)
        self._arena.submit(self.task, mine.profile, prompt, retries=retries, cwd=cwd, **workspace)
        if self._killer is not None:
            threading.Thread(target=self._kill, daemon=True).start()
        return iter(())

    def end_task(self) -> Iterator[str]:
        """Wait for its end."""
        attempts = 3 if self.plan.kill else 2 if self.plan.again == "retry" else 1
        try:
            bound_s = PATIENCE_S + attempts * self._arena.timeout_s
            wait_for(lambda: self._pool.ended(self.task), f"{self.task} ends", bound_s)
        except AssertionError as late:
            yield f"3: {late}; it is {self._pool.tokens(self.task) or self._pool.reason(f'{self.task}.json')}"
            self._pool.run("cancel", self.task)
        for result in self._results():
            if result["status"] == "timeout" and self.task in self._arena.ear.left:
                yield f"3: attempt {result['attempt']} of {self.task} left its work, and it was not saved in time"

    def end_merge(self) -> Iterator[str]:
        """Wait for its merge; where people are asked, nobody answers."""
        self._ends(f"{self.task}-merge", MERGE_S)
        if self._killer is not None:
            self._killed = self._killer.end()
        return iter(())

    def end_base(self) -> Iterator[str]:
        """Have a task begin with its work, and wait for its end."""
        references = sorted(self.remote.references(self.task))
        if self.plan.again == "base" and references:
            prompt = self._arena.prompt(self._after, "innocent", self.seed, "", "")
            repo = str(self.remote.path)
            self._arena.submit(self._after, self.plan.profile, prompt, repo=repo, base=references[0])
            self._ends(self._after, NEXT_S, sure=True)
        return iter(())

    def begin_next(self) -> Iterator[str]:
        """Submit the next task of the repository, which is innocent."""
        if self.plan.kind in SAVED:
            prompt = self._arena.prompt(self._next, "innocent", self.seed, "", "")
            host = self.plan.profile.partition("-")[0]
            self._arena.submit(self._next, f"{host}-innocent", prompt, repo=str(self.remote.path))
        return iter(())

    def end_next(self) -> Iterator[str]:
        """Wait for it and for its merge, and judge both."""
        if self.plan.kind not in SAVED:
            return
        self._ends(self._next, NEXT_S, sure=True)
        busy = os.getloadavg()[0] / CORES
        yield from judging.judge_begin(self._next, self._arena.waited_s(self._next), self._arena.calm_s, busy)
        self._ends(f"{self._next}-merge", NEXT_S, sure=True)
        if not self.remote.holds(f"innocent-{self._next}.txt"):
            yield f"3: {self._next}, which is innocent, did not land: {self._why(self._next, f'{self._next}-merge')}"

    def owner_looks(self) -> Iterator[str]:
        """Have the owner of a real clone run git there, where a sandbox held the agent."""
        for place in self._looked if self.plan.sandbox else ():
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                subprocess.run(
                    ["git", "status"],
                    cwd=place,
                    env={**os.environ, "HOME": str(self._pool.desk)},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=STATUS_S,
                    check=False,
                )
        return iter(())

    def judge(self, kept: str, places: Sequence[str] | None) -> Iterator[str]:
        """Judge what was saved, and what landed. places: where its workspaces are, None where nobody knows."""
        results = self._results()
        yield from judging.judge_words(results, self.remote.references(self.task))
        if self.plan.kind in SAVED:
            present = self.remote.present(self.task)
            for manifest in self._arena.ear.left.get(self.task, ()):
                yield from judging.judge_saved(
                    manifest, present, results, _stays(places), killed=bool(self._killed), kept=kept
                )
        merges = [one for task in (self.task, self._next) for one in self._pool.results(f"{task}-merge")]
        landings = [(one.before, one.after) for one in self.remote.landings()]
        tested, known = judging.tested_of(merges), {one.after for one in self.remote.landings()}
        if self._killed and self.plan.kill == "merger":
            tested |= known  # whoever was killed after its push can tell nobody
        goes_on = {(one.before, one.after): self.remote.goes_on(one) for one in self.remote.landings()}
        yield from judging.judge_main(landings, tested, lambda old, new: goes_on[old, new], self.remote.fails)
        yield from judging.judge_merges(merges, known, self.remote.has_in_main)

    def _why(self, *tasks: str) -> str:
        """Return the end of what the last failed attempt of these tasks printed."""
        for task in reversed(tasks):
            for result in reversed(self._pool.results(task)):
                if result["status"] != "success":
                    log = self._pool.root / "logs" / str(result.get("log"))
                    text = log.read_text(errors="replace") if log.is_file() else ""
                    return f"{task}: {(result.get('error') or {}).get('message')}: {' '.join(text.split())[-600:]}"
        return "no attempt failed"

    def _results(self) -> list[dict[str, Any]]:
        return self._pool.results(self.task)

    def _kill(self) -> None:
        assert self._killer is not None
        with contextlib.suppress(AssertionError):
            wait_for(lambda: self._arena.ear.left.get(self.task), "it has left something", self._arena.timeout_s)
            self._killer.start()

    def _ends(self, task: str, within_s: float, *, sure: bool = False) -> None:
        """Wait for the end of a task, if it is there at all, and cancel it if it does not come. sure: it is there."""
        if not sure and not self._pool.tokens(task) and not self._pool.ended(task):
            return
        try:
            wait_for(lambda: self._pool.ended(task), f"{task} ends", within_s)
        except AssertionError:
            self._pool.run("cancel", task)
            with contextlib.suppress(AssertionError):
                wait_for(lambda: self._pool.ended(task), f"{task} is cancelled", within_s)


def _stays(places: Sequence[str] | None) -> Callable[[str], bool]:
    """Return what says whether a path is still in one of these folders."""

    def stays(path: str) -> bool:
        if places is None:
            return True
        # A longer path than any can be asked of at once is there as long as its folder is.
        there = [place for place in places if os.path.isdir(place)]
        return any(len(path) > 2000 or os.path.lexists(os.path.join(place, path)) for place in there)

    return stays


def _blocks(matches: Sequence[Match], seed: int) -> str:
    return next((", ".join(match.plan.blocks) for match in matches if match.seed == seed), "")
