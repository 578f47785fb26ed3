"""A member of the group puts links into a live spool, at every place and every moment: nothing outside is reached.

Method: outside lies the picture of a spool with tasks of its own, each of which would leave a mark if a node ever
read it through a link. Somebody swaps the directories of the real spool for links to their like outside, all the
time, while a master and a worker go on with tasks.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spoold.protocol import layout
from tests.e2e.conftest import MakePool
from tests.e2e.pool import Pool, wait_for
from tests.support.picture import picture

LANE = "type=command,run=command"
SWAP_S = (0.0, 0.001, 0.02, 0.15)
ATTACK_S = 8.0
DAYS_AGO = 3 * 86_400


def lay_bait(outside: Path, mark: Path) -> None:
    """A tree like a spool's, with a task in each state that would touch the mark."""
    for directory in layout.TREE:
        (outside / directory).mkdir(parents=True)
    text = f'{{"id": "bait", "command": ["touch", "{mark}"]}}'
    name = "4990.hff58yhhc0-3.bait.a1f0c0"
    for path in (
        "pending/bait.json",
        f"waiting/{LANE}/{name}.json",
        f"ready/{LANE}/{name}.json",
        f"returned/{name}.worker-1.json",
        f"tmp/old/{name}.json",
        f"claimed/gone-1/{name}.json",
        "completed/bait.1.worker-1.json",
        "results/bait.1.worker-1.json",
        "archive/00/bait.1.worker-1.completed.json",
        "logs/bait.1.worker-1.log",
        "events/worker-1.0.jsonl",
        "admitting/1.gone-1.1/5000.hff58yhhc0-3.bait.a1f0c0.json",
    ):
        (outside / path).parent.mkdir(exist_ok=True)
        (outside / path).write_text(text)
        os.utime(outside / path, (1, 1))
    for folder, _, _ in os.walk(outside):
        os.utime(folder, (1, 1))


@contextmanager
def attack(root: Path, outside: Path) -> Iterator[list[str]]:
    """Swap directories for links until the block ends; yields which were swapped so far."""
    chance, over, swapped = random.Random(7), threading.Event(), list[str]()

    def deeper(directory: str) -> list[str]:
        with suppress(OSError):
            return [f"{directory}/{name}" for name in os.listdir(root / directory)]
        return []

    def swap() -> None:
        while not over.is_set():
            rooms = [
                *layout.TREE,
                *(path for room in ("ready", "claimed", "tmp", "admitting") for path in deeper(room)),
            ]
            path = chance.choice(rooms)
            place, aside = root / path, root / f"{path}.old"
            with suppress(OSError):
                place.rename(aside)
                target = outside / path if (outside / path).exists() else outside / path.partition("/")[0]
                with suppress(OSError):
                    place.symlink_to(target)
                    swapped.append(path)
                time.sleep(chance.choice(SWAP_S))
                with suppress(OSError):
                    place.unlink() if place.is_symlink() else place.rmdir()
                aside.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield swapped
    finally:
        over.set()
        thread.join()


def repair(pool: Pool) -> None:
    """Take away what the attack left."""
    for path in pool.root.rglob("*"):
        if path.is_symlink():
            path.unlink()


def test_a_member_with_links_reaches_nothing_outside(make_pool: MakePool, tmp_path: Path) -> None:
    pool, outside, mark = (
        make_pool("[poll]\nbusy_s = 0.01\nidle_s = 0.02\nhinted_s = 0.05\n"),
        tmp_path / "out",
        tmp_path / "mark",
    )
    lay_bait(outside, mark)
    before = picture(outside)
    pool.master()
    pool.worker("w")
    pool.ready("w")
    # Held open, so that at least this test follows no link.
    pending = os.open(pool.root / "pending", os.O_RDONLY)
    until, number = time.monotonic() + ATTACK_S, 0
    with attack(pool.root, outside) as swapped:
        while time.monotonic() < until or not (set(layout.TREE) <= set(swapped) or time.monotonic() > until + 60):
            with suppress(OSError):
                drop = os.open(f"n{number}.json", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=pending)
                os.write(drop, b'{"command": ["echo", "hello"]}')
                os.close(drop)
            number += 1
            time.sleep(0.05)
    os.close(pending)
    assert {path.partition("/")[0] for path in swapped} == set(layout.TREE), "every directory was a link for a moment"
    assert any("/" in path for path in swapped)
    assert picture(outside) == before
    repair(pool)
    wait_for(lambda: set(layout.TREE) <= set(os.listdir(pool.root)), "the tree is whole again")
    pool.submit("after", ["true"])
    wait_for(lambda: pool.ended("after") == "completed", "tasks run again", 60)
    assert picture(outside) == before
    assert not mark.exists()


def test_an_old_link_costs_nobody_what_lies_at_its_end(make_pool: MakePool, tmp_path: Path) -> None:
    pool, docs = make_pool(), tmp_path / "olddocs"
    (docs / "folder").mkdir(parents=True)
    (docs / "thesis").write_text("years")
    (pool.root / "tmp" / "backup").symlink_to(docs)
    then = time.time() - DAYS_AGO
    os.utime(pool.root / "tmp" / "backup", (then, then), follow_symlinks=False)
    before = picture(docs)
    pool.master()
    wait_for(lambda: "backup" not in os.listdir(pool.root / "tmp"), "the leader clears tmp/")
    assert picture(docs) == before
    assert pool.files("rejected") == []
