"""A name in the drop box that is used again, while somebody's client still knows the file that had it before.

Law: what is written into a file that was rejected, or that is a batch already, is judged as a drop of its own.
Method: the very same file, by its inode, is emptied and written anew wherever it was moved, as an NFS client does
that has its handle.
"""

import errno
import json

import pytest

from spoold.master.intake import batch_admission, requeue_changed
from spoold.master.state import fingerprints
from tests.support.cluster import Cluster
from tests.support.counting import CountingFileSystem

WATCHED_S = 700
GOOD = '{"id": "g0", "command": ["work"]}'
BAD = {"no JSON": '{"id": "g0", "command": ["work"],}', "no task": '{"id": "g0", "comand": ["work"]}     '}


def cluster(settings: str = "", remote: bool = True) -> Cluster:
    made = Cluster(settings, remote=remote)
    made.master("m1")
    made.settle()
    return made


def drop(made: Cluster, name: str, text: str) -> int:
    """Drop a file, and wait until it has been judged; its inode."""
    made.submit(name, text)
    inode = made.fs.stat(f"pending/{name}").inode
    made.advance(15)
    assert name not in made.fs.list("pending")
    return inode


def path_of(made: Cluster, inode: int) -> str:
    """Where the file is by now."""
    (found,) = [path for path in made.fs.files() if made.fs.stat(path).inode == inode]
    return found


def rewrite(made: Cluster, inode: int, text: str) -> None:
    """Empty the file and write it anew, wherever it is."""
    made.fs.write(path_of(made, inode), text.encode(), durable=False)


def ids(made: Cluster) -> list[str]:
    """The tasks that are ready, in their order."""
    return sorted(path.rpartition("/")[2].split(".", 2)[2].rsplit(".", 2)[0] for path in made.fs.files("ready"))


def events(made: Cluster, event: str) -> list[dict[str, object]]:
    """What the journals say of one kind of event."""
    made.step_all()
    lines = [text for data in made.fs.files("events").values() for text in data.split(b"\n") if text]
    return [found["detail"] for found in map(json.loads, lines) if found["event"] == event]


def reasons(made: Cluster) -> dict[str, dict[str, object]]:
    """What stands in rejected/, each with its reason."""
    names = {name for name in made.fs.list("rejected") if not name.endswith(".reason.json")}
    assert {f"{name}.reason.json" for name in names} | names == set(made.fs.list("rejected"))
    return {name: json.loads(made.fs.read(f"rejected/{name}.reason.json")) for name in names}


def line(number: int, more: str = "") -> str:
    return json.dumps({"id": f"g{number}", "command": ["work", more] if more else ["work"]}) + "\n"


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("new_leader", [False, True])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("size", ["smaller", "larger", "same"])
def test_a_rejected_drop_that_was_fixed_in_place_is_admitted(
    size: str, bad: str, new_leader: bool, remote: bool
) -> None:
    made = cluster(remote=remote)
    inode = drop(made, "job.json", BAD[bad])
    assert path_of(made, inode) == "rejected/job.json"
    if new_leader:
        made.crash("m1")
    more = {"smaller": 0, "larger": 9, "same": len(BAD[bad]) - len(GOOD)}[size]
    rewrite(made, inode, GOOD + " " * more)
    if new_leader:
        made.master("m2")
    made.advance(60)
    assert ids(made) == ["g0"]
    assert made.fs.list("rejected") == made.fs.list("pending") == []
    assert [said["drop"] for said in events(made, "REJUDGED")] == ["job.json"]


@pytest.mark.parametrize("name", ["jobs.jsonl", "jobs.whole.jsonl"])
def test_a_rejected_batch_that_was_fixed_in_place_is_admitted(name: str) -> None:
    made = cluster()
    inode = drop(made, name, line(0) + '{"comand": 1}\n' + line(1))
    rewrite(made, inode, line(0) + line(1))
    made.advance(60)
    assert ids(made) == ["g0", "g1"]
    assert reasons(made) == {}


