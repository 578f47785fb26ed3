"""Files that are written into the drop box slowly, by programs that nobody asked to publish by rename.

Law: every line that a writer finished writing is run once, or stands in rejected/ with the reason; and what was
admitted is durable. Method: a file is written in pieces, and its writer goes on writing wherever it was moved.
"""

import errno
import json
import math
import os
from functools import partial
from typing import Literal

import pytest

from spoold.master.intake import batch_admission, drops
from spoold.master.listing import refresh
from spoold.store.leader_files import list_standing
from tests.support.cluster import Cluster


class Writer:
    """A program that has a file open for writing: it goes on in the same file, wherever that was moved."""

    def __init__(self, made: Cluster, drop: str, first: bytes = b"") -> None:
        self._made = made
        made.fs.write(f"pending/{drop}", first, durable=False)
        self.inode = made.fs.stat(f"pending/{drop}").inode
        made.fs.writers.add(self.inode)

    @property
    def path(self) -> str:
        """Where the file is by now."""
        (found,) = [path for path in self._made.fs.files() if self._made.fs.stat(path).inode == self.inode]
        return found

    def write(self, text: str) -> None:
        """Some more of it."""
        self._made.fs.append(self.path, text.encode())

    def close(self) -> None:
        """That was all."""
        self._made.fs.writers.discard(self.inode)


def line(number: int) -> str:
    return json.dumps({"id": f"g{number}", "command": ["work"]}) + "\n"


def cluster(remote: bool) -> Cluster:
    made = Cluster(remote=remote)
    made.master("m1")
    made.settle()
    return made


def ids(made: Cluster) -> list[str]:
    """The tasks that stand anywhere."""
    return sorted(name.split(".")[2] for path in made.fs.files("ready") for name in [path.rpartition("/")[2]])


def events(made: Cluster, event: str) -> list[dict[str, object]]:
    """What the journals say of one kind of event."""
    made.step("m1")
    lines = [text for data in made.fs.files("events").values() for text in data.split(b"\n") if text]
    return [found for found in map(json.loads, lines) if found["event"] == event]


@pytest.mark.turns
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("pause", [1, 3, 9, 15, 30])
@pytest.mark.parametrize("drop", ["gen.jsonl", "gen.whole.jsonl"])
def test_every_line_of_a_slow_writer_becomes_a_task_once(remote: bool, pause: int, drop: str) -> None:
    """Also where the name promises that the batch was published by rename: `mv` from elsewhere is a slow copy."""
    made = cluster(remote)
    writer = Writer(made, drop)
    for number in range(6):
        writer.write(line(number))
        made.advance(pause)
    writer.close()
    made.advance(700)
    assert ids(made) == [f"g{number}" for number in range(6)]
    assert made.fs.list("rejected") == made.fs.list("pending") == []
    assert made.fs.files("admitting") == {}


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("drop", ["gen.jsonl", "gen.whole.jsonl"])
def test_a_line_that_was_cut_at_any_byte_is_joined(remote: bool, drop: str) -> None:
    text = "".join(map(line, range(3)))
    for cut in range(1, len(text), 7):
        made = cluster(remote)
        writer = Writer(made, drop)
        writer.write(text[:cut])
        made.advance(8)
        writer.write(text[cut:])
        writer.close()
        made.advance(30)
        assert ids(made) == ["g0", "g1", "g2"], cut
        assert made.fs.list("rejected") == []


@pytest.mark.parametrize("drop", ["gen.jsonl", "gen.whole.jsonl"])
def test_a_batch_whose_writer_is_there_waits_and_says_so(drop: str) -> None:
    made = cluster(remote=False)
    writer = Writer(made, drop)
    writer.write(line(0))
    made.advance(60)
    assert made.fs.list("pending") == [drop]
    (snapshot,) = sorted(made.fs.files("status").items())[-1:]
    assert f"{drop}: is still open for writing" in snapshot[1].decode()
    writer.close()
    made.advance(4)
    assert ids(made) == ["g0"]


@pytest.mark.parametrize("remote", [False, True])
def test_a_batch_whose_name_promises_that_it_is_whole_is_admitted_at_once(remote: bool) -> None:
    made = cluster(remote)
    made.submit("many.whole.jsonl", line(0) + line(1))
    made.step("m1")
    made.step("m1")
    assert ids(made) == ["g0", "g1"]


def test_a_copy_that_nobody_holds_open_is_admitted_after_two_seconds_as_ever() -> None:
    made = cluster(remote=False)
    made.submit("many.jsonl", line(0) + line(1))
    made.advance(4)
    assert ids(made) == ["g0", "g1"]
    assert made.fs.files("admitting") == {}


