"""What is submitted: by real clients, over mounts that lie to them too; and how it must end."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.names import key
from spoold.protocol.request import MANY, Verb
from spoold.store.store import stamp
from tests.sim.conduct import Broken
from tests.sim.laws import Asked, Laws
from tests.sim.machine import TRUE_WALL, Clocks
from tests.sim.mount import Mount
from tests.sim.programs import ENDLESS, MODULE, called, handled
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather

SINGLE, LINES, MADE = 8, 4, 4
WAITS_S, ENDS_S = 25.0, 600.0
LOOKS_AFTER_S = 6.0
LIMITS = {"narrow": 2}
SETTINGS = b"""
[heartbeat]
interval_s = 1
misses = 3
[retry]
backoff_s = 0.5
crash_limit = 1000
max_backoff_s = 2
[drop]
grace_s = 2
empty_grace_s = 4
watch_s = 60
[types.narrow]
max_concurrent = 2
[disk]
enough_free_mb = 0
"""
# Two that nothing but a cancel ends: one that waits, and one that runs.
CHILD_OF_NOBODY: dict[str, Any] = {
    "id": "waits-for-ever",
    "type": "wide",
    "command": ["work"],
    "dependencies": ["nobody"],
}
GOES_ON: dict[str, Any] = {"id": f"{ENDLESS}-run", "type": "wide", "command": ["work"], "dependencies": []}


def locks_of(weather: Weather, name: str) -> dict[str, list[str]] | None:
    """What a task of this name locks; worlds.py has another."""
    return None


class Client:
    """A person's machine, from which tasks are submitted one by one and as a batch, each until it is acknowledged."""

    def __init__(
        self, scheduler: Scheduler, server: Server, weather: Weather, laws: Laws, base: str = "client"
    ) -> None:
        self.name = base
        self.base = base
        self._calls = 0
        self.cut_until = self.away_until = 0.0
        self.cuts = 0
        self.done = self.through = False
        self.cancelled: set[str] = set()
        self._scheduler = scheduler
        self._server = server
        self._weather = weather
        self._laws = laws
        self.timely = False  # whether nobody sets the server's clock, and no two machines agree on another time
        self.clocks = Clocks(scheduler, 0.0, 20_000.0 * (weather.draw("skew", base) - 0.5), 1.0)

    def live(self) -> None:
        """Submit everything."""
        names = [f"t{number}" for number in range(SINGLE)]
        batch = [self._task(f"j{number}", [f"j{n}" for n in range(number)]) for number in range(LINES)]
        for index, name in enumerate(names):
            self._scheduler.sleep(2.5 * self._weather.draw("between", name))
            if self._weather.draw("twice", name) < 0.5:
                self._submit_elsewhere(self._task(name, names[:index]))
            self._submit([self._task(name, names[:index])])
            if index == SINGLE // 2:
                self._submit(batch)
            if index == 1:
                self._submit([CHILD_OF_NOBODY])
                self._submit([GOES_ON])
                self._submit_timed()
            again = int(self._weather.draw("again", name) * 3 * (index + 1))
            if again <= index:
                self._submit([self._task(names[again], names[:again])])
            if self._weather.draw("cancel", name) < 0.1:
                self._cancel(name)
            if self._weather.draw("priority", name) < 0.2:
                self._prioritize(name, -5 if index % 2 else 5)
            if index < MADE:
                self._submit_made(self._task(f"made-{name}", names[:index]))
        self._copy(self._task("by-hand", names))
        for task in (CHILD_OF_NOBODY, GOES_ON):
            self._cancel(task["id"])
        self.done = True
        self.see_through()

    def see_through(self) -> None:
        """A request is not waited for on disk: who asked sees that it was not done, and asks again."""
        self.through = False
        while not all(self._ended(task["id"]) for task in (CHILD_OF_NOBODY, GOES_ON)):
            self._scheduler.sleep(10.0)
            for task in (CHILD_OF_NOBODY, GOES_ON):
                self._cancel(task["id"])
        self.through = True

    def submit(self, task: dict[str, Any]) -> None:
        """Submit one task, until that is acknowledged."""
        self._submit([task])

    def _ended(self, name: str) -> bool:
        return self._laws.tokens.get(key(name), "").startswith(("completed/", "failed/"))

    def freeze(self, seconds: float) -> None:
        """A closed lid."""
        self._scheduler.sleep(seconds)

    def fall(self) -> None:
        """Whoever submits sees it through."""

    def _task(self, name: str, earlier: list[str]) -> dict[str, Any]:
        draw = self._weather.draw
        parents = [p for p in earlier if draw("needs", name, p) < 0.2]
        kind = "narrow" if draw("kind", name) < 0.6 else "wide"
        task = {"id": name, "type": kind, "command": ["work"], "dependencies": parents, "max_retries": 2}
        if (locks := locks_of(self._weather, name)) is not None:
            task["locks"] = locks
        if handled(self._weather):
            del task["command"]
        elif called(self._weather):
            task |= {"command": None, "python": f"{MODULE}.{kind}:run"}
        return task

    def _submit_elsewhere(self, task: dict[str, Any]) -> None:
        """Somebody on another machine submits the same at about the same time."""
        other = Client(self._scheduler, self._server, self._weather, self._laws, f"other-{task['id']}")
        after_s = 0.5 * self._weather.draw("how soon", task["id"])
        self._scheduler.spawn(other.name, lambda: other._submit([task]), after_s)

    def _submit(self, tasks: list[dict[str, Any]]) -> None:
        for task in tasks:
            self._laws.asked.setdefault(key(task["id"]), _asked(task["id"], task))
        self._insist(lambda spool: spool.submit_many(tasks) if len(tasks) > 1 else [spool.submit(tasks[0])])

    def _submit_timed(self) -> None:
        """Tasks that name times of day; the server's clock is right, and those of the machines are hours off."""
        if not self.timely:
            return
        now = self._scheduler.now
        times = {"not_before": WAITS_S, "deadline": ENDS_S}
        for field, after_s in times.items():
            task = {**self._task(f"timed-{field}", []), "type": "wide", field: stamp(TRUE_WALL + now + after_s)}
            self._submit([task])
        if (asked := self._laws.asked.get("timed-not_before")) is not None:  # else a tree was put back meanwhile
            asked.not_before = now + WAITS_S

    def _submit_made(self, task: dict[str, Any]) -> None:
        """A task without an id: each try makes another, and only what was acknowledged must be there in the end."""
        made: list[str] = []
        nameless = {field: value for field, value in task.items() if field != "id"}
        self._insist(lambda spool: made.append(spool.submit(nameless)))
        self._laws.asked[key(made[-1])] = _asked(made[-1], task)

    def _copy(self, task: dict[str, Any]) -> None:
        """A file copied into the drop box in two pieces, under its final name; again if nothing comes of it."""
        self._laws.asked[key(task["id"])] = _asked(task["id"], task)
        data = json.dumps(task).encode()
        while key(task["id"]) not in self._laws.tokens:
            mount = self._mount()
            path = f"pending/{self.name}.json"
            self._server.by_hand.add(path)
            with contextlib.suppress(OSError):
                mount.write(path, data[:20], durable=False)
                self._scheduler.sleep(1.5 * self._weather.draw("copying", self.name))
                mount.append(path, data[20:])
            self._scheduler.sleep(LOOKS_AFTER_S)

    def _mount(self) -> Mount:
        """Another name for each, so that a fault of one try does not have to be one of the next."""
        self._calls += 1
        self.name = f"{self.base}-{self._calls}"
        return Mount(self._scheduler, self._server, self._weather, self)

    def _cancel(self, name: str) -> None:
        self.cancelled.add(key(name))

        def cancel(spool: SpoolClient) -> None:
            try:
                if self._weather.draw("among many", name) < 0.5:
                    spool.post(Verb.CANCEL, MANY, "", tasks=(spool.locate(name).id,))
                else:
                    spool.cancel(name)
            except NotFound:
                if key(name) in self._laws.asked:
                    raise

        self._insist(cancel)

    def _prioritize(self, name: str, priority: int) -> None:
        def prioritize(spool: SpoolClient) -> None:
            try:
                spool.prioritize(name, priority)
            except SpoolError as error:
                if "has not ended has a priority" not in f"{error}" and key(name) in self._laws.asked:
                    raise

        self._insist(prioritize)

    def _insist(self, act: Any) -> None:
        """Again and again, until it is acknowledged: the id makes that safe.

        A power cut on the way takes the acknowledgement with it, since a local disk has the client on its machine.
        """
        while True:
            mount, cuts = self._mount(), self.cuts
            try:
                with SpoolClient("/spool", filesystem=mount, clock=self.clocks) as spool:
                    act(spool)
                if cuts == self.cuts:
                    return
            except (OSError, SpoolError):
                self._scheduler.sleep(1.0)


