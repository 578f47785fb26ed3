"""What holds now, where it comes from, who goes by it, and what is asked of a change before it is published."""

import errno
import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from spoold.client.spool.configuration import (
    Holder,
    Setting,
    as_table,
    list_holders,
    list_settings,
    parse_pairs,
    take_up_s,
    wait_for_holders,
)
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import BadFile, Unavailable
from tests.client.cluster import Cluster
from tests.support.faults import FaultyFileSystem

TOML = "timeout = 60\n[types.review]\ntimeout = 9\nmax_concurrent = 5\n[heartbeat]\ninterval_s = 2\n"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(TOML)


def client(cluster: Cluster) -> SpoolClient:
    return SpoolClient("spool", filesystem=cluster.fs, clock=cluster.clock)


def put(cluster: Cluster, name: str, settings: Mapping[str, Any], **more: Any) -> None:
    """A change, as another node would have published it."""
    cluster.fs.write(f"settings/{name}", json.dumps({"settings": settings, **more}).encode(), durable=True)


def rows(cluster: Cluster, key: str | None = None) -> dict[str, tuple[Any, str]]:
    return {each.key: (each.value, each.source) for each in list_settings(cluster.store, key)}


def test_each_setting_says_where_it_comes_from(cluster: Cluster) -> None:
    put(cluster, "1.ann.json", {"retry": {"max": 1, "factor": 4}, "types": {"Review": {"priority": "high"}}})
    put(cluster, "2.bob.json", {"retry": {"max": 7}, "timeout": 61}, by="bob@desk", at="then", reason="so")
    found = rows(cluster)
    assert found["timeout"] == (61, "2.bob")
    assert found["retry.max"] == (7, "2.bob")
    assert found["retry.factor"] == (4, "1.ann")
    assert found["retry.jitter"] == (0.25, "default")
    assert found["types.review.priority"] == (10, "1.ann")
    assert found["types.review.timeout"] == (9, "spool.toml")
    assert found["heartbeat.interval_s"] == (2, "spool.toml")
    assert "types.review.max_retries" not in found, "of a type only what is set"
    assert list_settings(cluster.store, "retry.max") == [Setting("retry.max", 7, "2.bob", "bob@desk", "then", "so")]
    assert rows(cluster, "types.REVIEW").keys() == {
        "types.review.priority",
        "types.review.timeout",
        "types.review.max_concurrent",
    }


def test_a_setting_under_its_other_name_comes_from_where_it_was_said(cluster: Cluster) -> None:
    put(cluster, "1.ann.json", {"classes": {"critical": {}}, "types": {"review": {"class": "critical"}}})
    for key in ("types.review.class", "types.review.bulkhead"):
        assert rows(cluster, key) == {"types.review.class": ("critical", "1.ann")}