def test_what_is_written_in_two_goes_is_judged_whole() -> None:
    made = cluster()
    inode = drop(made, "job.json", BAD["no task"])
    rewrite(made, inode, "")
    made.advance(20)
    rewrite(made, inode, GOOD[:9])
    made.advance(5)
    rewrite(made, inode, GOOD)
    made.advance(30)
    assert ids(made) == ["g0"]
    assert reasons(made) == {}


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("pause_s", [1, 30])
def test_who_mends_a_rejected_drop_may_save_more_than_once(pause_s: float, remote: bool) -> None:
    """An editor goes on writing under the name that it has opened, though the drop went back to pending/."""
    made = cluster(remote=remote)
    inode = drop(made, "job.json", BAD["no task"])
    rewrite(made, inode, '{"id": "g0", "comma')
    made.advance(5)
    for text in ('{"id": "g0", "comman', GOOD):
        made.advance(pause_s)
        made.fs.write("rejected/job.json", text.encode(), durable=False)
    made.advance(90)
    assert ids(made) == ["g0"]
    assert all("is not JSON" in str(said["problem"]) for said in reasons(made).values())


@pytest.mark.parametrize("now", ["{", '{"comand": 2, "id": "g1"}', "[]", ""])
def test_what_is_wrong_again_gets_its_own_reason(now: str) -> None:
    made = cluster()
    inode = drop(made, "job.json", BAD["no task"])
    for text in (now, BAD["no JSON"]):
        rewrite(made, inode, text)
        made.advance(120)
        ((name, reason),) = reasons(made).items()
        assert path_of(made, inode) == f"rejected/{name}"
        assert reason["size"] == len(text)
    assert ids(made) == []
    assert len(events(made, "REJUDGED")) == 2


@pytest.mark.parametrize("new_leader", [False, True])
@pytest.mark.parametrize("bad", BAD)
def test_the_same_again_changes_nothing(bad: str, new_leader: bool) -> None:
    made = cluster()
    inode = drop(made, "job.json", BAD[bad])
    before = made.fs.files("rejected")
    if new_leader:
        made.crash("m1")
        made.master("m2")
    for _ in range(5):
        rewrite(made, inode, BAD[bad])
        made.advance(40)
    assert made.fs.files("rejected") == before
    assert events(made, "REJUDGED") == []


@pytest.mark.parametrize("new_leader", [False, True])
@pytest.mark.parametrize("name", ["job.json", "job.jsonl"])
def test_a_drop_that_was_too_large_and_is_not_any_more_is_admitted(name: str, new_leader: bool) -> None:
    made = cluster("[drop]\nmax_bytes = 1024\nmax_batch_bytes = 1024\n")
    inode = drop(made, name, GOOD + " " * 2000)
    assert path_of(made, inode) == f"rejected/{name}"
    rewrite(made, inode, GOOD + " " * 3000)
    made.advance(30)
    assert path_of(made, inode) == f"rejected/{name}", "whatever was added, it is too large"
    if new_leader:
        made.crash("m1")
        made.master("m2")
    rewrite(made, inode, GOOD)
    made.advance(60)
    assert ids(made) == ["g0"]
    assert reasons(made) == {}


def test_a_batch_with_a_line_that_was_too_long_is_judged_again_when_it_has_another_size() -> None:
    made = cluster("[drop]\nmax_bytes = 1024\n")
    inode = drop(made, "jobs.jsonl", line(0) + line(1, "x" * 2000))
    rewrite(made, inode, line(0) + line(1))
    made.advance(60)
    assert ids(made) == ["g0", "g1"]


def test_an_id_that_was_taken_is_changed_in_place() -> None:
    made = cluster()
    drop(made, "first.json", GOOD)
    inode = drop(made, "job.json", GOOD.replace("work", "walk"))
    assert path_of(made, inode) == "rejected/job.json"
    rewrite(made, inode, GOOD.replace("work", "walk").replace("g0", "g1"))
    made.advance(60)
    assert ids(made) == ["g0", "g1"]


def test_a_drop_that_might_not_be_read_is_judged_when_it_may() -> None:
    made = cluster(remote=False)
    for directory in ("pending", "rejected"):
        made.nodes["m1"].fs.fail("read", f"{directory}/job.json", errno.EACCES, times=30)
    drop(made, "job.json", GOOD)
    assert reasons(made)["job.json"]["size"] == 0
    made.nodes["m1"].fs.faults.clear()
    made.advance(60)
    assert ids(made) == ["g0"]
    assert ids(made) == ["g0"]
    assert reasons(made) == {}


@pytest.mark.parametrize("name", ["0abcdefghi.g0@unique.json", "0abcdefghi.g0.json"])
def test_a_name_of_ours_is_never_used_again_and_not_looked_at(name: str) -> None:
    made = cluster()
    made.advance(60)  # the last time that a new leader lists what was rejected
    counter = made.nodes["m1"].fs.inner = CountingFileSystem(made.fs)
    drop(made, name, BAD["no task"])
    assert "digest" not in reasons(made)[name]
    made.advance(60)
    assert counter.calls["read", "rejected"] == 0


