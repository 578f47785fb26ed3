"""The one token: taken, renewed, doubted, lost, resigned."""

import errno

import pytest

from tests.support.cluster import Cluster
from tests.support.faults import How


def token(made: Cluster) -> list[str]:
    """What stands in master/."""
    return sorted(made.fs.list("master"))


def leaders(made: Cluster) -> list[str]:
    """Who takes itself for the leader."""
    return [name for name, node in made.nodes.items() if node.master.leading]


def two(settings: str = "") -> Cluster:
    """A leader and a standby."""
    made = Cluster(settings)
    for name in ("m1", "m2"):
        made.master(name)
        made.step(name)
    assert leaders(made) == ["m1"]
    return made


def test_the_token_is_renewed_by_rename_and_only_when_it_is_due() -> None:
    made = two()
    for _ in range(3):
        made.step("m1")
    assert token(made) == ["1.m1.0"]
    made.advance(2)
    assert token(made) == ["1.m1.0"]
    made.advance(1)
    assert token(made) == ["1.m1.1"]
    made.advance(20)
    assert leaders(made) == ["m1"]
    assert token(made)[0].startswith("1.m1.")


def test_without_a_token_nobody_leads_and_nothing_is_made_up() -> None:
    made = Cluster()
    made.fs.unlink("master/0.nobody.0")
    made.master("m1")
    made.advance(60)
    assert leaders(made) == []
    assert token(made) == []


def test_the_highest_token_counts_and_foreign_files_do_not() -> None:
    made = Cluster()
    for name in ("3.other.7", "notes.txt"):
        made.fs.write(f"master/{name}", b"", durable=False)
    made.master("m1")
    made.advance(10)
    assert leaders(made) == []
    made.advance(10)
    assert leaders(made) == ["m1"]
    assert "4.m1.1" in token(made)


def test_of_two_standbys_one_takes_over() -> None:
    made = two()
    made.master("m3")
    made.step("m3")
    made.crash("m1")
    made.advance(14)
    assert leaders(made) == []
    made.during("m2", "rename", "master/", lambda: made.step("m3"))
    made.advance(6)
    assert len(leaders(made)) == 1
    assert len(token(made)) == 1
    assert token(made)[0].startswith("2.")


def forgetting() -> Cluster:
    """A master at a share whose server may forget, with its power, what it has answered for."""
    made = Cluster(remote=True)
    made.fs.forgets = True
    made.master("m1")
    return made


def test_a_leader_whose_token_was_forgotten_before_it_led_has_not_led() -> None:
    made = forgetting()
    made.during("m1", "write", "tmp/m1/", lambda: made.fs.rename("master/1.m1.0", "master/0.nobody.0"))
    made.step("m1")
    assert leaders(made) == []
    assert made.fs.list("admitting") == []
    made.step("m1")
    assert leaders(made) == ["m1"]
    assert token(made) == ["1.m1.0"]


