"""The way out of a sandbox: to the hosts of a list, and nowhere else."""

from __future__ import annotations

import errno
import os
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from spoold.agents.sandbox import proxy as proxy_module
from spoold.agents.sandbox import sandbox_policy
from spoold.agents.sandbox.launch import entered
from spoold.agents.sandbox.proxy import Proxy, variables
from spoold.agents.sandbox.relay import PORT, copy
from spoold.agents.sandbox.sandbox_policy import SandboxPolicy
from tests.agents.sandbox.stage import Stage


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that says back what it heard, once a client has ended; its port on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            while True:
                try:
                    near, _ = door.accept()
                except OSError:
                    return
                with near:
                    heard = b""
                    while data := near.recv(65536):
                        heard += data
                    near.sendall(heard[::-1])

        threading.Thread(target=serve, daemon=True).start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)


def ask(path: str, text: bytes) -> bytes:
    """What the proxy answers to this, up to its end."""
    with socket.socket(socket.AF_UNIX) as near:
        near.settimeout(20)
        near.connect(path)
        near.sendall(text)
        near.shutdown(socket.SHUT_WR)
        answer = b""
        while data := near.recv(65536):
            answer += data
        return answer


def test_it_passes_on_what_its_list_has(echo: int) -> None:
    with Proxy([f"localhost:{echo}"]) as proxy:
        answer = ask(proxy.path, b"CONNECT LocalHost:%d HTTP/1.1\r\nHost: x\r\n\r\nabc" % echo)
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\ncba"
        assert proxy.refused == ()


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"CONNECT 127.0.0.1:%d HTTP/1.1", b"403"),  # the list has the name, and not the address
        (b"CONNECT localhost:1 HTTP/1.1", b"403"),
        (b"CONNECT metadata.internal:%d HTTP/1.1", b"403"),
        (b"CONNECT [::1]:%d HTTP/1.1", b"403"),
        (b"GET http://localhost:%d/ HTTP/1.1", b"405"),
        (b"CONNECT local host HTTP/1.1", b"400"),
        (b"CONNECT a:b:c HTTP/1.1", b"400"),
        (b"CONNECT \xff:443 HTTP/1.1", b"400"),
        (b"CONNECT localhost HTTP/1.1", b"400"),  # without a port, as RFC 9110 has it
        (b"CONNECT localhost:%d", b"400"),
        (b"CONNECT localhost:%d HTTP/2.0", b"400"),
    ],
)
def test_it_refuses_everything_else(echo: int, line: bytes, status: bytes) -> None:
    with Proxy([f"localhost:{echo}"]) as proxy:
        answer = ask(proxy.path, (line % echo if b"%d" in line else line) + b"\r\n\r\n")
        assert answer.split()[1] == status


def test_it_says_what_it_refused() -> None:
    with Proxy(["api.example.com"]) as proxy:
        for _ in range(2):
            ask(proxy.path, b"CONNECT evil.example.com:443 HTTP/1.1\r\n\r\n")
        [said] = proxy.refused
    why, _, fix = said.partition(" Fix: ")
    assert why == "evil.example.com:443 is not in the list of hosts of this sandbox."
    assert fix == 'add "evil.example.com" to hosts in the sandbox of the profile'


def test_a_name_that_leads_into_this_network_is_refused(monkeypatch: pytest.MonkeyPatch, echo: int) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", echo))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *words, **more: found)
    with Proxy([f"api.example.com:{echo}"]) as proxy:
        answer = ask(proxy.path, b"CONNECT api.example.com:%d HTTP/1.1\r\n\r\n" % echo)
        assert b"403" in answer
        assert b"private network" in answer
        assert [one.partition(". Fix: ")[0] for one in proxy.refused] == [
            "api.example.com has an address of this machine or of a private network"
        ]


