"""settings/ is merged over spool.toml by number; what is wrong in it is told, and stops nothing."""

import errno
import json
from collections.abc import Mapping
from typing import Any

import pytest

from spoold.protocol import settings_change
from spoold.protocol.errors import BadFile, Unavailable
from spoold.store import settings_revisions
from spoold.store.initialise import initialise
from spoold.store.settings_change import publish_change
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem

TOML = b"[types.review]\ntimeout = 9\nmax_concurrent = 5\n"


class Spool:
    """A spool with settings, and one writer that has it open."""

    def __init__(self) -> None:
        self.memory, self.clock = MemoryFileSystem(), ManualClock()
        initialise(self.memory, self.clock, "spool", "/spool")
        self.memory.write("spool.toml", TOML, durable=True)
        self.mount = FaultyFileSystem(self.memory)
        self.store = self.open("w1")

    def open(self, writer: str) -> Store:
        store = open_store(self.mount, self.clock, writer, "/spool")
        store.open_tmp()
        return store

    def put(self, name: str, settings: Mapping[str, Any]) -> None:
        """A change, as another node would have published it."""
        self.memory.write(f"settings/{name}", json.dumps({"settings": settings}).encode(), durable=True)

    def limit(self) -> tuple[int | None, str]:
        """What the writer goes by after a look."""
        self.store.revisions.look()
        return self.store.settings.of("review").max_concurrent, self.store.revisions.revision


def limited(number: int) -> dict[str, Any]:
    return {"types": {"review": {"max_concurrent": number}}}


def test_changes_count_in_the_order_of_their_numbers_and_each_is_read_once() -> None:
    spool = Spool()
    assert spool.limit() == (5, "")
    spool.put("10.a.json", limited(1))
    spool.put("9.z.json", limited(2))
    spool.put("10.b.json", {"retry": {"max": 0}})
    spool.put("no-change.json", limited(7))
    assert spool.limit() == (1, "10.b")
    assert spool.store.settings.of("review").timeout == 9
    assert spool.store.settings.retry.max == 0
    read = spool.mount.asked["read"]
    assert spool.limit() == (1, "10.b")
    assert spool.mount.asked["read"] == read
    spool.memory.unlink("settings/10.a.json")
    assert spool.limit() == (2, "10.b"), "who removes a file takes its change back"


def test_two_who_take_a_number_at_the_same_moment_both_count() -> None:
    spool = Spool()
    ann, bob = spool.open("ann"), spool.open("bob")
    for store in (ann, bob):
        assert store.settings.retry.max == 3
    spool.mount.hang("rename", "tmp/ann", lambda: publish_change(bob, {"retry": {"max": 8, "factor": 4}}))
    assert publish_change(ann, {"retry": {"max": 7}, "timeout": 5}).encode() == "1.ann.json"
    assert spool.memory.list("settings") == ["1.ann.json", "1.bob.json"]
    for store in (ann, bob, spool.store):
        store.revisions.look()
        assert (store.settings.retry.max, store.settings.retry.factor, store.settings.timeout) == (8, 4, 5)
        assert store.revisions.revision == "1.bob"
    assert publish_change(bob, {"retry": {"max": 9}}).encode() == "2.bob.json"


def test_a_new_change_costs_one_check_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool()
    checked: list[str] = []
    merged = settings_change.merged

    def counted(*given: Any) -> Any:
        checked.append(given[-1])
        return merged(*given)

    monkeypatch.setattr(settings_change, "merged", counted)
    for number in (1, 2, 4):
        spool.put(f"{number}.a.json", limited(number))
    assert spool.limit() == (4, "4.a")
    assert checked == [f"settings/{number}.a.json" for number in (1, 2, 4)]
    spool.put("5.a.json", limited(5))
    assert spool.limit() == spool.limit() == (5, "5.a")
    assert checked[3:] == ["settings/5.a.json"]
    spool.put("3.a.json", limited(3))
    assert spool.limit() == (5, "5.a")
    assert checked[4:] == [f"settings/{number}.a.json" for number in (3, 4, 5)], "those behind it have a new ground"