def test_what_was_unset_comes_from_spool_toml_again(cluster: Cluster) -> None:
    put(cluster, "1.ann.json", {"types": {"review": {"timeout": 1, "max_concurrent": 2}, "new": {"timeout": 3}}})
    put(cluster, "2.ann.json", {}, unset=["types.Review.timeout", "types.new", "retry.no_such"])
    assert rows(cluster, "types") == {
        "types.review.timeout": (9, "spool.toml"),
        "types.review.max_concurrent": (2, "1.ann"),
    }
    put(cluster, "3.ann.json", {"types": {"review": {"max_concurrent": None}}})
    assert rows(cluster, "types.review.max_concurrent") == {"types.review.max_concurrent": (None, "3.ann")}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("retry.maks", "did you mean 'max'"),
        ("retyr", "did you mean 'retry'"),
        ("timeout.x", "timeout.x: timeout: not a number"),
        ("a b", "is no key"),
        ("types.review.timeout.x", "types.review.timeout"),
    ],
)
def test_a_key_that_there_is_not_is_an_error(cluster: Cluster, key: str, said: str) -> None:
    with pytest.raises(BadFile, match=said):
        list_settings(cluster.store, key)
    with client(cluster) as spool, pytest.raises(BadFile, match=said):
        spool.change_settings({}, unset=[key])
    assert cluster.fs.list("settings") == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("retry.max", "8"), {"retry.max": 8}),
        (("retry.max=8", "timeout", "1.5"), {"retry.max": 8, "timeout": 1.5}),
        (("types.review.priority", "high"), {"types.review.priority": "high"}),
        (("a", "b=c"), {"a": "b=c"}),
        (("a=b=c",), {"a": "b=c"}),
        (("a=", "b", ""), {"a": "", "b": ""}),
        (('"x y".z = "8"',), {'"x y".z': "8"}),
        (('a=["b", "c"]', "d", "{e = 2}"), {"a": ["b", "c"], "d": {"e": 2}}),
        (("a", "true", "b=-5"), {"a": True, "b": -5}),
        (("a", "8\nb = 9"), {"a": "8\nb = 9"}),
        (("a", "2026-01-31T18:00:00Z"), {"a": f"{datetime.fromisoformat('2026-01-31T18:00:00Z')}"}),
    ],
)
def test_words_are_keys_and_values_as_in_toml(words: tuple[str, ...], found: dict[str, Any]) -> None:
    assert parse_pairs(words) == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("retry.max",), "retry.max: has no value"),
        (("retry max", "8"), "'retry max' is no key"),
        (("retry.max", "1", "retry.max=2"), "retry.max: is given twice"),
        (("retry.max", "1", "retry={}"), "retry: is given twice"),
        (("retry={}", "retry.max=1"), "retry.max: is given twice"),
        (("retry.factor", "nan"), "nan is no number that a setting can have"),
        (("a", "[1, inf]"), "write a finite number"),
    ],
)
def test_words_that_are_no_pairs_are_errors(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadFile, match=said.replace("[", r"\[")):
        parse_pairs(words)


def test_pairs_are_tables() -> None:
    assert as_table({"a.b": 1, "a.c.d": 2, "e": 3}) == {"a": {"b": 1, "c": {"d": 2}}, "e": 3}


def test_a_change_is_published_once_and_says_by_whom(cluster: Cluster) -> None:
    with client(cluster) as spool:
        revision = spool.change_settings({"retry": {"max": 8}}, reason="why not")
        assert cluster.fs.list("settings") == [f"{revision}.json"]
        said = json.loads(cluster.fs.read(f"settings/{revision}.json"))
        assert (said["reason"], said["settings"]) == ("why not", {"retry": {"max": 8}})
        assert "@" in said["by"]
        assert spool.change_settings({"retry": {"max": 8}}) == "", "all of it holds already"
        said_there = {"types": {"review": {"timeout": 9}}}
        assert spool.change_settings(said_there).startswith("2."), "running nodes may go by an older spool.toml"
        assert spool.change_settings({}, unset=["types.review.timeout", "ready"]).startswith("3.")
        assert spool.change_settings({}, unset=["types.review.timeout", "ready"]) == ""
        assert spool.change_settings({}, unset=["retry.max"]).startswith("4.")
        assert [each.value for each in spool.settings("retry.max")] == [3]
        assert spool.change_settings({"retry": {"max": 3}}).startswith("5."), "a default may change with a release"
    assert len(cluster.fs.list("settings")) == 5


def test_a_missing_directory_is_made_and_a_link_in_its_place_is_an_error(cluster: Cluster) -> None:
    cluster.fs.rmdir("settings")
    with client(cluster) as spool:
        assert spool.change_settings({"retry": {"max": 8}}).startswith("1.")
    cluster.fs.unlink(f"settings/{cluster.fs.list('settings')[0]}")
    cluster.fs.rmdir("settings")
    cluster.fs.make_symlink("settings")
    with client(cluster) as spool, pytest.raises(Unavailable, match="settings"):
        spool.change_settings({"retry": {"max": 8}})


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_share_that_takes_no_file_is_an_error_with_advice(cluster: Cluster, code: int) -> None:
    mount = FaultyFileSystem(cluster.fs)
    with SpoolClient("spool", filesystem=mount, clock=cluster.clock) as spool:
        mount.fail("write", "tmp", code, times=9)
        with pytest.raises(Unavailable, match=os.strerror(code)):
            spool.change_settings({"retry": {"max": 8}})
        assert cluster.fs.list("settings") == []
        mount.faults.clear()
        assert spool.change_settings({"retry": {"max": 8}})


