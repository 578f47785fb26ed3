"""What a batch shared stays as long as an archived task, and goes with the batch."""

from tests.support.cluster import Cluster

ARCHIVE_S = 100_000.0


def made() -> Cluster:
    """A leader, and a batch that has shared two things."""
    cluster = Cluster(f"[retention]\narchive_s = {ARCHIVE_S:g}\n")
    cluster.master("m1")
    cluster.settle()
    cluster.witness.losses_allowed = True
    cluster.fs.mkdir("context/nightly")
    for file in ("1.0.w.a.json", "2.1.w.a.json"):
        cluster.fs.write(f"context/nightly/{file}", b"{}", durable=False)
    cluster.advance(61)
    return cluster


def later(cluster: Cluster, part: float) -> None:
    """Let this part of the time pass after which it goes; it is looked at once a day."""
    cluster.pass_time(part * ARCHIVE_S)
    cluster.advance(183)


def test_it_goes_after_its_time() -> None:
    cluster = made()
    later(cluster, 0.9)
    assert len(cluster.fs.list("context/nightly")) == 2
    later(cluster, 0.9)
    assert cluster.fs.list("context") == []


def test_a_new_entry_keeps_all() -> None:
    cluster = made()
    later(cluster, 0.9)
    cluster.fs.write("context/nightly/3.2.w.a.json", b"{}", durable=False)
    later(cluster, 0.9)
    assert len(cluster.fs.list("context/nightly")) == 3
    later(cluster, 0.9)
    assert cluster.fs.list("context") == []


def test_a_task_that_has_not_ended_keeps_all() -> None:
    cluster = made()
    cluster.submit("late.json", '{"id": "late", "command": ["work"], "batch": "Nightly", "hold": "wait"}')
    cluster.settle()
    later(cluster, 3)
    assert len(cluster.fs.list("context/nightly")) == 2


def test_a_task_that_another_leader_admitted_keeps_all() -> None:
    """Its name does not say of which batch it is: the leader reads it before it removes anything."""
    cluster = made()
    cluster.submit("late.json", '{"id": "late", "command": ["work"], "batch": "Nightly"}')
    cluster.settle()
    cluster.crash("m1")
    cluster.master("m2")
    later(cluster, 3)
    assert len(cluster.fs.list("context/nightly")) == 2


def test_steps_go_with_their_task() -> None:
    cluster = Cluster("[retention]\ntmp_s = 5000\n")
    cluster.master("m1")
    cluster.settle()
    cluster.witness.losses_allowed = True
    cluster.submit("late.json", '{"id": "late", "command": ["work"], "hold": "wait"}')
    cluster.settle()
    for task in ("late", "gone"):
        cluster.fs.mkdir(f"steps/{task}")
        cluster.fs.write(f"steps/{task}/1.1.w.json", b"{}", durable=False)
    cluster.advance(61)
    assert cluster.fs.list("steps") == ["gone", "late"]
    cluster.pass_time(90_000)
    cluster.advance(183)
    assert cluster.fs.list("steps") == ["late"]