def test_what_one_change_unsets_is_as_in_spool_toml() -> None:
    spool = Spool()
    spool.put("1.a.json", limited(1))
    publish_change(spool.store, {}, unset=["types.review.max_concurrent"])
    assert spool.limit() == (5, "2.w1")
    assert [name.revision for name, _ in spool.store.revisions.changes] == ["1.a", "2.w1"]
    assert json.loads(spool.memory.read("settings/2.w1.json"))["unset"] == ["types.review.max_concurrent"]
    publish_change(spool.store, limited(2))
    assert "unset" not in json.loads(spool.memory.read("settings/3.w1.json")), "earlier releases read it as ever"


def test_the_first_who_asks_looks() -> None:
    spool = Spool()
    spool.put("1.a.json", limited(3))
    assert spool.open("w2").settings.of("review").max_concurrent == 3
    spool.mount.fail("list", "settings", errno.EIO)
    store = spool.open("w3")
    assert store.settings.of("review").max_concurrent == 5
    assert store.settings.of("review").max_concurrent == 3, "a look that failed is no look"
    listed = spool.mount.asked["list"]
    assert store.settings.of("review").max_concurrent == 3
    assert spool.mount.asked["list"] == listed


def test_a_directory_that_is_closed_from_the_first_look_on_is_looked_at_once() -> None:
    spool = Spool()
    spool.mount.closed.add("settings")
    assert spool.store.settings.of("review").max_concurrent == 5
    listed = spool.mount.asked["list"]
    assert spool.store.settings.of("review").max_concurrent == 5
    assert spool.mount.asked["list"] == listed


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "is not JSON"),
        (b'{"settings": {"heartbeat": {"interval_s": 1}}}', "heartbeat.interval_s: cannot be changed"),
        (b'{"settings": {"retry": {"max": "many"}}}', "retry.max"),
        (b" " * (settings_revisions.BYTES_MAX + 1), "is larger than 64 KiB"),
    ],
)
def test_a_bad_file_counts_as_absent_and_is_told(data: bytes, said: str) -> None:
    spool = Spool()
    spool.put("1.a.json", limited(1))
    spool.memory.write("settings/2.a.json", data, durable=True)
    assert spool.limit() == (1, "1.a")
    [warning] = spool.store.revisions.warnings
    assert "settings/2.a.json" in warning
    assert said in warning
    spool.put("3.a.json", limited(3))
    assert spool.limit() == (3, "3.a")
    spool.memory.unlink("settings/2.a.json")
    spool.limit()
    assert spool.store.revisions.warnings == []


def test_a_link_in_the_place_of_a_change_is_told() -> None:
    spool = Spool()
    spool.memory.make_symlink("settings/1.a.json")
    assert spool.limit() == (5, "")
    assert "is not a regular file" in spool.store.revisions.warnings[0]


def test_one_that_may_not_be_read_is_tried_again() -> None:
    spool = Spool()
    spool.put("1.a.json", limited(1))
    spool.mount.fail("read", "settings/1.a.json", errno.EACCES)
    assert spool.limit() == (5, "")
    assert "settings/1.a.json: cannot be read" in spool.store.revisions.warnings[0]
    assert spool.limit() == (1, "1.a")
    assert spool.store.revisions.warnings == []


def test_one_that_goes_while_it_is_read_is_absent() -> None:
    spool = Spool()
    spool.put("1.a.json", limited(1))
    spool.mount.hang("read", "settings/1.a.json", lambda: spool.memory.unlink("settings/1.a.json"))
    assert spool.limit() == (5, "")


def test_an_error_of_the_share_leaves_everything_as_it_was() -> None:
    spool = Spool()
    spool.put("1.a.json", limited(1))
    assert spool.limit() == (1, "1.a")
    spool.put("2.a.json", limited(2))
    spool.mount.fail("read", "settings/2.a.json", errno.EIO)
    with pytest.raises(OSError, match=r"settings/2\.a\.json"):
        spool.store.revisions.look()
    assert spool.store.settings.of("review").max_concurrent == 1
    assert spool.limit() == (2, "2.a")