@pytest.mark.parametrize("digest", [None, 1, "", "zz", "0" * 15, ["0" * 16]])
def test_a_reason_without_a_digest_is_believed(digest: object) -> None:
    """What former releases have rejected stays, unless it was unfinished."""
    made = cluster()
    inode = drop(made, "job.json", BAD["no task"])
    made.crash("m1")
    said = {**reasons(made)["job.json"], "digest": digest}
    made.fs.write("rejected/job.json.reason.json", json.dumps(said).encode(), durable=False)
    rewrite(made, inode, GOOD)
    made.master("m2")
    made.advance(60)
    assert path_of(made, inode) == "rejected/job.json"


def test_a_drop_that_may_not_be_moved_back_is_tried_until_it_may() -> None:
    made = cluster()
    inode = drop(made, "job.json", BAD["no task"])
    made.nodes["m1"].fs.fail("rename", "rejected/job.json", errno.EBUSY, times=200)
    rewrite(made, inode, GOOD)
    made.advance(5)
    made.nodes["m1"].fs.faults.clear()
    made.advance(60)
    assert ids(made) == ["g0"]


def test_a_look_that_fails_is_not_the_last() -> None:
    made = cluster()
    inode = drop(made, "job.json", BAD["no task"])
    made.advance(30)
    fs = made.nodes["m1"].fs
    fs.fail("read", "rejected/job.json", errno.ENOENT)
    fs.fail("list", "rejected", errno.ESTALE)
    made.advance(20)
    assert not fs.faults or not any(fault.times for fault in fs.faults)
    rewrite(made, inode, GOOD)
    made.advance(60)
    assert ids(made) == ["g0"]


def test_no_flood_of_rejected_drops_makes_a_step_long() -> None:
    made = cluster()
    count = 30 * requeue_changed.LOOKS_PER_STEP
    for number in range(count):
        made.submit(f"{number:04}.json", BAD["no task"])
    counter = made.nodes["m1"].fs.inner = CountingFileSystem(made.fs)
    while made.fs.list("pending"):
        made.step("m1")
    for name in ("0000.json", f"{count - 1:04}.json"):
        made.fs.write(f"rejected/{name}", GOOD.replace("g0", f"g{name[0:4]}").encode(), durable=False)
    made.pass_time(60)
    looks = []
    while len(ids(made)) < 2:
        counter.clear()
        made.step("m1")
        made.pass_time(0.25)
        looks.append(counter.calls["read", "rejected"])
        assert sum(looks) <= 3 * count, "each has its turn"
    assert max(looks) == requeue_changed.LOOKS_PER_STEP
    assert sum(looks) <= len(looks) * requeue_changed.LOOKS_PER_STEP / 4 + requeue_changed.LOOKS_PER_STEP, (
        "nor very often"
    )


def test_a_new_leader_reads_no_flood_of_reasons_in_one_step() -> None:
    made = cluster()
    count = 5 * requeue_changed.READ_PER_STEP
    for number in range(count):
        made.submit(f"{number:04}.json", BAD["no task"])
    made.settle()
    made.crash("m1")
    made.fs.write(f"rejected/{count - 1:04}.json", GOOD.encode(), durable=False)
    counter = made.master("m2").fs.inner = CountingFileSystem(made.fs)
    for _ in range(60):
        counter.clear()
        made.step("m2")
        made.pass_time(1.0)
        assert counter.calls["read", "rejected"] <= requeue_changed.READ_PER_STEP + requeue_changed.LOOKS_PER_STEP
    assert ids(made) == ["g0"]


@pytest.mark.parametrize(
    ("name", "back"),
    [
        ("job.json", True),
        ("jobs.jsonl", True),
        ("5000.hbv8u6qpmo-1.t.a1f0c0.json", False),
        ("notes.txt", False),
        (".job.json", False),
    ],
)
def test_a_rejection_that_was_carried_out_after_its_reason_was_taken_away_is_judged_by_the_next_leader(
    name: str, back: bool
) -> None:
    """The leader that had asked for it is gone by then, and with it who knew that the drop had been in pending/."""
    made = cluster()
    made.crash("m1")
    made.fs.write(f"rejected/{name}", f"{GOOD}\n".encode(), durable=False)
    made.master("m2")
    made.advance(60)
    assert ids(made) == (["g0"] if back else [])
    assert made.fs.list("rejected") == ([] if back else [name])


