"""completed/ and failed/ → archive/ → gone; what the leader polls stays small."""

import errno

import pytest

from spoold.master.report.status_report import TREE_EVERY_S
from tests.support.cluster import Cluster
from tests.support.counting import CountingFileSystem

DAY = 86_400.0


def ended(settings: str, count: int = 3, output: str = "") -> Cluster:
    """A leader, a worker, and tasks t0, t1… that have completed, one a second."""
    made = Cluster(settings)
    made.master("m1")
    made.worker("w1")
    made.settle()
    for number in range(count):
        made.submit(f"{number}.json", f'{{"id": "t{number}", "command": ["work"]}}')
        made.settle()
        made.finish(f"t{number}", output=output)
        made.settle()
        made.advance(1)
    return made


def archived(made: Cluster) -> list[str]:
    """The names in the archive, whatever bucket they are in."""
    return sorted(path.rpartition("/")[2] for path in made.fs.files("archive"))


def test_what_is_more_than_a_directory_should_hold_goes_first_the_oldest() -> None:
    made = ended("[retention]\nkeep = 1\n")
    made.advance(10)
    assert made.fs.list("completed") == ["t2.1.w1.json"]
    assert archived(made) == [
        "t0.1.w1.completed.json",
        "t0.1.w1.result.json",
        "t1.1.w1.completed.json",
        "t1.1.w1.result.json",
    ]


def test_gc_archives_all_there_is_at_once() -> None:
    made = ended("", output="x")
    made.fs.write("control/gc.+all.1.json", b"{}", durable=False)
    made.settle()
    assert made.fs.list("control") == []
    for directory in ("completed", "failed", "results", "logs"):
        assert made.fs.list(directory) == []
    assert len(archived(made)) == 9


@pytest.mark.parametrize(
    ("directory", "file", "output", "moved"),
    [("results", "t0.1.w1.json", "", 4), ("logs", "t0.1.w1.log", "x", 6)],
)
def test_a_record_that_cannot_be_moved_keeps_its_task(directory: str, file: str, output: str, moved: int) -> None:
    """Whoever finds a task in the archive finds its result and its log there too."""
    made = ended("", count=2, output=output)
    made.nodes["m1"].fs.fail("rename", f"{directory}/t0.", errno.EIO)
    made.fs.write("control/gc.+all.1.json", b"{}", durable=False)
    made.step("m1")
    assert made.fs.list("completed") == ["t0.1.w1.json"]
    assert made.fs.list(directory) == [file]
    made.settle()
    assert made.fs.list(directory) == []
    assert len(archived(made)) == moved


def test_what_one_leader_began_to_archive_the_next_one_ends_at_once() -> None:
    """Its result is in the archive, where no reader of an ended task looks: it must not stay so for `completed_s`."""
    made = ended("[retention]\ncompleted_s = 1000\n", count=2)
    made.nodes["m1"].fs.fail("rename", "completed/t0.", errno.EIO)
    made.fs.write("control/gc.+all.1.json", b"{}", durable=False)
    made.step("m1")
    assert archived(made) == ["t0.1.w1.result.json", "t1.1.w1.completed.json", "t1.1.w1.result.json"]
    made.crash("m1")
    made.fs.unlink("control/gc.+all.1.json")
    made.master("m2")
    made.advance(30)
    assert made.fs.list("completed") == []
    assert len(archived(made)) == 4


def test_what_the_leader_wrote_and_nobody_needed_goes_with_its_task() -> None:
    """It recorded an attempt as cancelled; its worker was quicker, and completed it."""
    made = ended("", count=0)
    made.nodes["w1"].frozen = True
    made.submit("t.json", '{"id": "t", "command": ["work"]}')
    made.settle()
    made.fs.write("control/cancel.t.1.json", b"{}", durable=False)
    made.nodes["m1"].fs.fail("rename", "ready/", errno.EIO)
    made.step("m1")
    made.fs.unlink("control/cancel.t.1.json")
    made.nodes["w1"].frozen = False
    made.step("w1")
    made.finish("t")
    made.settle()
    assert sorted(made.fs.list("results")) == ["t.1.m1.json", "t.1.w1.json"]
    made.fs.write("control/gc.+all.2.json", b"{}", durable=False)
    made.settle()
    assert made.fs.list("results") == []
    assert made.state("t") == "completed"


