"""What a daemon says to systemd, read from the other end of a real socket."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.daemon.processes import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """The manager's socket, and its address as NOTIFY_SOCKET gives it."""
    address = str(tmp_path / "notify") if request.param == "path" else f"@spoold-test-{os.getpid()}-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        server.settimeout(5)
        yield server, address


def test_every_message_arrives_as_the_manager_expects_it(manager: tuple[socket.socket, str]) -> None:
    server, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    assert notifier.ready()
    assert notifier.status("leads, epoch 7")
    assert notifier.watchdog()
    assert notifier.stopping()
    heard = [server.recv(4096) for _ in range(4)]
    assert heard == [b"READY=1", b"STATUS=leads, epoch 7", b"WATCHDOG=1", b"STOPPING=1"]


def test_a_status_cannot_smuggle_in_a_second_message(manager: tuple[socket.socket, str]) -> None:
    server, address = manager
    assert Notifier({"NOTIFY_SOCKET": address}).status("fine\nMAINPID=1\n" + "x" * 1000 + "\udcff")
    heard = server.recv(4096).decode()
    assert heard.startswith("STATUS=fine MAINPID=1 xxx")
    assert "\n" not in heard
    assert len(heard) < 320


def test_a_manager_that_has_gone_or_never_was_is_no_error(tmp_path: Path) -> None:
    for address in (str(tmp_path / "nobody"), str(tmp_path / ("long" * 50)), "vsock:2:1234", "/with\0zero"):
        assert not Notifier({"NOTIFY_SOCKET": address}).ready()
    assert not Notifier({}).watchdog()


def test_a_manager_that_does_not_read_cannot_stop_the_daemon(manager: tuple[socket.socket, str]) -> None:
    _, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    told = [notifier.watchdog() for _ in range(10_000)]
    assert told[0]
    assert not told[-1]


def test_tasks_inherit_nothing_that_lets_them_speak_for_the_daemon() -> None:
    environ = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "HOME": "/home/me"}
    Notifier(environ)
    assert environ == {"HOME": "/home/me"}


@pytest.mark.parametrize(
    ("environ", "interval_s"),
    [
        ({"WATCHDOG_USEC": "120000000"}, 60.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": str(os.getpid())}, 60.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": str(os.getpid() + 1)}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "9" * 5000}, None),
        ({}, None),
    ],
)
def test_the_watchdog_interval_is_half_of_what_is_allowed(environ: dict[str, str], interval_s: float | None) -> None:
    assert Notifier(environ).watchdog_interval_s() == interval_s