def test_it_says_what_it_did_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that has the host was blamed for a machine that looks up no name."""

    def resolve(host: str, port: int, *_: object, **__: object) -> list[object]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with Proxy(["api.example.com"]) as proxy:
        ask(proxy.path, b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
        [said] = proxy.refused
    why, _, fix = said.partition(" Fix: ")
    assert why == "api.example.com has no address: [Errno -2] Name or service not known."
    assert fix == "let this machine look that name up"


def test_a_host_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    with Proxy([f"localhost:{port}"]) as proxy:
        assert b"502" in ask(proxy.path, b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % port)


def test_an_endless_head_is_cut() -> None:
    with Proxy(["a.example.com"]) as proxy:
        assert ask(proxy.path, b"CONNECT " + b"a" * 100_000).split()[1] == b"431"
        assert b"405" in ask(proxy.path, b"GET / HTTP/1.1\r\n\r\n")


def test_a_head_that_drips_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte had 30 s of its own."""
    monkeypatch.setattr(proxy_module, "HEAD_S", 0.3)
    with Proxy(["a.example.com"]) as proxy, socket.socket(socket.AF_UNIX) as near:
        near.connect(proxy.path)
        near.settimeout(0.02)
        answer, until = b"", time.monotonic() + 10
        while not answer:
            assert time.monotonic() < until
            near.send(b"C")
            with suppress(TimeoutError):
                answer = near.recv(100)
        assert answer.split()[1] == b"408"


def test_a_full_proxy_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "AT_ONCE", 1)
    with (
        Proxy(["a.example.com"]) as proxy,
        socket.socket(socket.AF_UNIX) as first,
        socket.socket(socket.AF_UNIX) as near,
    ):
        first.connect(proxy.path)
        near.connect(proxy.path)
        near.settimeout(10)
        assert near.recv(1000).split()[1] == b"503"
        first.close()
        until = time.monotonic() + 10
        status = b"503"
        while status != b"405":
            assert status == b"503"
            assert time.monotonic() < until
            with suppress(BrokenPipeError):  # turned away before it asked
                status = ask(proxy.path, b"GET / HTTP/1.1\r\n\r\n").split()[1]


# What gets round a comparison of names: a string of C ends at NUL, `inet_aton` at a space, IDNA folds, a zone has %.
ODD = [
    "\0",
    " ",
    "\t",
    "\x0b",
    "\x0c",
    "\r",
    "\n",
    "%",
    "%00",
    "%lo",
    "/",
    "\\",
    "#",
    "?",
    "@",
    ":",
    "[",
    "]",
    ",",
    "*",
    "\x7f",
    "\x80",
]
ODD += [
    ".",
    "..",
    "-",
    "_",
    "xn--",
    "\xad",
    "\u3002",
    "\uff0e",
    "\u24d6",
    "\u212a",
    "\u0664",
    "a" * 63,
    "a" * 64,
    "a." * 130,
]
PLAIN = [
    "127.0.0.1",
    "8.8.4.4",
    "127.1",
    "0x7f.1",
    "2130706433",
    "::1",
    "[::1]",
    "[::ffff:8.8.4.4]",
    "localhost",
    "evil.example",
]
PLAIN += ["good.test", "t.test", ".t.test", "x.t.test", "a_b.t.test", "x.8.4.4", "8.1"]
LISTED = ["good.test", "*.t.test", "localhost:8377", "10.0.0.7:11434", "[fd00::1]:80"]


def host_like(chance: random.Random) -> bytes:
    """What a client may name: parts of names and addresses, with what does not belong between them."""
    parts = chance.choices(PLAIN, k=chance.randrange(3)) + chance.choices(["", "", ".t.test", ".t.test", "good.test"])
    for _ in range(chance.choice([0, 0, 1, 2])):
        parts.insert(chance.randrange(len(parts) + 1), chance.choice(ODD))
    text = "".join(parts).encode(chance.choice(["utf-8", "utf-16-le"]) if chance.random() < 0.1 else "utf-8")
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + bytes([chance.randrange(256)]) + text[at:]
    return text


def is_well_formed(name: str) -> bool:
    """The law in other words than in the code: RFC 1123 with `_`, and no other way to write an address."""
    labels = name.split(".")
    if not 0 < len(name) <= 253 or not all(0 < len(label) <= 63 for label in labels):
        return False
    fine = all(not set(label) - set("abcdefghijklmnopqrstuvwxyz0123456789-_") for label in labels)
    return fine and not any(label[0] == "-" or label[-1] == "-" for label in labels) and not labels[-1].isdigit()


