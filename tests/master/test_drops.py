"""The drop box, where the scenarios do not reach: strange names, unreadable files, crowds, races."""

import errno
import json

import pytest

from spoold.master.intake import drops
from tests.support.cluster import Cluster


def cluster(settings: str = "") -> Cluster:
    """A leader, and nothing else."""
    made = Cluster(settings)
    made.master("m1")
    made.settle()
    return made


def reason(made: Cluster) -> dict[str, object]:
    """The one reason in rejected/, whatever the drop is called there."""
    (name,) = [name for name in made.fs.list("rejected") if name.endswith(".reason.json")]
    value = json.loads(made.fs.read(f"rejected/{name}"))
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    "drop",
    [
        "a b.json",
        "ä.json",
        "a:b?.json",
        "x" * 240 + ".json",
        "x..json",
        "con.json",
        "new\nline.json",
        "\udcff.json",
    ],
)
def test_a_drop_may_be_called_anything(drop: str) -> None:
    made = cluster()
    made.submit(drop, '{"command": ["work"]}')
    made.settle()
    (name,) = made.fs.list("ready/type=command,run=command")
    assert len(name) < 200
    assert made.fs.list("pending") == []
    assert made.fs.list("rejected") == []


@pytest.mark.parametrize(
    "drop", ["a:b?.json", "x" * 240 + ".json", "ä.json", "a\\b.json", "\udcff.json", "tail .txt "]
)
def test_what_is_rejected_gets_a_name_that_every_server_takes(drop: str) -> None:
    made = cluster()
    made.submit(drop, '{"nothing": 1}')
    made.settle()
    if not drop.endswith(".json"):
        assert made.fs.list("rejected") == [], "an editor may be about to give it another name"
        made.advance(11)
    names = made.fs.list("rejected")
    assert len(names) == 2
    assert all(name.isascii() and len(name) <= 215 and not set(name) & set(':*?"<>|\\') for name in names)
    assert reason(made)["drop"] == drop.encode(errors="backslashreplace").decode()


def test_the_same_bad_name_again_replaces_nothing() -> None:
    made = cluster()
    for number in range(3):
        made.submit("bad.json", f'{{"comand": {number}}}')
        made.settle()
    names = made.fs.list("rejected")
    assert len(names) == 6
    assert "bad.json" in names


def test_a_reason_names_the_id_that_the_drop_gave_itself() -> None:
    made = cluster()
    made.submit("bad.json", '{"id": "mine", "comand": 1}')
    made.settle()
    assert (reason(made)["id"], reason(made)["field"], reason(made)["size"]) == ("mine", "comand", 27)


def test_a_file_that_may_not_be_read_is_waited_for() -> None:
    made = cluster()
    made.submit("secret.json", '{"id": "secret", "command": ["work"]}')
    made.nodes["m1"].fs.fail("read", "pending/secret", errno.EACCES, times=2)
    made.advance(2)
    assert made.fs.list("pending") == ["secret.json"]
    made.advance(2)
    assert made.state("secret") == "ready"
    made.submit("never.json", '{"id": "never", "command": ["work"]}')
    for directory in ("pending", "rejected"):
        made.nodes["m1"].fs.fail("read", f"{directory}/never", errno.EACCES, times=1000)
    made.advance(15)
    assert "may not be read" in str(reason(made)["problem"])


def test_what_a_slow_leader_could_not_read_twice_is_no_verdict() -> None:
    """An SMB client that has the file open refuses others for a moment; a slow leader may meet that twice."""
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.nodes["m1"].fs.fail("read", "pending/a", errno.EACCES, times=2)
    made.step("m1")
    made.pass_time(11.0)
    made.step("m1")
    assert made.fs.list("rejected") == []
    made.advance(3)
    assert made.state("a") == "ready"


def test_a_share_that_cannot_read_a_file_just_now_rejects_nothing() -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.nodes["m1"].fs.fail("read", "pending/a", errno.EIO, times=30)
    made.advance(20)
    assert made.fs.list("rejected") == []
    made.advance(20)
    assert made.state("a") == "ready"


def test_a_rejection_that_cannot_be_made_leaves_no_reason_behind() -> None:
    made = cluster()
    made.submit("bad.json", '{"comand": 1}')
    made.nodes["m1"].fs.fail("rename", "pending/bad", errno.EIO)
    made.step("m1")
    assert made.fs.list("rejected") == []
    assert made.fs.list("pending") == ["bad.json"]
    made.settle()
    assert sorted(made.fs.list("rejected")) == ["bad.json", "bad.json.reason.json"]