def batch(made: Cluster, count: int = 2) -> int:
    """Drop a batch that no rename published, and wait until its lines are tasks; its inode."""
    inode = drop(made, "gen.jsonl", "".join(map(line, range(count))))
    assert ids(made) == [f"g{number}" for number in range(count)]
    assert path_of(made, inode).endswith(".growing")
    return inode


ANEW = {
    "smaller": line(5),
    "larger": line(5) + line(6) + line(7),
    "same size": line(5) + line(6),
    "one byte": line(0) + line(5),
}


@pytest.mark.turns
@pytest.mark.parametrize("small", [fingerprints.SMALL, 16])
@pytest.mark.parametrize("new_leader", [False, True])
@pytest.mark.parametrize("how", ANEW)
def test_a_batch_whose_file_was_written_anew_is_a_drop_again(
    how: str, new_leader: bool, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """small: from which size on a file is not read at each look."""
    monkeypatch.setattr(fingerprints, "SMALL", small)
    monkeypatch.setattr(fingerprints, "PIECE", 7)
    monkeypatch.setattr(fingerprints, "PIECES_PER_LOOK", 2)
    made = cluster()
    inode = batch(made)
    made.advance(30)
    if new_leader:
        made.crash("m1")
    rewrite(made, inode, ANEW[how])
    if new_leader:
        made.master("m2")
    made.advance(120)
    wanted = {json.loads(text)["id"] for text in (line(0) + line(1) + ANEW[how]).splitlines()}
    assert ids(made) == sorted(wanted)
    assert reasons(made) == {}
    assert len(events(made, "REJUDGED")) == 1
    assert events(made, "GREW") == []
    made.advance(WATCHED_S)
    assert made.fs.files("admitting") == {}


def test_a_batch_that_is_written_anew_in_two_goes_is_judged_whole() -> None:
    made = cluster()
    inode = batch(made)
    rewrite(made, inode, "")
    made.advance(20)
    rewrite(made, inode, line(5)[:7])
    made.advance(5)
    rewrite(made, inode, line(5) + line(6))
    made.advance(60)
    assert ids(made) == ["g0", "g1", "g5", "g6"]
    assert reasons(made) == {}


def test_a_batch_that_is_written_anew_and_wrong_is_rejected() -> None:
    made = cluster()
    inode = batch(made)
    rewrite(made, inode, line(5) + '{"comand": 1}\n')
    made.advance(60)
    ((name, reason),) = reasons(made).items()
    assert path_of(made, inode) == f"rejected/{name}"
    assert "What came before" not in str(reason["problem"])


@pytest.mark.parametrize("small", [fingerprints.SMALL, 16])
@pytest.mark.parametrize("more", ["", line(5)])
def test_a_batch_that_is_written_again_as_it_was_makes_no_line_twice(
    more: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "SMALL", small)
    made = cluster()
    text = '{"command": ["work"]}\n' * 2
    inode = drop(made, "gen.jsonl", text)
    for _ in range(3):
        rewrite(made, inode, text + more)
        made.advance(40)
    assert len(ids(made)) == 2 + bool(more)
    assert events(made, "REJUDGED") == []
    made.advance(WATCHED_S)
    assert made.fs.files("admitting") == {}
    assert len(ids(made)) == 2 + bool(more)


def test_what_grew_and_is_then_written_anew_is_a_drop_again() -> None:
    made = cluster()
    inode = batch(made)
    rewrite(made, inode, line(0) + line(1) + line(2) + line(3))
    made.advance(3)
    rewrite(made, inode, line(5))
    made.advance(60)
    assert ids(made) == ["g0", "g1", "g5"]


@pytest.mark.parametrize("small", [fingerprints.SMALL, 16])
def test_a_quiet_look_costs_at_most_one_call_more_than_before(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "SMALL", small)
    made = cluster()
    batch(made)
    made.advance(60)
    counter = made.nodes["m1"].fs.inner = CountingFileSystem(made.fs)
    made.advance(200)
    looks = counter.calls["has_writer", "admitting"]
    assert looks >= 200 / 10
    assert counter.calls["read", "admitting"] == looks
    of_doors = 5  # what is looked at now and then, whatever stands there
    assert counter.calls["stat", "admitting"] <= of_doors + (looks if small == 16 else 0)


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step makes two lines into tasks."""
    monkeypatch.setattr(batch_admission, "PER_STEP", 2)


@pytest.mark.usefixtures("two_at_once")
@pytest.mark.parametrize("error", [False, True])
def test_the_leader_that_read_a_batch_makes_all_its_lines_whatever_is_written_into_it(error: bool) -> None:
    """error: the share fails while it makes them, so that it begins again with the first line."""
    made = cluster()
    made.submit("gen.jsonl", "".join(map(line, range(8))))
    inode = made.fs.stat("pending/gen.jsonl").inode
    while len(ids(made)) < 4:
        made.advance(1)
    assert len(ids(made)) < 8
    rewrite(made, inode, line(20))
    if error:
        made.nodes["m1"].fs.fail("write", "admitting/", errno.EIO)
    made.advance(60)
    assert set(ids(made)) == {*(f"g{number}" for number in range(8)), "g20"}
    assert reasons(made) == {}


@pytest.mark.usefixtures("two_at_once")
@pytest.mark.parametrize("now", [line(20), "".join(map(line, range(20, 28))), ""])
def test_a_new_leader_that_finds_half_a_batch_written_anew_makes_none_of_it_and_says_so(now: str) -> None:
    made = cluster()
    made.submit("gen.jsonl", "".join(map(line, range(8))))
    inode = made.fs.stat("pending/gen.jsonl").inode
    while len(ids(made)) < 4:
        made.advance(1)
    before = ids(made)
    made.crash("m1")
    rewrite(made, inode, now)
    made.master("m2")
    made.advance(60)
    found = [f"g{json.loads(text)['id'][1:]}" for text in now.splitlines()]
    assert ids(made) == sorted({*before, *found})
    (said,) = events(made, "OVERWRITTEN")
    assert str(said["batch"]).endswith(".growing")
    (snapshot,) = sorted(made.fs.files("status").items())[-1:]
    assert "was written again before all its lines were tasks" in snapshot[1].decode()
    made.advance(WATCHED_S)
    (snapshot,) = sorted(made.fs.files("status").items())[-1:]
    assert "was written again before" not in snapshot[1].decode()


def rest_rejected(made: Cluster) -> tuple[int, str]:
    """A batch to which something was added that is no task; its inode and what it says."""
    inode = batch(made)
    text = line(0) + line(1) + line(2) + '{"comand": 1}\n'
    rewrite(made, inode, text)
    made.advance(40)
    assert path_of(made, inode).startswith("rejected/")
    return inode, text


@pytest.mark.parametrize("new_leader", [False, True])
def test_what_is_added_to_a_rejected_rest_is_no_new_drop(new_leader: bool) -> None:
    """Its first lines are tasks, and would be made once more."""
    made = cluster()
    inode, text = rest_rejected(made)
    if new_leader:
        made.crash("m1")
        made.master("m2")
    rewrite(made, inode, text + line(3))
    made.advance(60)
    assert path_of(made, inode).startswith("rejected/")
    assert ids(made) == ["g0", "g1"]


@pytest.mark.parametrize("new_leader", [False, True])
@pytest.mark.parametrize("now", [line(5), line(0) + line(1) + line(2) + line(3), line(5) + line(6) + line(7)])
def test_a_rejected_rest_that_was_written_anew_is_a_drop_again(now: str, new_leader: bool) -> None:
    made = cluster()
    inode, _ = rest_rejected(made)
    if new_leader:
        made.crash("m1")
    rewrite(made, inode, now)
    if new_leader:
        made.master("m2")
    made.advance(60)
    assert ids(made) == sorted({"g0", "g1", *(json.loads(text)["id"] for text in now.splitlines())})
    assert reasons(made) == {}


@pytest.mark.parametrize("digest", [b"", bytes(4)])
def test_only_the_size_of_an_unknown_content_is_compared(digest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster()
    made.fs.write("pending/.x", b"abc", durable=False)
    said = fingerprints.Content(3, digest)
    assert said.look(made.fs, "pending/.x") == (3 if digest == b"" else None)
    made.fs.write("pending/.x", b"ab", durable=False)
    assert said.look(made.fs, "pending/.x") is None
    made.fs.write("pending/.x", b"xyzw", durable=False)
    assert said.look(made.fs, "pending/.x") == (4 if digest == b"" else None)