@pytest.mark.parametrize("seed", range(4))
def test_only_a_name_as_the_list_has_it_is_resolved(
    seed: int, monkeypatch: pytest.MonkeyPatch, caught: list[BaseException]
) -> None:
    """`8.8.4.4`, NUL and `.t.test` fitted `*.t.test`, and the resolver saw only what stands before the NUL."""
    asked: list[str] = []

    def resolve(host: str, port: int, *_: object, **__: object) -> list[object]:
        asked.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    chance = random.Random(seed)
    entries = tuple(map(sandbox_policy.entry, LISTED))
    with Proxy(LISTED) as proxy:
        resolved = 0
        for _ in range(1500):
            asked.clear()
            named, port = host_like(chance), chance.choice([443, 8377, 80])
            status = ask(proxy.path, b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (named, port)).split()[1]
            assert status in (b"400", b"403", b"502"), named
            assert len(asked) == (status == b"502"), named
            for host in asked:
                assert is_well_formed(host) or host in ("10.0.0.7", "fd00::1"), (named, host)
                assert named.decode("ascii").lower().removesuffix(".").strip("[]") == host, (
                    "nothing was cut or folded"
                )
                assert sandbox_policy.lets_through(host, port, entries)
                resolved += 1
        assert resolved > 10
    assert all(one.isprintable() for one in proxy.refused)
    assert caught == []


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What ended a thread, and would be a traceback in the log of a task."""
    found: list[BaseException] = []

    def catch(args: threading.ExceptHookArgs) -> None:
        assert args.exc_value is not None
        found.append(args.exc_value)

    monkeypatch.setattr(threading, "excepthook", catch)
    return found


@pytest.mark.parametrize("whose", [(socket.socket, "accept"), (threading.Thread, "start")])
def test_a_full_machine_does_not_end_it(
    whose: tuple[type, str], monkeypatch: pytest.MonkeyPatch, caught: list[BaseException]
) -> None:
    with Proxy(["a.example.com"]) as proxy:
        assert b"405" in ask(proxy.path, b"GET / HTTP/1.1\r\n\r\n")
        true, left = getattr(*whose), [OSError(errno.EMFILE, "Too many open files"), RuntimeError("no new thread")]

        def fail(own: object) -> object:
            error = left[whose[1] == "start"] if len(left) == 2 else None
            if error is None:
                return true(own)
            left.pop()
            raise error

        monkeypatch.setattr(*whose, fail)
        answers = []
        for _ in range(3):  # the first was waited for already
            with suppress(ConnectionError):
                answers.append(ask(proxy.path, b"GET / HTTP/1.1\r\n\r\n"))
        assert b"405" in answers[-1]
        assert len(left) == 1, "it has failed once"
    assert caught == []


@pytest.mark.parametrize(
    "host",
    [b".t.test", b"a..t.test", b"a" * 64 + b".t.test", b"8.8.4.4\0.t.test", b"a." * 126 + b".t.test", b"xn--.t.test"],
)
def test_what_is_no_name_is_a_bad_request(host: bytes, caught: list[BaseException]) -> None:
    """The codec of Python raised for the first three."""
    with Proxy(["*.t.test"]) as proxy:
        answer = ask(proxy.path, b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % host)
        assert answer.split()[1] == b"400"
        assert b"host name" in answer.partition(b"\r\n\r\n")[2]
    assert caught == []


LINES = [b"CONNECT", b"connect", b"GET", b"POST", b"PRI", b"", b"\x05\x01\0", b"\x16\x03\x01", b"\0"]
GAPS = [b" ", b"", b"\t", b"  ", b"\r", b"\n", b"\0"]
ENDS = [b"\r\n\r\n", b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b"\r\n", b"", b"\r\n\r\nabc", b"\r\n\r\n" + b"x" * 70_000]


@pytest.mark.parametrize("seed", range(4))
def test_every_request_gets_an_answer(seed: int, caught: list[BaseException], echo: int) -> None:
    chance = random.Random(seed)
    with Proxy([*LISTED, f"localhost:{echo}"]) as proxy:
        for _ in range(400):
            words = [chance.choice(LINES), host_like(chance) + b":%d" % chance.randrange(100_000)]
            words += [chance.choice([b"HTTP/1.1", b"HTTP/1.1", b"HTTP/9.9", b"", b"HTTP/1.1\r\nX: \xff\0"])]
            request = b"".join(word + chance.choice(GAPS) for word in words[:-1]) + words[-1] + chance.choice(ENDS)
            answer = ask(proxy.path, request)
            assert re.match(rb"HTTP/1\.1 (?:400|403|405|408|502) ", answer), (request, answer)
        assert b"cba" in ask(proxy.path, b"CONNECT localhost:%d HTTP/1.1\r\n\r\nabc" % echo)
    assert caught == []


@pytest.mark.parametrize(
    ("entry", "host", "port", "fits"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "xapi.example.com", 443, False),
        ("api.example.com", "a.api.example.com", 443, False),
        ("api.example.com", "api.example.com", 22, False),
        ("api.example.com:8443", "api.example.com", 8443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("10.0.0.7:11434", "10.0.0.7", 11434, True),
        ("[fd00::1]:80", "fd00::1", 80, True),
    ],
)
def test_what_an_entry_stands_for(entry: str, host: str, port: int, fits: bool) -> None:
    assert sandbox_policy.entry(entry).fits(host, port) is fits


@pytest.mark.parametrize(
    ("host", "address", "may"),
    [
        ("api.example.com", "93.184.216.34", True),
        ("api.example.com", "10.0.0.1", False),
        ("api.example.com", "169.254.169.254", False),
        ("api.example.com", "::ffff:10.0.0.1", False),
        ("api.example.com", "fe80::1%eth0", False),
        ("localhost", "127.0.0.1", True),
        ("localhost", "93.184.216.34", False),
        ("10.0.0.7", "10.0.0.7", True),
    ],
)
def test_which_addresses_a_name_may_have(host: str, address: str, may: bool) -> None:
    assert sandbox_policy.may_connect(host, address) is may


CLIENT = """
import os, socket
for host in ("localhost", "elsewhere.example.com"):
    s = socket.create_connection(("127.0.0.1", int(os.environ["HTTPS_PROXY"].rpartition(":")[2])), 20)
    s.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\n\\r\\n" % (host.encode(), int(os.environ["PORT"])))
    head = s.recv(100)
    s.sendall(b"hello")
    s.shutdown(socket.SHUT_WR)
    print(head.split()[1].decode(), s.recv(100).decode().strip())
