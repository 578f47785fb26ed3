"""Goal: whatever a page of another site, another program or a hostile task does, the server refuses it. Each hole
that a dashboard of another project had is tried here, by its number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from spoold.faces.web import security
from spoold.faces.web.security import BODY_MOST, SESSIONS_MOST, URL_MOST, Entrance, anchored, any_port
from tests.cli.test_verbs import end
from tests.web.browser import EVIL, HOST, OURS, PORT, Browser, opened, waiting

FORM = {"id": "w1", "set": "x"}


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with opened(tmp_path, actions=True) as found:
        yield found


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", f"evil.example:{PORT}", f"127.0.0.1.evil.example:{PORT}", f"localhost.evil.example:{PORT}"),
        *(f"x{HOST}", f"{HOST}x", "127.0.0.1", f"127.0.0.1:{PORT + 1}", "", f"{HOST}@evil.example", f"{HOST}/../"),
    ],
)
def test_cve_2022_30034_a_host_is_compared_as_a_whole_before_anything_is_read(browser: Browser, host: str) -> None:
    """Flower let in who matched a pattern without anchors. A rebound DNS name has another Host, too."""
    answer = browser.get("/", Host=host)
    assert answer.status_code == 421
    assert "evil" not in answer.text
    assert browser.get("/enter?token=" + browser.entrance.token(), Host=host).status_code == 421


def test_the_hosts_of_this_server_are_let_in(browser: Browser) -> None:
    for host in (HOST, f"localhost:{PORT}", f"[::1]:{PORT}", f"LOCALHOST:{PORT}"):
        assert browser.get("/", Host=host).status_code == 200, host
    assert anchored(["a:1"])(b"A:1")
    forwarded = any_port()
    assert all(map(forwarded, (b"localhost", b"localhost:8000", b"127.0.0.1:1", b"[::1]:65535")))
    assert not any(map(forwarded, (b"localhost:", b"localhost:123456", b"localhost.evil", b"xlocalhost", b"")))


def test_cve_2026_48710_a_host_that_is_said_twice_or_as_a_path_is_refused(browser: Browser) -> None:
    """Starlette was mistaken about Host, so it is judged before Starlette sees the request."""
    with_two = [("host", HOST), ("host", "evil.example")]
    assert browser.http.get("/", headers=with_two).status_code in (400, 421)


def test_cve_2022_51020_another_site_cannot_send_a_form(browser: Browser) -> None:
    """Flower's shutdown could be asked for by a page of another site."""
    waiting(browser.root, "w1")
    for said in (
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site", "Origin": f"http://127.0.0.1:{PORT + 1}"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{HOST}.evil.example"},
        {"Origin": f"https://{HOST}"},
        {},
    ):
        answer = browser.post("/act/cancel", FORM, said)
        assert (answer.status_code, said) == (403, said)
    assert browser.requests() == []
    assert browser.post("/act/cancel", FORM, {"Origin": f"http://{HOST}"}).status_code == 409  # its set is wrong
    assert browser.post("/act/cancel", FORM, {"Sec-Fetch-Site": "same-origin"}).status_code == 409


@pytest.mark.parametrize(
    "path", ["/", "/tasks", "/tasks/w1", "/tasks/w1/log/file", "/updates", "/act/cancel", "/static/x"]
)
def test_cve_2023_48022_without_the_cookie_nothing_is_answered(browser: Browser, path: str) -> None:
    """Ray had no authentication: whoever reached the port could run anything."""
    browser.http.cookies.clear()
    answer = browser.get(path)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "open the URL that `spool web` printed; Enter in its terminal prints a new one" in answer.text
    assert browser.post("/act/cancel", FORM).status_code == 401
    assert browser.requests() == []


