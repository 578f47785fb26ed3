"""What a scenario can say, and what it prints: the commands of the README's table, over a `Cluster`.

Law: a command that finds something other than it was told raises AssertionError with what it found instead.
"""

from __future__ import annotations

import contextlib
import errno
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from typing import Any

from spoold.protocol import layout
from spoold.protocol.event import Event
from spoold.protocol.request import Verb
from spoold.rules.tree.audit import Severity, audit
from spoold.store import control, journal
from spoold.store.store import open_store
from spoold.store.tree_repair import survey
from tests.scenarios.words import described, normalised, seconds, told
from tests.support.cluster import Cluster
from tests.support.faults import How
from tests.support.loans import FakeLoans
from tests.support.tokens import tokens

_SHOWN = (
    layout.PENDING,
    layout.ADMITTING,
    layout.WAITING,
    layout.READY,
    layout.CLAIMED,
    layout.RETURNED,
    layout.COMPLETED,
    layout.FAILED,
    layout.REJECTED,
    layout.RESULTS,
    layout.LOGS,
    layout.CONTROL,
    layout.ARCHIVE,
)
_HOW: dict[str, How] = {"refused": "refused", "done": "done", "late": "late"}


class Stage:
    """A scenario being played."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self._reader = journal.Reader(self.cluster.fs)
        self._events: list[Event] = []
        self._requests = 0
        self._loans: dict[str, FakeLoans] = {}
        self.damaged = False

    def run(self, text: str, given: list[str]) -> list[str]:
        """Carry out one command; returns what it prints, troubles of the nodes last."""
        verb, _, rest = text.partition(" ")
        act = getattr(self, f"do_{verb}", None)
        assert act is not None, f"no such command: {verb}"
        self.cluster.troubles.clear()
        printed = list(act(rest, given) or [])
        return [normalised(line) for line in [*printed, *self.cluster.troubles]]

    def close(self) -> None:
        """At the end of every scenario nothing may be wrong with the tree."""
        store = open_store(self.cluster.fs, self.cluster.clock, "fsck", "/spool")
        found = [f for f in audit(survey(store)) if f.severity is Severity.ERROR]
        assert self.damaged or not found, f"fsck: {[(f.law, f.paths, f.problem) for f in found]}"

    # The cluster

    def do_settings(self, rest: str, given: list[str]) -> None:
        self.cluster.configure("\n".join(given) + "\n")

    def do_master(self, rest: str, given: list[str]) -> None:
        name, options = _options(rest)
        self.cluster.master(name, **options)

    def do_worker(self, rest: str, given: list[str]) -> None:
        name, options = _options(rest)
        config = tomllib.loads("\n".join(given))
        loans = self._loans[name] = FakeLoans()
        self.cluster.worker(name, int(options.pop("slots", 1)), config=config, loans=loans, **options)

    def do_step(self, rest: str, given: list[str]) -> None:
        for name in rest.split():
            if name == "all":
                self.cluster.step_all()
            else:
                self.cluster.step(name)

    def do_settle(self, rest: str, given: list[str]) -> None:
        self.cluster.settle()

    def do_advance(self, rest: str, given: list[str]) -> None:
        self.cluster.advance(seconds(rest))

    def do_wall(self, rest: str, given: list[str]) -> None:
        name, by = rest.split()
        clock = self.cluster.nodes[name].clock
        clock.set_wall(clock.wall() + seconds(by))

    def do_sleep(self, rest: str, given: list[str]) -> None:
        name, length = rest.split()
        self.cluster.sleep(name, seconds(length))

    def do_nap(self, rest: str, given: list[str]) -> None:
        self.cluster.nodes[rest].worker.fall_asleep()

    def do_wake(self, rest: str, given: list[str]) -> None:
        self.cluster.nodes[rest].worker.wake_up()

    def do_freeze(self, rest: str, given: list[str]) -> None:
        self.cluster.nodes[rest].frozen = True

    def do_thaw(self, rest: str, given: list[str]) -> None:
        self.cluster.nodes[rest].frozen = False

    def do_crash(self, rest: str, given: list[str]) -> None:
        name, *where = rest.split()
        if where:
            _, verb, path, *number = where
            self.cluster.nodes[name].fs.crash_at(verb, path, int(number[0]) if number else 1)
        else:
            self.cluster.crash(name)
            self.cluster.troubles.clear()

    def do_stop(self, rest: str, given: list[str]) -> None:
        self.cluster.stop(rest)

    def do_cut(self, rest: str, given: list[str]) -> None:
        self.cluster.nodes[rest].fs.off = True

    def do_heal(self, rest: str, given: list[str]) -> None:
        self.cluster.nodes[rest].fs.off = False

    def do_fault(self, rest: str, given: list[str]) -> None:
        """`fault w1 rename claimed/ EIO refused|done|late`: the next such call."""
        name, verb, path, code, how = rest.split()
        self.cluster.nodes[name].fs.fail(verb, path, getattr(errno, code), _HOW[how])

    def do_deliver(self, rest: str, given: list[str]) -> list[str]:
        return [f"{self.cluster.nodes[rest].fs.deliver()} calls were carried out late"]

    def do_hang(self, rest: str, given: list[str]) -> None:
        """`hang m1 at rename ready/`, the input being what happens meanwhile."""
        name, _, verb, path = rest.split()

        def meanwhile() -> None:
            for line in given:
                self.run(line, [])

        self.cluster.during(name, verb, path, meanwhile)

    def do_full(self, rest: str, given: list[str]) -> None:
        usage = self.cluster.fs.usage()
        self.cluster.fs.capacity = usage.total_bytes - usage.free_bytes

    def do_room(self, rest: str, given: list[str]) -> None:
        self.cluster.fs.capacity = None

    # What people do

    def do_submit(self, rest: str, given: list[str]) -> None:
        drop, _, content = rest.partition(" ")
        self.cluster.submit(drop, content + "\n")

    def do_drop(self, rest: str, given: list[str]) -> None:
        """`drop NAME [cut] [in ENCODING] [of N bytes]`, the input being the content."""
        name, *how = rest.split()
        text = "\n".join(given) + ("" if "cut" in how or not given else "\n")
        data = text.encode(how[how.index("in") + 1] if "in" in how else "utf-8")
        self.cluster.submit(name, data.ljust(int(how[how.index("of") + 1]) if "of" in how else 0))

    def do_link(self, rest: str, given: list[str]) -> None:
        self.cluster.fs.make_symlink(f"pending/{rest}", "/etc/passwd")

    def do_pipe(self, rest: str, given: list[str]) -> None:
        self.cluster.fs.make_fifo(f"pending/{rest}")

    def do_mkdir(self, rest: str, given: list[str]) -> None:
        self.cluster.fs.make_dirs(rest)

    def do_request(self, rest: str, given: list[str]) -> None:
        verb, target, *words = rest.split()
        more: dict[str, Any] = dict(word.split("=", 1) for word in words)
        person = open_store(self.cluster.fs, self.cluster.clock, "person", "/spool")
        person.open_tmp()
        self._requests += 1
        if "redo" in more:  # as the command does it: this round, and the attempts that have ended
            more["order"] = self.cluster.find(target).path.rpartition("/")[2].split(".")[1]
            again = more["redo"].split(",")
            more["redo"] = [(task, self.cluster.find(task).name.attempt) for task in again]
        control.post(person, Verb(verb), target, f"{self._requests}", by="you", **more)
        person.close_tmp()

    def do_remove(self, rest: str, given: list[str]) -> None:
        """A person deletes a task's file."""
        token = self.cluster.find(rest)
        self.cluster.fs.unlink(token.path)
        self.cluster.witness.forget(token.id)

    def do_finish(self, rest: str, given: list[str]) -> None:
        task_id, options = _options(rest)
        ending: dict[str, Any] = {"on": options.pop("on", ""), "output": options.pop("output", "")}
        if "exit" in options:
            ending["exit_code"] = int(options.pop("exit"))
        if "result" in options:
            self._write_result(task_id, options.pop("result"))
        self.cluster.finish(task_id, **ending, **options)

    def do_lend(self, rest: str, given: list[str]) -> None:
        for loans, attempt in self._attempts(rest):
            loans.lend(attempt)

    def do_back(self, rest: str, given: list[str]) -> None:
        for loans, attempt in self._attempts(rest):
            loans.ask(attempt)

    def _attempts(self, task_ids: str) -> Iterator[tuple[FakeLoans, str]]:
        """The attempts of these tasks that run, with the loans of their workers."""
        for name, running in self.cluster.running().items():
            for attempt in running:
                if attempt.rpartition(".")[0] in task_ids.split():
                    yield self._loans[name], attempt

    def _write_result(self, task_id: str, text: str) -> None:
        for node in self.cluster.nodes.values():
            for key in node.runner.live if node.runner else ():
                if key.rpartition(".")[0] == task_id and node.scratch is not None:
                    node.scratch.write(key, "result.json", text.encode())

    # What is so

    def do_tree(self, rest: str, given: list[str]) -> list[str]:
        """Every file, link and pipe in these directories (all of them), and empty claim directories."""
        return sorted(normalised(path) for top in rest.split() or _SHOWN for path in self._walk(top))

    def _walk(self, path: str) -> list[str]:
        fs = self.cluster.fs
        if fs.stat(path).kind != "dir":
            return [path]
        found = [inner for name in fs.list(path) for inner in self._walk(f"{path}/{name}")]
        return found or ([f"{path}/"] if path.startswith((f"{layout.CLAIMED}/", f"{layout.REJECTED}/")) else [])

    def do_show(self, rest: str, given: list[str]) -> list[str]:
        return [described(self.cluster.find(task_id)) for task_id in rest.split()]

    def do_error(self, rest: str, given: list[str]) -> list[str]:
        """Why a task failed, in words."""
        result = self.cluster.find(rest).result
        assert result is not None, f"{rest} has no result"
        return [result["error"]["message"]]

    def do_reason(self, rest: str, given: list[str]) -> list[str]:
        """Why a drop was rejected."""
        reason = json.loads(self.cluster.fs.read(f"rejected/{rest}.reason.json"))
        return [f"{reason['field']}: {reason['problem']}".removeprefix(": "), f"mend: {reason['mend']}"]

    def do_running(self, rest: str, given: list[str]) -> list[str]:
        frozen = {name: node.runner.frozen() for name, node in self.cluster.nodes.items() if node.runner is not None}
        told = {
            name: [f"{key} (frozen)" if key in frozen[name] else key for key in keys]
            for name, keys in sorted(self.cluster.running().items())
        }
        return [f"{name}: {' '.join(keys) or '-'}" for name, keys in told.items()]

    def do_status(self, rest: str, given: list[str]) -> list[str]:
        """The warnings in the leader's newest snapshot, or one of its fields: `status tasks.waiting`."""
        files = [path for path in self.cluster.fs.files(layout.STATUS) if not path.endswith(".feed.json")]
        newest = max(files, key=lambda p: [int(n) for n in re.findall(r"\d+", p)])
        value: Any = json.loads(self.cluster.fs.read(newest))
        for part in (rest or "warnings").split("."):
            value = value[part]
        return [str(line) for line in (value if isinstance(value, list) else [value])]

    def do_events(self, rest: str, given: list[str]) -> list[str]:
        """What happened since it was last asked, in order; with words, only events that hold one of them."""
        self._events += self._reader.read()
        new, self._events = self._events, []
        lines = [told(event) for event in new]
        return [line for line in lines if not rest or set(rest.split()) & set(line.split())]

    def do_expect(self, rest: str, given: list[str]) -> None:
        """`expect state a completed attempt=2`, `expect event READY a`, `expect nothing-else`."""
        what, *words = shlex.split(rest)
        if what == "state":
            said = described(self.cluster.find(words[0])).split()
            assert set(words[1:]) <= set(said), f"it is: {' '.join(said)}"
            return
        self._events += self._reader.read()
        if what == "nothing-else":
            assert not self._events, f"but there was: {[told(event) for event in self._events]}"
            return
        assert what == "event", f"expect what? {what}"
        found = next((event for event in self._events if set(words) <= set(told(event).split())), None)
        assert found is not None, f"only: {[told(event) for event in self._events]}"
        self._events.remove(found)

    def do_damaged(self, rest: str, given: list[str]) -> None:
        """From here on a person has broken a law, and fsck may say so."""
        self.damaged = self.cluster.witness.twins_allowed = True

    def do_count(self, rest: str, given: list[str]) -> list[str]:
        """How many tasks are in these states."""
        states = [token.state for token in tokens(self.cluster.fs)]
        return [f"{state} {states.count(state)}" for state in rest.split()]


def _options(text: str) -> tuple[str, dict[str, Any]]:
    """`name key=value …`; a value is JSON where it is that, else the text."""
    name, *rest = shlex.split(text)
    options: dict[str, Any] = {}
    for word in rest:
        key, _, value = word.partition("=")
        options[key] = value
        if key not in ("output", "result"):
            with contextlib.suppress(ValueError):
                options[key] = json.loads(value)
    return name, options
