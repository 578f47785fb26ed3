"""The pages of a real spool, asked without a socket; and the cookie that lets in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from spoold.client.spool_client import SpoolClient
from spoold.client.view import View
from spoold.faces.web.http_server import Place, guarded
from spoold.faces.web.security import Entrance
from spoold.faces.web.site import Site
from spoold.protocol.request import Verb, parse_request
from tests.cli.command import leader, make
from tests.cli.test_verbs import put

PORT = 8378
HOST = f"127.0.0.1:{PORT}"
EVIL = "<script>alert(1)</script>\"'&\x1b[2J\u202e\n<img src=x onerror=alert(2)>"
OURS = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{HOST}"}


class Browser:
    """A browser that was let in, the spool behind it, and the view, which looks when it is told to."""

    def __init__(self, root: Path, client: SpoolClient, *, actions: bool) -> None:
        self.root, self.client, self.view = root, client, client.view()
        self.site = Site(client, self.view, "s1", actions=actions)
        self.entrance = Entrance(str(PORT))
        self.app = guarded(self.site, self.entrance, place())
        self.http = TestClient(self.app, base_url=f"http://{HOST}", follow_redirects=False)
        self.cookie = self.entrance.exchange(self.entrance.token()) or ""
        self.http.cookies.set(self.entrance.cookie, self.cookie)
        look(self.view)

    def get(self, path: str, **headers: str) -> Any:
        """Ask for a page."""
        return self.http.get(path, headers=headers)

    def text(self, path: str) -> str:
        """The page, which must be there."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[-300:])
        return str(answer.text)

    def post(self, path: str, form: dict[str, str], headers: dict[str, str] | None = None) -> Any:
        """Send a form, as one of our pages does."""
        return self.http.post(path, data=form, headers=OURS if headers is None else headers)

    def requests(self) -> list[tuple[str, str]]:
        """The requests that stand in control/, but for the leader's own questions."""
        return sorted(self._asked())

    def _asked(self) -> dict[tuple[str, str], str]:
        """The requests that people made, with who asked."""
        found = ((parse_request(path.name), path) for path in (self.root / "control").iterdir())
        return {
            (request.verb.value, request.target): json.loads(path.read_text())["by"]
            for request, path in found
            if request is not None and request.verb is not Verb.ASK
        }

    def who(self) -> set[str]:
        """Who asked."""
        return set(self._asked().values())


def place() -> Place:
    """A port that nobody listens at."""
    return Place("127.0.0.1", PORT)


def look(view: View) -> None:
    """Look until everything was listed once."""
    for _ in range(50):
        view.look()
        if view.complete:
            return
    raise AssertionError(view.problem)


def waiting(root: Path, task: str, kind: str = "t", **more: Any) -> None:
    """Put a task where it waits."""
    content = {"id": task, "type": kind, "command": ["true"], **more}
    conditional = "d" if more.get("after") or more.get("approval") else ""
    put(root, f"waiting/type={kind}/5000.0000000001-1.{task}.a1f0c0{conditional}.json", content)


@contextmanager
def opened(tmp_path: Path, *, actions: bool = False) -> Iterator[Browser]:
    """A spool with a leader's snapshot, and a browser at it."""
    root = tmp_path / "s"
    if not root.exists():
        make(root)
        leader(root)
    with SpoolClient(root) as client:
        client.via = "web"
        browser = Browser(root, client, actions=actions)
        try:
            yield browser
        finally:
            browser.site.later.close()
            browser.http.close()