s = socket.socket()
print(s.connect_ex(("127.0.0.1", int(os.environ["PORT"]))) != 0)
raise SystemExit(7)
"""


def test_from_within_a_sandbox(stage: Stage, echo: int) -> None:
    if stage.uid != os.geteuid():
        pytest.skip("the program within runs with this Python, which may lie where only this user can read")
    stage.variables["PORT"] = str(echo)
    sandbox = SandboxPolicy("bwrap", network="proxy", hosts=(f"localhost:{echo}",))
    with entered(sandbox, stage.scene()) as inside:
        said = stage.python(CLIENT, sandbox, way_out=inside.scene.way_out)
        assert said.splitlines()[0] == "200 olleh"
        assert said.splitlines()[1].startswith("403")
        assert said.splitlines()[2] == "True"
        [refused] = inside.refused
        assert refused.startswith(f"elsewhere.example.com:{echo} is not in the list of hosts of this sandbox. ")
        assert stage.code == 7


def test_an_answer_comes_through_though_its_sender_takes_no_more() -> None:
    """A full proxy says 503 and closes: what the client still sent shut both ends, and the answer was gone."""
    near, inner = socket.socketpair()
    outer, far = socket.socketpair()
    with near, inner, outer, far:
        far.sendall(b"503")
        far.shutdown(socket.SHUT_RD)
        near.sendall(b"CONNECT a.example.com:443 HTTP/1.1\r\n\r\n")
        copy(inner, outer)  # as the thread does that is first
        far.close()
        copy(outer, inner)
        near.settimeout(10)
        assert near.recv(100) == b"503"
        assert near.recv(100) == b""


def test_a_client_that_is_gone_takes_no_more_from_the_other_side() -> None:
    near, inner = socket.socketpair()
    outer, far = socket.socketpair()
    with inner, outer, far:
        near.close()
        far.sendall(b"x" * 1000)
        back = threading.Thread(target=copy, args=(outer, inner), daemon=True)
        back.start()
        copy(inner, outer)
        far.settimeout(10)
        with suppress(BrokenPipeError):
            while back.is_alive():
                far.sendall(b"x" * 1000)
        far.shutdown(socket.SHUT_WR)
        back.join(10)
        assert not back.is_alive()


def test_programs_find_it() -> None:
    assert variables(PORT)["https_proxy"] == f"http://127.0.0.1:{PORT}"
    assert variables(PORT)["NO_PROXY"] == ""