def test_what_grew_after_admission_is_told_and_admitted_as_the_rest() -> None:
    made = cluster(remote=True)
    writer = Writer(made, "gen.jsonl")
    writer.write(line(0))
    made.advance(12)
    assert ids(made) == ["g0"]
    assert writer.path.startswith("admitting/")
    assert not list(list_standing(made.fs)), "what is only watched is no work that is left"
    writer.write(line(1) + '{"command": ')
    made.advance(20)
    assert ids(made) == ["g0"], "half a line is none"
    assert any("came after its admission" in text.decode() for text in made.fs.files("status").values())
    writer.write('["work"]}\n')
    made.advance(20)
    assert len(ids(made)) == 3
    (grew,) = events(made, "GREW")
    assert grew["detail"]["lines"] == 2  # type: ignore[index]
    assert [name for name in ids(made) if name.startswith("gen-") and name.endswith("-3")], "lines are counted on"


def test_a_new_leader_goes_on_watching_and_makes_no_line_twice() -> None:
    made = cluster(remote=True)
    writer = Writer(made, "gen.jsonl")
    writer.write('{"command": ["work"]}\n')
    made.advance(12)
    made.crash("m1")
    writer.write('{"command": ["work"]}\n')
    made.master("m2")
    made.advance(60)
    writer.write('{"command": ["work"]}')
    made.advance(30)
    assert [name.rpartition("-")[2] for name in ids(made)] == ["1", "2", "3"]
    assert len({name.rpartition("-")[0] for name in ids(made)}) == 1


@pytest.mark.parametrize(
    "more", ['{"comand": 1}\n', 'garbage behind {"id": "x"}', '{"id": "g0", "command": ["other"]}\n', '{"half": ']
)
def test_a_rest_that_is_no_task_goes_to_rejected_with_the_reason(more: str) -> None:
    made = cluster(remote=True)
    writer = Writer(made, "gen.jsonl")
    writer.write(line(0))
    made.advance(12)
    writer.write(more)
    made.advance(700)
    (drop,) = [name for name in made.fs.list("rejected") if name.endswith(".jsonl")]
    assert made.fs.read(f"rejected/{drop}").endswith(more.encode())
    said = json.loads(made.fs.read(f"rejected/{drop}.reason.json"))
    assert "The lines before it in the file were admitted" in said["problem"]
    assert ids(made) == ["g0"]
    assert made.fs.files("admitting") == {}


@pytest.mark.turns
@pytest.mark.parametrize("length", range(34, 50))
def test_what_grows_beyond_the_largest_batch_is_not_lost_wherever_that_ends(length: int) -> None:
    made = Cluster("[drop]\nmax_batch_bytes = 1024\n", remote=True)
    made.master("m1")
    made.settle()
    writer = Writer(made, "gen.jsonl", line(0).encode())
    made.advance(12)
    assert ids(made) == ["g0"]
    more = "".join(line(number).rstrip().ljust(length - 1) + "\n" for number in range(10, 40))
    writer.write(more)
    writer.close()
    made.advance(700)
    assert ids(made) == ["g0"], "all of the rest or none"
    assert made.fs.read(writer.path).endswith(more.encode())
    said = json.loads(made.fs.read(f"{writer.path}.reason.json"))
    assert "over the limit of 1,024" in said["problem"]


def test_what_is_added_to_the_last_line_of_an_admitted_batch_is_no_other_task() -> None:
    made = cluster(remote=True)
    writer = Writer(made, "gen.jsonl")
    writer.write(line(0).rstrip())
    made.advance(12)
    writer.write(' {"id": "g1", "command": ["work"]}\n' + line(2))
    made.advance(60)
    assert ids(made) == ["g0"]
    assert len(made.fs.list("rejected")) == 2


def test_a_single_task_whose_writer_is_there_waits_for_it_and_no_longer_than_the_grace() -> None:
    made = cluster(remote=False)
    writer = Writer(made, "a.json", b'{"id": "a", "command": ["work"]}')
    made.advance(3)
    assert made.fs.list("pending") == ["a.json"]
    writer.write("\n")
    writer.close()
    made.advance(2)
    assert made.state("a") == "ready"
    Writer(made, "b.json", b'{"id": "b", "command": ["work"]}')
    made.advance(12)
    assert made.state("b") == "ready"