def test_a_directory_that_cannot_be_listed_leaves_what_was_seen_last() -> None:
    spool = Spool()
    spool.put("1.a.json", limited(1))
    assert spool.limit() == (1, "1.a")
    spool.mount.closed.add("settings")
    assert spool.limit() == (1, "1.a")
    assert "settings" in spool.store.revisions.warnings[0]
    spool.mount.closed.clear()
    spool.memory.unlink("settings/1.a.json")
    spool.memory.rmdir("settings")
    spool.memory.make_symlink("settings")
    assert spool.limit() == (1, "1.a")
    assert spool.store.revisions.warnings == [], "a link is told with those in place of other directories"


def test_a_spool_of_an_earlier_release_has_no_changes_until_the_first_is_published() -> None:
    spool = Spool()
    spool.memory.rmdir("settings")
    assert spool.limit() == (5, "")
    name = publish_change(spool.store, limited(4), by="ada", reason="a test")
    assert spool.memory.list("settings") == ["1.w1.json"] == [name.encode()]
    assert spool.store.settings.of("review").max_concurrent == 4
    said = json.loads(spool.memory.read("settings/1.w1.json"))
    assert (said["by"], said["reason"], said["settings"]) == ("ada", "a test", limited(4))


def test_a_number_is_never_given_twice_even_if_publishing_failed() -> None:
    spool = Spool()
    spool.put("7.a.json", limited(1))
    spool.mount.fail("rename", "tmp/w1", errno.EIO, "late", times=9)
    with pytest.raises(OSError, match="tmp/w1"):
        publish_change(spool.store, limited(2))
    spool.mount.faults.clear()
    assert publish_change(spool.store, limited(3)).encode() == "9.w1.json"
    assert json.loads(spool.memory.read("settings/9.w1.json"))["by"] == "w1"
    assert spool.limit() == (3, "9.w1")


def test_a_change_that_no_node_would_read_is_not_published() -> None:
    spool = Spool()
    with pytest.raises(BadFile, match="is larger than 64 KiB"):
        publish_change(spool.store, limited(2), reason="x" * settings_revisions.BYTES_MAX)
    assert spool.memory.list("settings") == []


@pytest.mark.parametrize("said", [{"durability": {"fsync": False}}, {"retry": {"max": -1}}, {"nonsense": 1}])
def test_what_nodes_would_refuse_is_not_published(said: dict[str, Any]) -> None:
    spool = Spool()
    with pytest.raises(BadFile, match="the change"):
        publish_change(spool.store, said)
    assert spool.memory.list("settings") == []


def test_so_many_files_count_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_revisions, "FILES_MAX", 2)
    spool = Spool()
    for number in (1, 2, 3):
        spool.put(f"{number}.a.json", limited(number))
    assert spool.limit() == (2, "2.a")
    assert "settings/3.a.json and what follows it does not count" in spool.store.revisions.warnings[0]
    with pytest.raises(Unavailable, match="no more count"):
        publish_change(spool.store, limited(4))


def test_a_name_that_is_no_changes_is_named_and_of_many_a_few() -> None:
    """Names-c: such a file was passed over without a word, and its author believed that it counts."""
    spool = Spool()
    spool.put("1.w2.json", {"retry": {"max": 1}})
    for name in ("mine.json", "02.w2.json", "3.W2.json", ".3.w2.json", "notes.txt"):
        spool.put(name, {"retry": {"max": 2}})
    spool.limit()
    assert [line.split()[0] for line in spool.store.revisions.warnings] == [
        "settings/02.w2.json", "settings/3.W2.json", "settings/mine.json",
    ]  # fmt: skip
    assert all("NUMBER.NODE.json" in line and "passed over" in line for line in spool.store.revisions.warnings)
    assert spool.store.settings.retry.max == 1
    for number in range(100):
        spool.put(f"x{number}.json", {})
    spool.limit()
    assert len(spool.store.revisions.warnings) == 6
    assert spool.store.revisions.warnings[-1] == "files with a wrong name, and that are not named here: 98"