@pytest.mark.parametrize(
    "method", ["DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "XYZ"]
)
def test_cve_2026_27482_only_three_methods_exist(browser: Browser, method: str) -> None:
    """Ray refused some methods by name, and had forgotten DELETE."""
    answer = browser.http.request(method, "/act/cancel", headers=OURS)
    if method != "get":  # the client writes it large
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert browser.requests() == []


def test_cve_2026_23528_no_error_page_repeats_markup(browser: Browser) -> None:
    """Dask's error page showed the path of the request as it came."""
    mark = "<script>alert(1)</script>"
    for path in (f"/{mark}", f"/tasks/{mark}", f"/tasks?sort={mark}", f"/tasks?cursor={mark}", f"/batch?name={mark}"):
        answer = browser.get(path)
        assert answer.status_code in (400, 404), path
        assert "<script>alert" not in answer.text
    for path in (
        f"/act/{mark}",
        f"/tasks?q={mark}",
        f"/events?event={mark}&task={mark}",
        f"/batch/{mark}.svg?name=x",
    ):
        assert "<script>alert" not in browser.get(path).text, path
    assert mark not in browser.post("/act/cancel", {"id": mark, "set": mark, "reason": mark}).text


def test_cve_2024_28179_a_websocket_is_never_accepted(browser: Browser) -> None:
    """jupyter-server-proxy asked nobody for a cookie on a websocket."""
    with pytest.raises(WebSocketDisconnect), browser.http.websocket_connect("/updates"):
        pass
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "x",
        "Sec-WebSocket-Version": "13",
    }
    browser.http.cookies.clear()
    assert browser.get("/updates", **upgrade).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        *("//etc/passwd", "/tasks/../x", "/tasks/%2e%2e/x", "/tasks/..%2f..%2fspool.toml", "/tasks/%2Fetc%2Fpasswd"),
        *("/static/..%5cserving.py", "/tasks/w1%00", "/./tasks", "/tasks/.", "/%0d%0aSet-Cookie:x", "/tasks//log"),
    ],
)
def test_tricks_with_paths_are_refused_before_routing(browser: Browser, path: str) -> None:
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/", "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"host", HOST.encode())],
    }  # fmt: skip
    assert browser.app._refuses(scope, dict(scope["headers"])) == (400, "the path is none of this server.")  # type: ignore[attr-defined]


def test_files_are_found_by_task_and_never_by_path(browser: Browser) -> None:
    (browser.root / "logs" / "secret.txt").write_text("XYZZY")
    for task in ("spool.toml", "logs", "secret.txt", "w1.1.w-aaaaa.log", "..", "CON"):
        answer = browser.get(f"/tasks/{task}/log/file")
        assert answer.status_code in (200, 400, 404)
        assert "XYZZY" not in answer.text
    assert browser.get("/static/x/page.css").status_code == 404
    assert browser.get(f"/static/{browser.site.edition}/serving.py").status_code == 404


def test_a_token_lets_in_once_and_leaves_the_url(browser: Browser) -> None:
    token = browser.entrance.token()
    browser.http.cookies.clear()
    head = browser.http.head(f"/enter?token={token}")
    assert (head.status_code, head.headers["allow"]) == (405, "GET")
    assert browser.get(f"/enter?token={token}", **{"Sec-Purpose": "prefetch"}).status_code == 405
    first = browser.get(f"/enter?token={token}")
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"spool_{PORT}=")
    assert cookie.partition("; ")[2] == "HttpOnly; SameSite=Strict; Path=/"
    browser.http.cookies.clear()
    assert browser.get(f"/enter?token={token}").status_code == 401
    assert browser.get("/enter?token=").status_code == 401
    assert browser.get("/enter?token=x&token=y").status_code == 401


def test_a_cookie_of_another_path_or_server_is_refused(browser: Browser) -> None:
    name, other = browser.entrance.cookie, Entrance(str(PORT + 1))
    strange = other.exchange(other.token())
    browser.http.cookies.clear()
    for cookie in (
        f"{other.cookie}={strange}",
        f"{other.cookie}={browser.cookie}",
        f"{name}={strange}",
        f"{name}={browser.cookie}; {name}=planted",
        f"{name}=planted; {name}={browser.cookie}",
        f"{name}=",
        f"{name}={browser.cookie}x",
        f"{name}={browser.cookie[:-1]}",
        name,
    ):
        assert browser.get("/", Cookie=cookie).status_code == 401, cookie
    assert browser.get("/", Cookie=f"a=b; {name}={browser.cookie}; c=d").status_code == 200