def test_lanes_that_nothing_waits_in_are_removed_wherever_they_are() -> None:
    made = ended("", count=0)
    made.submit("t.json", '{"id": "t", "type": "odd", "not_before": "2199-01-01T00:00:00Z"}')
    made.settle()
    assert made.fs.list("waiting") == ["type=odd"]
    made.fs.write("control/cancel.t.1.json", b"{}", durable=False)
    made.advance(70)
    assert made.fs.list("waiting") == made.fs.list("ready") == []


@pytest.mark.parametrize("verb", ["rename", "mkdir"])
def test_archiving_that_fails_is_tried_again(verb: str) -> None:
    made = ended("[retention]\ncompleted_s = 5\n", count=1)
    made.nodes["m1"].fs.fail(verb, "archive/", errno.EIO)
    made.nodes["m1"].fs.fail(verb, "completed/", errno.EIO)
    made.advance(90)
    assert len(archived(made)) == 2
    assert made.state("t0") == "completed"


def test_what_was_archived_for_long_is_deleted_and_so_are_old_journals() -> None:
    made = ended("[retention]\ncompleted_s = 1\narchive_s = 100000\nevents_s = 50000\n", output="x")
    made.advance(90)
    assert len(archived(made)) == 9
    made.fs.write("events/w-old.0.jsonl", b"", durable=False)
    made.witness.losses_allowed = True
    made.pass_time(60_000)
    for _ in range(20):
        made.advance(61)
    assert len(archived(made)) == 9
    assert "w-old.0.jsonl" not in made.fs.list("events")
    assert "m1.0.jsonl" in made.fs.list("events")
    made.pass_time(60_000)
    for _ in range(20):
        made.advance(61)
    assert archived(made) == []


def test_an_archive_in_which_nothing_is_due_is_not_looked_through_every_minute() -> None:
    made = ended("[retention]\ncompleted_s = 1\nfailed_s = 1\narchive_s = 5000\n", count=4)
    made.witness.losses_allowed = True
    made.advance(600)
    mount = made.nodes["m1"].fs
    mount.inner = asked = CountingFileSystem(mount.inner)
    made.advance(1200)
    itself = 1200 / TREE_EVERY_S  # the directory, to see that it still is one
    assert asked.calls["stat", "archive"] <= itself + 2
    assert len(archived(made)) == 8
    made.advance(3800)
    assert archived(made) == []


def test_the_id_of_a_deleted_task_is_free_again() -> None:
    made = ended("[retention]\ncompleted_s = 1\narchive_s = 10\n", count=1)
    made.witness.losses_allowed = True
    for _ in range(10):
        made.advance(61)
    assert archived(made) == []
    made.submit("again.json", '{"id": "t0", "command": ["other"]}')
    made.settle()
    assert made.state("t0") == "claimed"


@pytest.mark.parametrize("days", [365, -365])
def test_a_leader_whose_date_is_a_year_off_deletes_nothing_for_it(days: int) -> None:
    made = ended("[retention]\ncompleted_s = 1\nfailed_s = 1\n", count=2)
    made.advance(100)
    made.fs.write("events/w-old.0.jsonl", b"", durable=False)
    made.fs.mkdir("tmp/somebody")
    clock = made.nodes["m1"].clock
    clock.set_wall(clock.wall() + days * 86_400)
    made.advance(600)
    assert len(archived(made)) == 4
    assert "w-old.0.jsonl" in made.fs.list("events")
    assert "somebody" in made.fs.list("tmp")