def _asked(task_id: str, task: dict[str, Any]) -> Asked:
    return Asked(task_id, task["type"], tuple(task["dependencies"]), locks=task.get("locks"))


def check_ends(laws: Laws, cancelled: set[str]) -> None:
    """Every task that was acknowledged has ended, as it had to."""
    for asked in laws.asked.values():
        path = laws.tokens.get(key(asked.id))
        if path is None or path.partition("/")[0] not in ("completed", "failed"):
            raise Broken(f"liveness: {asked.id} has not ended: {path}; {sorted(laws.server.fs.files())}")
        if path.startswith("completed/") or path in laws.excused:
            continue
        said = json.loads(laws.server.fs.read(path.replace("failed/", "results/", 1)))
        code = said["error"]["code"]
        down = [p for p in asked.parents if laws.tokens.get(key(p), "").startswith("failed/")]
        if code == "CANCELLED" and key(asked.id) in cancelled:
            continue
        if code == "REJECTED" and key(asked.id) in laws.decided.asking:
            continue
        if code == "DEPENDENCY_FAILED" and down:
            continue
        if code not in ("MAX_RETRIES", "EXIT_NONZERO") or down:
            raise Broken(f"ends: {asked.id} failed with {code}: {said['error']['message']}; failed parents {down}")