def test_so_many_browsers_and_tokens_are_remembered() -> None:
    entrance = Entrance("/run/x.sock")
    assert entrance.cookie.startswith("spool_")
    assert len(entrance.cookie) == 18
    old = entrance.token()
    for _ in range(4):
        entrance.token()
    assert entrance.exchange(old) is None
    values = [entrance.exchange(entrance.token()) for _ in range(SESSIONS_MOST + 1)]
    known = [entrance.knows([f"{entrance.cookie}={value}".encode()]) for value in values]
    assert known == [False] + [True] * SESSIONS_MOST


def test_another_site_reads_nothing_but_may_link(browser: Browser) -> None:
    assert browser.get("/tasks", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    follows = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert browser.get("/tasks", **follows).status_code == 200
    framed = {**follows, "Sec-Fetch-Dest": "iframe"}
    assert browser.get("/tasks", **framed).status_code == 403


def test_the_size_of_a_request_is_bounded(browser: Browser) -> None:
    assert browser.get("/tasks?q=" + "x" * URL_MOST).status_code == 414
    assert browser.get("/tasks?q=" + "x" * 600).status_code == 400
    assert browser.get("/tasks?" + "state=a&" * 200).status_code == 400
    large = browser.http.post("/act/cancel", content=b"x" * (BODY_MOST + 1), headers={**OURS, "Content-Type": FORMS})
    assert large.status_code == 413
    assert browser.http.post("/act/cancel", content=iter([b"a=b"]), headers=OURS).status_code == 411
    assert browser.http.post("/act/cancel", json={"id": "w1"}, headers=OURS).status_code == 415


FORMS = "application/x-www-form-urlencoded"


def test_without_allow_actions_there_are_no_actions(tmp_path: Path) -> None:
    with opened(tmp_path) as browser:
        waiting(browser.root, "w1")
        for verb in ("cancel", "retry", "pause", "drain", "approve"):
            assert browser.get(f"/act/{verb}?id=w1").status_code == 404
            assert browser.post(f"/act/{verb}", FORM).status_code in (404, 405)
        assert browser.post("/tasks/w1", FORM).status_code == 405
        assert browser.requests() == []


def test_every_answer_has_the_headers(browser: Browser) -> None:
    end(browser.root, "done")
    paths = ("/", "/nope", "/tasks", "/enter?token=x", "/tasks/done", "/static/x/y", "//", "/tasks/done/log/file")
    answers = [browser.get(path) for path in paths]
    browser.http.cookies.clear()
    answers += [browser.get("/"), browser.http.request("DELETE", "/"), browser.get("/", Host="evil")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy in (security.POLICY, security.BARE_POLICY), answer.url
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_hostile_names_and_logs_are_text(browser: Browser) -> None:
    """Names, reasons and logs are of anybody who may submit: markup, an OSC 52, marks for right-to-left text."""
    end(browser.root, "bad", "failed", error={"code": "EXIT_NONZERO", "message": EVIL}, output={"said": EVIL})
    content = {"id": "bad", "type": "t", "batch": EVIL[:40], "name": EVIL, "input": {EVIL: [EVIL]}}
    from tests.cli.test_verbs import put

    put(browser.root, "failed/bad.1.w-aaaaa.json", content)
    log = f"\x1b]52;c;QUJD\x07\x1b[31mred\x1b[0m {EVIL}\x1bP+q544e\x1b\\\x9b2J\n<script>2</script>\n"
    (browser.root / "logs" / "bad.1.w-aaaaa.log").write_text(log)
    from tests.web.browser import look

    look(browser.view)
    for path in (
        "/",
        "/tasks",
        "/tasks/bad",
        "/tasks/bad/log",
        "/tasks/bad/log?q=script",
        "/tasks/bad/log/lines?at=0",
    ):
        text = browser.text(path)
        assert not set(text) & set("\x1b\x07\x9b\u202e"), path
        assert "<script>alert" not in text
        assert "<script>2" not in text
        assert "<img" not in text
        assert " style=" not in text
        assert "QUJD" not in text
    assert '<span class="a-ink-1">red</span>' in browser.text("/tasks/bad/log")
    assert "&lt;script&gt;2" in browser.text("/tasks/bad/log")
    assert r"\u202e" in browser.text("/tasks/bad/log")