def test_a_change_that_does_not_count_once_it_is_there_is_an_error(cluster: Cluster) -> None:
    mount = FaultyFileSystem(cluster.fs)
    with SpoolClient("spool", filesystem=mount, clock=cluster.clock) as spool:
        spool.settings()
        mount.fail("read", "settings/1.", errno.EACCES)
        with pytest.raises(BadFile, match=r"settings/1\.cli-.*: cannot be read"):
            spool.change_settings({"retry": {"max": 8}})


def test_a_node_goes_by_a_change_once_its_beat_says_so(cluster: Cluster) -> None:
    master = cluster.master()
    worker = cluster.worker()
    with client(cluster) as spool:
        revision = spool.change_settings({"retry": {"max": 8}})
    assert [(one.node, one.role, one.revision) for one in holders(cluster)] == [
        ("m-0001", "master", ""),
        ("w-0001", "worker", ""),
    ]

    def passes(seconds: float) -> None:
        cluster.clock.advance(seconds)
        master.step()
        if worker.due(cluster.clock.monotonic()):
            worker.beat(cluster.clock.monotonic(), "idle")

    begun = cluster.clock.monotonic()
    done, late = wait_for_holders(cluster.store, cluster.host, cluster.clock, revision, sleep=passes)
    assert ([one.node for one in done], late) == (["m-0001", "w-0001"], [])
    assert cluster.clock.monotonic() - begun <= cluster.store.settings.heartbeat.interval_s, "within a heartbeat"
    assert {one.revision for one in holders(cluster)} == {revision}


def holders(cluster: Cluster) -> list[Holder]:
    return list_holders(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep)


def test_a_node_that_lives_and_does_not_go_by_it_is_named_and_one_that_leaves_is_not(cluster: Cluster) -> None:
    here = cluster.host
    gone = here.another()
    cluster.worker("w-dead", gone)
    gone.die()
    cluster.worker("w-stays", here)
    leaving = cluster.worker("w-leaves", here)
    cluster.worker("w-sleeps", here, status="asleep")
    with client(cluster) as spool:
        revision = spool.change_settings({"retry": {"max": 8}})
    begun = cluster.clock.monotonic()

    def passes(seconds: float) -> None:
        cluster.clock.advance(seconds)
        if cluster.clock.monotonic() - begun > 2:
            leaving.leave()

    done, late = wait_for_holders(cluster.store, here, cluster.clock, revision, sleep=passes)
    assert done == []
    assert late == [Holder("w-stays", "worker", "")]
    assert cluster.clock.monotonic() - begun >= take_up_s(cluster.store)
    states = {one.node: one.state for one in holders(cluster)}
    assert states == {"w-stays": "", "w-sleeps": "asleep", "w-dead": "dead"}


@pytest.mark.parametrize(
    ("says", "wanted", "holds"),
    [
        ("", "", True),
        ("", "1.a", False),
        ("1.a", "1.a", True),
        ("2.a", "1.b", True),
        ("1.a", "1.b", False),
        ("9.a", "10.a", False),
        ("nonsense", "1.a", False),
    ],
)
def test_a_later_revision_holds_all_before_it(says: str, wanted: str, holds: bool) -> None:
    assert Holder("n", "worker", says).holds(wanted) is holds


def test_a_change_is_durable_before_its_number_is_said(cluster: Cluster) -> None:
    for forgets in (False, True):
        cluster.fs.forgets = forgets
        mount = FaultyFileSystem(cluster.fs)
        with SpoolClient("spool", filesystem=mount, clock=cluster.clock) as spool:
            assert spool.change_settings({"retry": {"max": 8 + forgets}})
            assert mount.asked["sync"] == 1


def test_where_a_look_is_dear_nodes_have_longer(cluster: Cluster) -> None:
    assert take_up_s(cluster.store) == 4
    cluster.fs.forgets = True
    assert take_up_s(cluster.store) == 8