def test_a_crowd_is_judged_in_pieces_and_nobody_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "PER_STEP", 10)
    made = cluster()
    for number in range(25):
        made.submit(f"{number:02}.json", f'{{"id": "t{number}", "command": ["work"]}}')
    left = []
    for _ in range(3):
        step = made.nodes["m1"].master.step()
        left.append(len(made.fs.list("pending")))
        assert step.busy
    assert left == [15, 5, 0]


def test_young_drops_do_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "PER_STEP", 3)
    made = cluster()
    for number in range(6):
        made.submit(f"{number}.json", '{"half": ')
    made.submit("good.json", '{"id": "good", "command": ["work"]}')
    for _ in range(3):
        made.step("m1")
    assert made.state("good") == "ready"
    assert len(made.fs.list("pending")) == 6


def test_a_drop_that_is_taken_back_is_forgotten() -> None:
    made = cluster()
    made.submit("half.json", '{"half": ')
    made.advance(9)
    made.fs.unlink("pending/half.json")
    made.advance(1)
    made.submit("half.json", '{"half": ')
    made.advance(9)
    assert made.fs.list("pending") == ["half.json"]
    made.advance(3)
    assert made.fs.list("pending") == []


def test_a_drop_that_goes_while_it_is_looked_at_is_no_error() -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.nodes["m1"].fs.hang("read", "pending/a.json", lambda: made.fs.unlink("pending/a.json"))
    assert made.step("m1")
    made.submit("b.json", '{"id": "b", "command": ["work"]}')
    made.nodes["m1"].fs.hang("rename", "pending/b.json", lambda: made.fs.unlink("pending/b.json"))
    assert made.step("m1")
    assert made.fs.list("pending") == []


def test_a_duplicate_of_a_task_that_is_moving_just_now_is_asked_again() -> None:
    made = cluster()
    made.worker("w1")
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.step("m1")
    made.submit("b.json", '{"id": "a", "command": ["work"]}')
    made.nodes["m1"].fs.hang("read", "ready/", lambda: made.step("w1"))
    made.step("m1")
    assert made.state("a") == "claimed"
    assert made.fs.list("pending") == ["b.json"]
    made.step("m1")
    assert made.fs.list("pending") == []
    assert made.fs.list("rejected") == []


def test_a_demand_that_no_lane_can_spell_is_rejected() -> None:
    made = cluster()
    labels = [f"label-{number:02}-with-a-very-long-name" for number in range(20)]
    made.submit("a.json", json.dumps({"command": ["x"], "requires": {"labels": labels}}))
    made.settle()
    assert reason(made)["field"] == "requires"


def test_retries_that_a_task_brings_along_count() -> None:
    made = cluster()
    made.worker("w1")
    made.submit("a.json", '{"id": "a", "command": ["x"], "retry_count": 3, "max_retries": 3}')
    made.settle()
    made.finish("a", exit_code=1)
    made.settle()
    assert made.state("a") == "failed"


@pytest.mark.parametrize(
    ("drop", "spared"),
    [
        ("0abcdefghi.build@unique.json", True),
        ("0abcdefghi.other@unique.json", False),  # the content names another id than the promise
        ("0abcdefghi.build.json", False),
        ("build@unique.json", False),
    ],
)
def test_only_a_promise_for_its_own_id_spares_a_drop_the_door(drop: str, spared: bool) -> None:
    made = cluster()
    met: list[str] = []
    made.nodes["m1"].fs.hang("rename", "admitting/", lambda: met.append(drop))
    made.submit(drop, '{"id": "build", "command": ["work"]}')
    made.step("m1")
    assert made.state("build") == "ready"
    assert met == ([] if spared else [drop])


@pytest.mark.parametrize(("command", "rejected"), [("work", 0), ("other", 2)])
def test_a_promise_that_was_not_kept_doubles_no_task(command: str, rejected: int) -> None:
    made = cluster()
    made.submit("0abcdefghi.build@unique.json", '{"id": "build", "command": ["work"]}')
    made.settle()
    made.submit("0abcdefghi.build@unique.json", json.dumps({"id": "build", "command": [command]}))
    made.settle()
    assert made.state("build") == "ready"
    assert made.fs.list("pending") == []
    assert len(made.fs.list("rejected")) == rejected