@pytest.mark.parametrize(("code", "led"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_only_a_full_share_is_led_without_a_durable_file(code: int, led: bool) -> None:
    made = forgetting()
    made.nodes["m1"].fs.fail("write", "tmp/m1/", code)
    made.step("m1")
    assert bool(made.fs.list("admitting")) == led
    made.advance(3)
    assert made.fs.list("admitting")


@pytest.mark.parametrize("how", ["refused", "done", "late"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ENOENT, errno.ETIMEDOUT])
def test_a_renewal_in_doubt_is_settled_by_looking(how: How, code: int) -> None:
    made = two()
    made.pass_time(3)
    mount = made.nodes["m1"].fs
    mount.fail("rename", "master/", code, how)
    made.step("m1")
    mount.deliver()
    made.step("m1")
    assert leaders(made) == ["m1"]
    assert len(token(made)) == 1
    made.advance(20)
    assert leaders(made) == ["m1"]


def test_a_leader_whose_renewal_is_unverified_plans_nothing() -> None:
    made = two()
    made.pass_time(3)
    made.nodes["m1"].fs.fail("rename", "master/", errno.EIO, times=100)
    made.submit("a.json", '{"id": "a", "command": ["x"]}')
    made.step("m1")
    assert leaders(made) == []
    assert made.fs.list("pending") == ["a.json"]


def test_a_renewal_that_comes_late_finds_its_source_gone() -> None:
    made = two()
    made.pass_time(3)
    mount = made.nodes["m1"].fs
    mount.fail("rename", "master/", errno.EIO, "late", times=1)
    made.step("m1")
    made.nodes["m1"].frozen = True
    made.advance(20)
    assert leaders(made) == ["m2"]
    assert mount.deliver() == 0
    made.nodes["m1"].frozen = False
    made.settle()
    assert leaders(made) == ["m2"]
    assert len(token(made)) == 1


def test_a_standby_that_cannot_look_has_proved_nothing() -> None:
    made = two()
    made.nodes["m2"].fs.off = True
    made.crash("m1")
    made.advance(60)
    made.nodes["m2"].fs.off = False
    made.advance(10)
    assert leaders(made) == []
    made.advance(8)
    assert leaders(made) == ["m2"]


def test_a_standby_that_slept_has_proved_nothing() -> None:
    made = two()
    made.pass_time(1000)
    made.step("m2")
    assert leaders(made) == ["m1"]
    made.step("m1")
    made.advance(20)
    assert leaders(made) == ["m1"]


def test_a_holder_that_is_gone_from_this_host_need_not_be_waited_for() -> None:
    made = Cluster()
    made.master("m1", host="server")
    made.step("m1")
    made.master("m2", host="server")
    made.step("m2")
    made.crash("m1")
    made.advance(2)
    assert leaders(made) == ["m2"]


def test_a_leader_whose_every_step_fails_makes_room_for_another() -> None:
    made = two()
    made.nodes["m1"].fs.fail("list", "pending", errno.EACCES, times=100_000)
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.advance(120)
    assert leaders(made) == ["m2"]
    assert made.state("a") == "ready"


def test_a_leader_who_was_hindered_for_a_moment_stays_the_leader() -> None:
    made = two()
    for _ in range(4):
        made.nodes["m1"].fs.fail("list", "pending", errno.EACCES, times=3)
        made.advance(10)
    assert leaders(made) == ["m1"]
    assert token(made)[0].startswith("1.m1.")


def test_alone_with_its_trouble_a_leader_comes_back_when_it_is_over() -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    made.nodes["m1"].fs.fail("list", "pending", errno.EACCES, times=100_000)
    made.advance(120)
    made.nodes["m1"].fs.faults.clear()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.advance(60)
    assert leaders(made) == ["m1"]
    assert made.state("a") == "ready"


def test_who_resigns_gives_the_token_to_nobody() -> None:
    made = two()
    made.stop("m1")
    assert token(made) == ["1.nobody.1"]
    made.step("m2")
    assert token(made) == ["2.m2.0"]
    assert made.fs.list("tmp") == ["m2"]


def test_resigning_never_fails_and_a_standby_has_nothing_to_resign() -> None:
    made = two()
    made.stop("m2")
    assert token(made) == ["1.m1.0"]
    made.nodes["m1"].fs.off = True
    made.nodes["m1"].master.close()
    assert token(made) == ["1.m1.0"]


def test_a_leader_taken_for_dead_is_shut_out() -> None:
    made = two("[heartbeat]\ninterval_s = 1\nmisses = 2\n")
    made.nodes["m1"].frozen = True
    made.advance(20)
    made.nodes["m1"].frozen = False
    made.settle()
    assert made.gone["m1"].startswith("shut out")
    assert leaders(made) == ["m2"]


def test_a_spool_without_a_token_is_told_once_and_not_for_a_moment(caplog: pytest.LogCaptureFixture) -> None:
    made = Cluster()
    made.master("m1")
    made.master("m2")
    made.settle()
    (token,) = made.fs.list("master")
    made.fs.unlink(f"master/{token}")
    made.advance(2)
    assert "fsck" not in caplog.text
    made.advance(100)
    assert caplog.text.count("master/ has no token, so no master can lead") == 2
    made.fs.write("master/9.nobody.0", b"", durable=False)
    made.settle()
    assert any(node.master.leading for node in made.nodes.values())


@pytest.mark.parametrize("name", ["999999999999.other.0", "2176782335.nobody.0", f"3.m1.{10**15 - 1}"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_token_after_which_no_other_has_a_name_is_none(name: str, alone: bool) -> None:
    made = two()
    if alone:
        made.fs.rename("master/1.m1.0", f"master/{name}")
    else:
        made.fs.write(f"master/{name}", b"", durable=False)
    made.advance(40)
    assert len(leaders(made)) == (0 if alone else 1)
    assert made.gone == {}
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.advance(5)
    assert made.fs.list("pending") == (["a.json"] if alone else [])
