"""Scenes for tests: small ones by hand, big ones by a seed, and one with the worst of names."""

from __future__ import annotations

from random import Random
from typing import Any

from spoold.pictures.picture_data import RUNNING, Attempt, Bond, Need, Scene, Task
from spoold.protocol.result import Total

BEGAN = 1_764_000_000.0
# What a name must not be able to do: turn the text around, end an element, a label or a string, begin a directive.
EVIL = "\u202eabc</title><script>alert('x')</script>\"];\n%%{init:1}%% end -->]]>`\\\"\x1b[31m\x9b2J\ud800\x00#quot;"


def task(task_id: str, *needs: str, state: str = "completed", **more: Any) -> Task:
    """A task that succeeded, unless another state is given."""
    return Task(task_id, task_id, state, needs=tuple(map(Need, needs)), **{"type": "build", **more})


def ran(task_id: str, begin: float, end: float | None, *needs: str, worker: str = "w-1", **more: Any) -> Task:
    """A task with one attempt, from begin to end, in seconds; one without an end runs."""
    status = more.pop("status", RUNNING if end is None else "success")
    one = Attempt(1, worker, status, BEGAN + begin, None if end is None else BEGAN + end, (end or begin) - begin)
    total = None if end is None else Total(attempts=1, duration_s=one.duration_s)
    state = "claimed" if end is None else "completed"
    return task(task_id, *needs, **{"state": state, "attempts": (one,), "total": total, "since": BEGAN, **more})


def scene(*tasks: Task, at: float = 1000.0) -> Scene:
    """A scene of these tasks, so many seconds after the beginning."""
    return Scene("batch b", BEGAN + at, tasks)


def hostile() -> Scene:
    """Every text of other people is evil."""
    first = Attempt(1, EVIL, EVIL, BEGAN, BEGAN + 9, 9.0, EVIL, EVIL, 1, 5, 0.5, EVIL)
    second = Attempt(2, EVIL, "failure", BEGAN + 10, BEGAN + 19, 9.0, EVIL, EVIL, 1, 5, 0.5, EVIL)
    bad = Task(
        "k",
        EVIL,
        "failed",
        EVIL,
        EVIL,
        (Need("out", Bond.END),),
        (first, second),
        BEGAN - 5,
        Total(attempts=2, duration_s=18.0, tokens_used=10, cost_usd=1.0),
        EVIL,
        (EVIL, EVIL),
        wrote=EVIL,
    )
    return Scene(EVIL, BEGAN + 30, (bad, Task("out", EVIL, "unknown", outside=True)))


def big(count: int, seed: int = 1) -> Scene:
    """So many tasks, each after up to three of the sixty before it, on four workers with six slots each."""
    chance = Random(seed)
    free = [BEGAN] * 24
    tasks = []
    for number in range(count):
        parents = (
            {chance.randrange(max(0, number - 60), number) for _ in range(chance.randrange(4))} if number else ()
        )
        slot = chance.randrange(24)
        begin = free[slot] + chance.random() * 3
        free[slot] = end = begin + chance.expovariate(0.05)
        state = chance.choices(["completed", "failed", "claimed", "waiting"], [80, 5, 3, 12])[0]
        status = {"completed": "success", "failed": "failure", "claimed": RUNNING}.get(state)
        attempts: tuple[Attempt, ...] = ()
        if status is not None:
            last = None if status == RUNNING else end
            attempts = (Attempt(1, f"node-{slot // 6 + 1}", status, begin, last, end - begin),)
        made = task(f"t-{number}", *(f"t-{parent}" for parent in sorted(parents)), state=state, attempts=attempts)
        tasks.append(made)
    return Scene("batch big", max(free), tuple(tasks))