def test_half_a_task_is_not_rejected_while_its_writer_is_there() -> None:
    made = cluster(remote=False)
    writer = Writer(made, "a.json", b'{"id": "a", ')
    made.advance(60)
    assert made.fs.list("pending") == ["a.json"]
    writer.write('"command": ["work"]}')
    writer.close()
    made.advance(2)
    assert made.state("a") == "ready"


@pytest.mark.parametrize(("remote", "after_s"), [(True, 60), (False, 10)])
def test_an_empty_drop_waits_longer_on_a_share(remote: bool, after_s: int) -> None:
    made = cluster(remote)
    made.submit("a.json", "")
    made.advance(after_s - 2)
    assert made.fs.list("pending") == ["a.json"]
    made.advance(5)
    assert made.fs.list("pending") == []
    assert "a.json" in made.fs.list("rejected")


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("drop", "text"), [("a.json", '{"id": "g0", "command": ["work"]}'), ("a.jsonl", line(0) + line(1)[:-1])]
)
def test_what_was_rejected_half_is_judged_again_when_it_is_whole(pieces: int, drop: str, text: str) -> None:
    made = cluster(remote=True)
    writer = Writer(made, drop)
    writer.write(text[:5])
    made.advance(15)
    assert writer.path == f"rejected/{drop}"
    for number in range(pieces):
        length = len(text) - 5
        writer.write(text[5 + number * length // pieces : 5 + (number + 1) * length // pieces])
        made.advance(40)
    assert "g0" in ids(made)
    assert made.fs.list("rejected") == made.fs.list("pending") == []
    assert len(events(made, "REJUDGED")) == pieces


def test_what_grew_while_nobody_led_is_judged_by_the_next_leader() -> None:
    made = cluster(remote=True)
    writer = Writer(made, "a.json", b'{"id": "g0"')
    made.submit("bad.json", '{"comand": 1}')
    made.advance(15)
    made.crash("m1")
    made.advance(700)
    writer.write(', "command": ["work"]}')
    made.fs.append("rejected/bad.json", b" ")
    made.master("m2")
    made.advance(30)
    assert ids(made) == ["g0"]
    (said,) = [json.loads(data) for path, data in made.fs.files("rejected").items() if path.endswith(".reason.json")]
    assert (said["field"], said["size"]) == ("comand", len('{"comand": 1} '))


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("times", [1, 5])
def test_a_reason_that_the_share_did_not_show_at_once_is_read_again_by_the_next_leader(code: int, times: int) -> None:
    made = cluster(remote=True)
    writer = Writer(made, "a.json", b'{"id": "g0"')
    made.advance(15)
    made.crash("m1")
    writer.write(', "command": ["work"]}')
    made.master("m2").fs.fail("read", "rejected/a.json.reason.json", code, times=times)
    made.advance(150)
    assert ids(made) == ["g0"]


@pytest.mark.parametrize("seen", [True, False])
def test_a_rejection_that_the_network_carries_out_under_the_next_leader_is_judged_again(seen: bool) -> None:
    """seen: whether the next leader has looked at the drop before it was gone."""
    made = cluster(remote=True)
    writer = Writer(made, "a.json", b'{"id": "g0"')
    old = made.nodes["m1"].fs
    old.crash_at("rename", "pending/a.json")
    old.last_words = True
    made.advance(15)
    assert made.fs.list("rejected") == ["a.json.reason.json"]
    new = made.master("m2").fs
    if seen:
        made.advance(20)
        assert writer.path == "pending/a.json"
        old.deliver()
    else:
        new.hang("read", "pending/a.json", old.deliver)
        made.advance(25)
    assert writer.path == "rejected/a.json"
    writer.write(', "command": ["work"]}')
    made.advance(60)
    assert ids(made) == ["g0"]
    assert made.fs.list("rejected") == []


@pytest.mark.parametrize("rest", [', "command": ["work"]}', ""])
def test_a_rejection_that_seemed_to_fail_and_comes_late_is_not_without_its_reason(rest: str) -> None:
    made = cluster(remote=True)
    writer = Writer(made, "a.json", b'{"id": "g0"')
    fs = made.nodes["m1"].fs
    fs.fail("rename", "pending/a.json", errno.EIO, "late")
    while not fs.waiting:
        made.advance(1)
        assert writer.path == "pending/a.json"
    fs.deliver()
    assert made.fs.list("rejected") == ["a.json"]
    writer.write(rest)
    made.advance(60)
    if rest:
        assert ids(made) == ["g0"]
    else:
        assert len(made.fs.list("rejected")) == 2


def test_a_rejected_drop_is_looked_at_ever_more_seldom_and_in_the_end_no_more() -> None:
    made = cluster(remote=True)
    made.submit("a.json", "{")
    made.advance(100)
    asked = made.nodes["m1"].fs.asked
    before = asked["read"]
    made.advance(300)
    assert asked["read"] - before < 100
    made.advance(400)
    before = asked["read"]
    made.fs.append("rejected/a.json", b'"id": "a", "command": ["work"]}')
    made.advance(100)
    assert "a.json" in made.fs.list("rejected")


@pytest.mark.parametrize("how", ["refused", "late"])
def test_what_is_whole_by_now_is_brought_back_however_often_that_was_refused(how: Literal["refused", "late"]) -> None:
    """Over SMB a file that its writer still has open may not be renamed."""
    made = cluster(remote=True)
    writer = Writer(made, "a.json", b'{"id": "g0"')
    made.advance(15)
    fs = made.nodes["m1"].fs
    fs.fail("rename", "rejected/a.json", errno.EBUSY if how == "refused" else errno.EIO, how, times=9)
    writer.write(', "command": ["work"]}')
    made.advance(60)
    fs.deliver()
    made.advance(60)
    assert ids(made) == ["g0"]
    assert "a.json" not in made.fs.list("rejected")


@pytest.mark.parametrize("limit", ["max_bytes", "max_batch_bytes"])
def test_a_rejected_drop_that_outgrows_every_task_is_not_read_again_and_again(limit: str) -> None:
    made = Cluster(f"[drop]\n{limit} = 1024\n", remote=True)
    made.master("m1")
    made.settle()
    writer = Writer(made, "a.json" if limit == "max_bytes" else "a.jsonl", b'{"id": "g0", ')
    made.advance(15)
    assert writer.path.startswith("rejected/")
    writer.write(" " * 2000)
    made.advance(700)
    asked = made.nodes["m1"].fs.asked
    before = asked["read"]
    made.advance(100)
    assert asked["read"] - before < 10
    assert writer.path.startswith("rejected/")


@pytest.mark.parametrize("count", [1, drops.MANY, 3 * drops.MANY])
@pytest.mark.parametrize("name", ["{:02}.json", "00000000{0:02}.g{0}.json"])
def test_a_copied_drop_is_made_durable_after_it_was_read_and_before_it_is_admitted(name: str, count: int) -> None:
    """The second name is one of ours, whose drops become tasks as they are; of others it is a copy."""
    made = cluster(remote=False)
    told: list[str] = []
    fs = made.nodes["m1"].fs
    write = fs.write

    def written(path: str, data: bytes, *, durable: bool) -> None:
        told.extend(["persist"] if path.startswith("admitting/") and durable else [])
        write(path, data, durable=durable)

    fs.write = written  # type: ignore[method-assign]
    fs.hang("flush", "", lambda: told.append("flush"))
    for verb in ("read", "persist", "rename"):
        for number in range(count):
            fs.hang(verb, f"pending/{name.format(number)}", partial(told.append, verb))
    for number in range(count):
        made.submit(name.format(number), line(number))
    made.step("m1")
    assert told.count("rename") == count
    waits = told.count("flush") if count >= drops.MANY else told.count("persist")
    assert waits == 1
    last_wait = max(index for index, verb in enumerate(told) if verb in ("persist", "flush"))
    assert "read" not in told[last_wait:]
    assert "rename" not in told[:last_wait]


@pytest.mark.parametrize("drop", ["0abcdefghi.g0@unique.json", "0000000007.batch-all.whole.jsonl"])
def test_what_was_submitted_costs_nothing_more(drop: str) -> None:
    made = cluster(remote=False)
    made.submit(drop, line(0))
    made.settle()
    assert ids(made) == ["g0"]
    assert not {"persist", "flush", "has_writer"} & set(made.nodes["m1"].fs.asked) - (
        {"flush"} if "whole" in drop else set()
    )


def test_nothing_is_waited_for_where_the_settings_do_not_ask() -> None:
    made = Cluster("[durability]\nfsync = false\n")
    made.master("m1")
    made.submit("a.json", line(0))
    made.submit("b.jsonl", line(1))
    made.advance(5)
    assert ids(made) == ["g0", "g1"]
    assert not {"persist", "flush"} & set(made.nodes["m1"].fs.asked)


@pytest.mark.parametrize(
    ("drop", "failing"), [("a.json", ("write", "admitting/")), ("0000000000.g0.json", ("persist", "pending/"))]
)
def test_a_drop_that_cannot_be_made_durable_stays_and_holds_up_nobody(drop: str, failing: tuple[str, str]) -> None:
    made = cluster(remote=False)
    made.submit(drop, line(0))
    made.nodes["m1"].fs.fail(*failing, errno.EIO)
    made.step("m1")
    made.submit("b.json", line(1))
    made.step("m1")
    assert ids(made) == ["g1"]
    made.advance(20)
    assert ids(made) == ["g0", "g1"]


def test_while_a_drop_is_put_off_people_are_told_the_reason_that_was_found() -> None:
    made = cluster(remote=False)
    made.submit("0000000000.g0.json", line(0))
    made.submit("b.json", line(1))
    made.nodes["m1"].fs.fail("persist", "pending/0", errno.EIO, times=100)
    made.nodes["m1"].fs.fail("rename", "pending/b", errno.EACCES, times=100)
    made.advance(10)
    made.step("m1")
    desk = made.nodes["m1"].master.desk
    assert desk is not None
    told = "\n".join(desk.report.notices)
    assert "pending/0000000000.g0.json cannot be made durable: Input/output error; it is tried again" in told
    assert "b.json cannot be moved: this node's user may not write to pending or " in told
    assert len(desk.report.notices) == 2


def test_a_drop_that_the_leader_may_not_write_is_admitted_and_the_journal_says_so() -> None:
    made = cluster(remote=False)
    made.submit("0000000000.g0.json", line(0))
    made.nodes["m1"].fs.fail("persist", "pending/0", errno.EACCES)
    made.step("m1")
    assert ids(made) == ["g0"]
    assert events(made, "NOT_DURABLE")


def test_an_id_that_is_taken_in_the_same_step_is_compared() -> None:
    made = cluster(remote=False)
    made.submit("a.json", line(0))
    made.submit("b.json", line(0))
    made.submit("c.json", '{"id": "G0", "command": ["other"]}')
    made.settle()
    assert ids(made) == ["g0"]
    assert sorted(made.fs.list("rejected")) == ["c.json", "c.json.reason.json"]


def test_what_an_editor_writes_before_it_renames_is_left_alone() -> None:
    made = cluster(remote=False)
    for name in ("sedAbC123", "4913", ".a.json.swp", "a.json~"):
        made.submit(name, line(0))
    made.advance(5)
    assert made.fs.list("rejected") == []
    made.fs.rename("pending/sedAbC123", "pending/a.json")
    made.fs.unlink("pending/4913")
    made.advance(20)
    assert ids(made) == ["g0"]
    assert made.fs.list("rejected") == []


@pytest.mark.parametrize("begun_again", [False, True])
def test_a_batch_that_the_network_renames_late_is_watched_all_the_same(
    begun_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """begun_again: an error in between has the leader read the file once more, which is not under that name now."""
    made = cluster(remote=True)
    monkeypatch.setattr(refresh, "RELIST_EVERY_S", math.inf)
    made.advance(20)  # the last time that it lists everything, and would find it so
    writer = Writer(made, "gen.jsonl")
    writer.write(line(0))
    fs = made.nodes["m1"].fs
    fs.fail("rename", "admitting/1.m1.1/", errno.EIO, "late", after=3)  # into the door, and its line, are spared
    while not fs.waiting:
        made.advance(1)
    assert writer.path.endswith(".0-34-60003d7c.growing")
    if begun_again:

        def fails(*_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patch:
            patch.setattr(batch_admission.Batches, "_stage_some", fails)
            assert not made.step("m1")
    assert fs.deliver() == 1, "before it is tried once more"
    assert writer.path.endswith(".34-34-60003d7c.growing")
    writer.write(line(1))
    made.advance(30)
    assert ids(made) == ["g0", "g1"]


def test_a_rest_that_the_network_renames_late_is_admitted_all_the_same() -> None:
    made = cluster(remote=True)
    writer = Writer(made, "gen.jsonl")
    writer.write(line(0))
    made.advance(13)
    assert writer.path.endswith(".growing")
    writer.write(line(1))
    fs = made.nodes["m1"].fs
    fs.fail("rename", writer.path, errno.EIO, "late")
    while not fs.waiting:
        made.advance(1)
    assert fs.deliver() == 1, "before it is tried once more"
    made.advance(20)
    assert ids(made) == ["g0", "g1"]


def test_a_copy_that_was_seen_in_the_middle_is_admitted_a_moment_later() -> None:
    made = cluster(remote=False)
    made.submit("a.json", "")
    made.step("m1")
    made.submit("a.json", line(0))
    made.pass_time(0.15)
    made.step("m1")
    assert ids(made) == ["g0"]
