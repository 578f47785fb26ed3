"""Goal: however many clients ask, the share is looked at once an interval; only this machine's clients are served."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from spoold.faces.metrics.endpoint import AT_ONCE, Page, Server
from spoold.protocol.errors import SpoolError, Unavailable
from tests.e2e.pool import wait_for


@contextmanager
def served(page: Page, address: str = "127.0.0.1") -> Iterator[Server]:
    with Server(page, address, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: Server, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.server_address[1]), timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def answers(server: Server) -> bool:
    with suppress(http.client.RemoteDisconnected, ConnectionError):
        return ask(server) == (200, "page\n")
    return False


def test_a_storm_of_scrapes_costs_one_look_an_interval() -> None:
    now, looks = [0.0], []

    def look() -> str:
        looks.append(now[0])
        return f"look {len(looks)}\n"

    with served(Page(look, now=lambda: now[0], every_s=5)) as server, ThreadPoolExecutor(16) as many:
        assert set(many.map(lambda _: ask(server), range(200))) == {(200, "look 1\n")}
        now[0] = 4.9
        assert ask(server) == (200, "look 1\n")
        now[0] = 5.0
        assert set(many.map(lambda _: ask(server), range(200))) == {(200, "look 2\n")}
    assert looks == [0.0, 5.0]


def test_a_share_that_cannot_be_read_is_an_error_and_is_not_asked_again_at_once() -> None:
    now, looks = [0.0], []

    def look() -> str:
        looks.append(now[0])
        if len(looks) == 1:
            raise OSError(5, "Input/output error")
        if len(looks) == 2:
            raise Unavailable("it is not mounted.")
        return "well\n"

    page = Page(look, now=lambda: now[0], every_s=5)
    with served(page) as server:
        for _ in range(3):
            assert ask(server) == (503, "the share cannot be read: Input/output error.\n")
        now[0] = 5.0
        assert ask(server) == (503, "it is not mounted.\n")
        now[0] = 10.0
        assert ask(server) == (200, "well\n")
    assert looks == [0.0, 5.0, 10.0]


def test_a_look_that_hangs_holds_one_client_and_the_others_are_told() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def look() -> str:
        begun.set()
        assert go_on.wait(20)
        return "late\n"

    with served(Page(look, patience_s=0.05)) as server, ThreadPoolExecutor(1) as first:
        waits = first.submit(ask, server)
        assert begun.wait(20)
        assert ask(server) == (503, "the share has not answered for 0.05 s.\n")
        go_on.set()
        assert waits.result(20) == (200, "late\n")


def test_it_answers_this_machine_and_nothing_but_reading() -> None:
    with served(Page(lambda: "page\n")) as server:
        port = server.server_address[1]
        assert server.url == f"http://127.0.0.1:{port}/metrics"
        assert ask(server) == (200, "page\n")
        assert ask(server, method="HEAD") == (200, "")
        assert ask(server, "/metrics?x=1", Host=f"localhost:{port}") == (200, "page\n")
        assert ask(server, Host=f"[::1]:{port}") == (200, "page\n")
        assert ask(server, "/")[0] == 404
        assert ask(server, Host="evil.example")[0] == 403
        assert ask(server, Host="127.0.0.1.evil.example")[0] == 403
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert ask(server, method=method)[0] == 501


def test_silent_clients_do_not_keep_the_server_from_others_for_ever() -> None:
    with served(Page(lambda: "page\n")) as server:
        address = ("127.0.0.1", int(server.server_address[1]))
        silent = [http.client.HTTPConnection(*address, timeout=20) for _ in range(AT_ONCE)]
        for one in silent:
            one.connect()
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            ask(server)
        for one in silent:
            one.request("GET", "/metrics")
            assert one.getresponse().read() == b"page\n"
            one.close()
        wait_for(lambda: answers(server), "a place is free again")


def test_an_address_that_cannot_be_used_is_an_error() -> None:
    page = Page(lambda: "")
    with pytest.raises(SpoolError, match="is no IP address"):
        Server(page, "localhost", 0)
    with Server(page, "127.0.0.1", 0) as taken, pytest.raises(SpoolError, match="--port 0 takes any"):
        Server(page, "127.0.0.1", int(taken.server_address[1]))
