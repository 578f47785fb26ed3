"""`spool reserve`, `release` and `locks`, as a person and as a running task see them."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.client.spool.standing_requests import Reserving
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import SpoolError, WaitTimeout
from tests.cli.command import leader, make, opened, spool, told
from tests.cli.test_verbs import put, requests

CLAIM = "claimed/w-0001/5000.0000000001-1.busy.a1f0c0d.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A spool in which a task runs that locks src/."""
    root = make(tmp_path / "s")
    put(root, CLAIM, {"id": "busy", "command": ["x"], "locks": {"write": ["src/"]}})
    opened(root, "w-0001")
    return root


@pytest.fixture
def led(root: Path) -> Iterator[Path]:
    """The same, with a leader that goes on step after step."""
    master, over = leader(root), threading.Event()

    def steps() -> None:
        while not over.wait(0.05):
            master.step()
        master.close()

    thread = threading.Thread(target=steps)
    thread.start()
    yield root
    over.set()
    thread.join()


def test_what_is_free_is_reserved_shown_and_given_back(led: Path) -> None:
    done = spool(led, "reserve", "docs/", "repo:main", "--ttl", "5m", "--reason", "I rebase")
    assert done.exit_code == 0, done.output
    name = done.stdout.strip()
    shown = spool(led, "locks").stdout
    assert "task busy on w-0001" in shown
    assert f"reservation {name} of " in shown
    assert "write docs/**, write repo:main" in shown
    (row,) = [row for row in told(led, "locks")["holders"] if row.get("reservation") == name]
    assert (row["granted"], row["reason"], row["write"]) == (True, "I rebase", ["docs/**", "repo:main"])
    assert spool(led, "release", "nobodys").exit_code == 4
    assert "1 reservation given back" in spool(led, "release", name).stderr
    with SpoolClient(led) as client:
        while client.release():
            time.sleep(0.02)  # the leader has not taken it away yet
    assert "no reservation is yours" in spool(led, "release").stderr
    again = spool(led, "release", name)
    assert again.exit_code == 2, again.output
    assert f"reservation {name} is over: " in again.stderr
    assert " gave it back at 20" in again.stderr
    with SpoolClient(led) as client, pytest.raises(SpoolError, match=f"reservation {name} is over"):
        client.release(name)


def test_a_reservation_that_ended_by_itself_is_said_to_be_over_since_then(led: Path) -> None:
    name = spool(led, "reserve", "docs/", "--ttl", "3s").stdout.strip()
    with SpoolClient(led) as client:
        while name in client.reserved():
            time.sleep(0.02)
    again = spool(led, "release", name)
    assert again.exit_code == 2, again.output
    assert f"reservation {name} is over: it ended by itself at 20" in again.stderr


def test_what_is_held_is_waited_for_or_not(led: Path) -> None:
    done = spool(led, "reserve", "--read", "src/a", "--no-wait", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["behind"] == "busy"
    assert "busy holds some of it" in done.stderr
    assert spool(led, "reserve", "src/a", "--timeout", "0.2s").exit_code == 124
    with SpoolClient(led) as client:
        ended = [False]

        def look(_: float) -> None:
            """While it waits, what it waits for ends."""
            if not ended[0]:
                (led / CLAIM).rename(led / "completed/busy.1.w-0001.json")
                ended[0] = True

        assert Reserving(client).reserve("src/a", sleep=look).granted
        assert client.locks()["holders"][0]["write"] == ["src/a"]
        name = client.locks()["holders"][0]["reservation"]
        (led / f"control/{next(file.name for file in (led / 'control').iterdir() if name in file.name)}").unlink()


def test_one_that_another_person_ends_is_an_error(led: Path) -> None:
    def end(_: float) -> None:
        for file in (led / "control").glob("reserve.*"):
            file.unlink(missing_ok=True)

    with SpoolClient(led) as client:
        with pytest.raises(SpoolError, match="ended before it was granted"):
            Reserving(client).reserve("src/a", sleep=end)
        with pytest.raises(WaitTimeout):
            client.reserve("src/a", timeout=0.1)


def test_wrong_patterns_and_times_are_named(root: Path) -> None:
    assert (
        "goes up with '..'"
        in str(spool(root, "reserve", "../x").exception or "") + spool(root, "reserve", "../x").output
    )
    assert spool(root, "reserve", "x", "--ttl", "2d3").exit_code == 2
    with SpoolClient(root) as client:
        with pytest.raises(SpoolError, match="max_reserve_s"):
            client.reserve("x", ttl_s=10**6)
        with pytest.raises(SpoolError, match="nothing to reserve"):
            client.reserve()
        assert client.locks() == {"held": 0, "waiting": 0, "holders": [], "waiters": []}
    assert "no task holds a lock" in spool(root, "locks").stdout


def test_within_a_task_it_carries_the_task_and_only_its_own_are_given_back(
    led: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spool(led, "reserve", "lib/").exit_code == 0
    for name, value in (("SPOOL_TASK_ID", "busy"), ("SPOOL_ATTEMPT", "1"), ("SPOOL_ROOT", str(led))):
        monkeypatch.setenv(name, value)
    assert spool(led, "reserve", "src/x").exit_code == 0, "its own task does not stand in the way"
    targets = [target for verb, target in requests(led) if verb == "reserve"]
    assert sorted(targets) == ["+all", "busy"]
    assert "1 reservation given back" in spool(led, "release").stderr
    monkeypatch.setenv("SPOOL_ROOT", "/elsewhere")
    assert "1 reservation given back" in spool(led, "release").stderr


def test_explain_and_ls_say_who_holds(led: Path) -> None:
    put(led, "pending/wants.json", {"id": "wants", "command": ["x"], "locks": {"read": ["src/a"]}})
    with SpoolClient(led) as client:
        while not client.locks()["waiters"]:
            time.sleep(0.02)
    shown = spool(led, "explain", "wants").stdout
    assert "it waits for the lock read src/a, and src/** is held by task busy on w-0001" in shown
    assert "1 task in line" in shown
    assert "it goes on when that task has ended" in shown
    assert "read src/a" in spool(led, "ls", "--long").stdout
    assert "wants" in spool(led, "locks").stdout
