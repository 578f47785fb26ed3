"""A change of settings reaches every node with its beat, for no more than one listing in each interval."""

import errno
import json
from typing import Any

from spoold.store.settings_change import publish_change
from spoold.store.store import open_store
from tests.support.cluster import Cluster
from tests.support.counting import CountingFileSystem

LIMIT = "[types.review]\nmax_concurrent = 1\n"


def pool(settings: str = LIMIT) -> Cluster:
    made = Cluster(settings)
    made.master("m1")
    made.worker("w1", 8)
    made.settle()
    return made


def change(made: Cluster, said: dict[str, Any]) -> str:
    """As `spool config set` will."""
    store = open_store(made.fs, made.clock, "cli-1", "/spool")
    store.open_tmp()
    return publish_change(store, said, by="ada").revision


def submit(made: Cluster, count: int) -> None:
    for number in range(count):
        made.submit(f"{number}.json", json.dumps({"id": f"t{number}", "type": "review", "command": ["work"]}))
    made.settle()


def newest(made: Cluster, directory: str, starts: str = "") -> Any:
    """The newest snapshot, or beat of a node."""
    names = [name for name in made.fs.list(directory) if name.startswith(starts)]
    name = max(names, key=lambda name: [int(part) for part in name.replace("-", ".").split(".") if part.isdigit()])
    return json.loads(made.fs.read(f"{directory}/{name}"))


def test_a_limit_changes_while_tasks_run() -> None:
    made = pool()
    submit(made, 5)
    assert len(made.fs.list("claimed/w1")) == 1
    change(made, {"types": {"review": {"max_concurrent": 3}}})
    made.advance(6)
    assert len(made.fs.list("claimed/w1")) == 3
    change(made, {"types": {"review": {"max_concurrent": 0}}})
    made.advance(6)
    for number in range(3):
        made.finish(f"t{number}")
    made.advance(3)
    assert made.fs.list("claimed/w1") == [], "what ran went on, and nothing followed it"


def test_the_worker_goes_by_it_too_and_both_say_which() -> None:
    made = pool("[retry]\nmax = 0\n")
    revision = change(made, {"retry": {"max": 1, "backoff_s": 0.001}})
    made.advance(11)
    assert newest(made, "heartbeats", "w1.")["settings"] == newest(made, "heartbeats", "m1.")["settings"] == revision
    assert newest(made, "status")["settings"] == revision
    submit(made, 1)
    made.finish("t0", exit_code=1)
    made.advance(3)
    assert made.find("t0").path.startswith("claimed/w1/"), "it runs again"


def test_a_new_node_knows_the_changes_before_it_plans_or_claims() -> None:
    made = pool()
    change(made, {"types": {"review": {"max_concurrent": 2}}})
    made.crash("m1")
    made.master("m2")
    made.advance(20)
    submit(made, 5)
    assert len(made.fs.list("claimed/w1")) == 2
    late = made.master("m3")
    late.fs.fail("list", "settings", errno.EIO)
    assert not made.step("m3")
    assert made.step("m3")


def test_a_bad_change_is_told_in_the_status_and_the_last_good_state_stands() -> None:
    made = pool()
    change(made, {"types": {"review": {"max_concurrent": 2}}})
    made.fs.write("settings/9.ed.json", b'{"settings": {"heartbeat": {"misses": 9}}}', durable=True)
    made.advance(11)
    [warning] = newest(made, "status")["warnings"]
    assert "settings/9.ed.json" in warning
    assert "heartbeat" in warning
    assert "write it into spool.toml" in warning
    submit(made, 5)
    assert len(made.fs.list("claimed/w1")) == 2


def test_a_look_costs_one_listing_in_each_beat_and_none_for_a_task() -> None:
    made = pool()
    asked = {}
    for name in ("m1", "w1"):
        mount = made.nodes[name].fs
        mount.inner = asked[name] = CountingFileSystem(mount.inner)
    made.fs.write("settings/1.ed.json", b'{"settings": {"types": {"review": {"max_concurrent": 8}}}}', durable=True)
    made.advance(60)
    for counter in asked.values():
        assert 10 <= counter.calls["list", "settings"] <= 20
        assert counter.calls["read", "settings"] == 1
        counter.clear()
    for number in range(30):
        made.submit(f"{number}.json", json.dumps({"id": f"t{number}", "type": "review", "command": ["work"]}))
        made.settle()
        made.finish(f"t{number}")
        made.settle()
    assert [counter.calls["list", "settings"] for counter in asked.values()] == [0, 0], "no time has passed"


def test_a_share_that_fails_for_a_look_costs_no_beat() -> None:
    made = pool()
    made.advance(10)
    for node in made.nodes.values():
        node.fs.fail("list", "settings", errno.EIO, times=3)
    made.advance(20)
    assert not made.troubles
