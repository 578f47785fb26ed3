"""Goal: nothing of a run is left behind, also not of one that was killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spoold.doctor import trial_share
from spoold.doctor.trial_share import Share
from spoold.system.host import FakeHost, FakeMachine
from tests.cli.command import make
from tests.doctor.examination import files_in


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "s")


def crash(root: Path, node: str, host: FakeHost) -> None:
    """A run that was killed in the middle of everything."""
    share = Share(str(root))
    run = trial_share.opened(share, node, host)
    room = run.__enter__()
    share.mkdir(f"{room}/deep")
    share.write(f"{room}/deep/file", b"", durable=False)
    share.write(f"ready/{trial_share.HOPPING}{node}", b"", durable=False)
    share.write(f"doctor/{trial_share.HERE}{node}.3", b"", durable=False)
    share.mkdir(f"doctor/{trial_share.GROUP}{node}.0")
    _KEPT.append(run)  # a generator that is collected would tidy up after all


_KEPT: list[object] = []


def test_what_a_run_made_goes_with_it_also_when_it_is_interrupted(root: Path) -> None:
    before, share = files_in(root), Share(str(root))
    run = trial_share.opened(share, "doctor-a", FakeHost())
    room = run.__enter__()
    share.mkdir(f"{room}/deep")
    share.write(f"{room}/deep/file", b"", durable=False)
    share.write(f"ready/{trial_share.HOPPING}doctor-a", b"", durable=False)
    assert run.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None) is False
    assert files_in(root) == before


def test_what_a_run_left_whose_process_is_gone_from_this_host_goes_at_once(root: Path) -> None:
    host = FakeHost()
    dead = host.another()
    crash(root, "doctor-dead", dead)
    dead.die()
    with trial_share.opened(Share(str(root)), "doctor-a", host):
        pass
    assert not list(root.rglob("*doctor-dead*"))


class Mounted(Share):
    """A share that other machines mount, too."""

    remote = True


def test_on_a_share_a_run_whose_process_is_not_found_may_go_on_on_a_twin(root: Path) -> None:
    """Machines that were resumed from one image have one identity, and neither finds the other's processes."""
    host = FakeHost()
    twin = FakeHost(machine=FakeMachine(host.identity())).another()
    with trial_share.opened(Mounted(str(root)), "doctor-a", host) as room:
        before = sorted(root.rglob("*doctor-a*"))
        with trial_share.opened(Mounted(str(root)), "doctor-b", twin):
            assert sorted(root.rglob("*doctor-a*")) == before
        for path in [root / room, *(root / room).iterdir()]:
            os.utime(path, (0, 0))
        with trial_share.opened(Mounted(str(root)), "doctor-b", twin):
            assert not list(root.rglob("*doctor-a*"))


def test_what_another_host_left_goes_when_it_is_old_and_not_before(root: Path) -> None:
    crash(root, "doctor-far", FakeHost("elsewhere"))
    found = sorted(root.rglob("*doctor-far*"))
    with trial_share.opened(Share(str(root)), "doctor-a", FakeHost("here")):
        assert sorted(root.rglob("*doctor-far*")) == found
    for path in [*found, *(root / "doctor").rglob("*")]:
        os.utime(path, (0, 0))
    with trial_share.opened(Share(str(root)), "doctor-a", FakeHost("here")):
        assert not list(root.rglob("*doctor-far*"))


def test_a_directory_that_is_no_spool_is_left_as_it_was_unless_another_run_is_in_it(tmp_path: Path) -> None:
    share = Share(str(tmp_path))
    with trial_share.opened(share, "doctor-a", FakeHost()), trial_share.opened(share, "doctor-b", FakeHost()):
        assert sorted(os.listdir(tmp_path / "doctor")) == ["run.doctor-a", "run.doctor-b"]
    assert files_in(tmp_path) == []
