"""Goal: `spool metrics` and `spool status -o` show the figures, and replace a local file as a whole."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import pytest

from spoold.faces.cli.terminal import local_files
from spoold.faces.cli.terminal.html_page import page
from spoold.faces.cli.terminal.screen import Line, Table
from spoold.faces.cli.verbs.status import blocks
from spoold.protocol.errors import SpoolError
from spoold.protocol.snapshot import Snapshot
from tests.cli.command import leader, make
from tests.cli.commands import spool, start
from tests.cli.test_status import PICTURE
from tests.e2e.pool import wait_for

EVIL = "<script>alert(1)</script>\"'&\x1b[2J\u202e\n<img src=x onerror=alert(2)>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    leader(root)
    return root


def tree(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*"))


def test_the_text_is_printed_and_nothing_is_written(root: Path) -> None:
    before = tree(root)
    done = spool("metrics", root=root)
    assert done.code == 0
    assert 'spoold_tasks{state="ready"} 0' in done.lines
    assert tree(root) == before


def test_the_text_is_written_as_a_whole(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "spoold.prom"
    file.write_text("old")
    with file.open() as reader:
        assert spool("metrics", "-o", str(file), root=root).code == 0
        assert reader.read() == "old"  # a reader of the old one reads on
    assert "\nspoold_leader_epoch 1\n" in file.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["spoold.prom"]


def test_a_file_is_not_replaced_in_the_spool_nor_in_the_place_of_something_else(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    for file in (root / "x.prom", root / "status" / "x", tmp_path / "link" / "x", root / ".." / root.name / "x"):
        done = spool("metrics", "-o", str(file), root=root)
        assert (done.code, "lies in the spool" in done.err) == (2, True), file
    for file in (tmp_path, Path("/dev/null")):
        done = spool("status", "-o", str(file), root=root)
        assert (done.code, "is no regular file" in done.err) == (2, True), file


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "page"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        local_files.replace(str(file), "new", spool=str(tmp_path / "s"), option="-o")
    monkeypatch.undo()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"page": "old"}
    with pytest.raises(SpoolError):
        local_files.replace(str(tmp_path / "s" / "x"), "new", spool=str(tmp_path / "s"), option="-o")


def test_a_server_serves_until_it_is_told_to_end(root: Path) -> None:
    server = start("metrics", "--port", "0", root=root)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        with urllib.request.urlopen(url, timeout=20) as answer:
            kind, text = answer.headers["Content-Type"], answer.read().decode()
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        assert 'spoold_finished_total{result="completed"} 0' in text
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.kill()
        server.communicate()


def test_options_that_exclude_each_other_are_an_error(root: Path) -> None:
    assert spool("metrics", "--port", "0", "-o", "x", root=root).code == 2
    assert spool("status", "--json", "-o", "x", root=root).code == 2
    assert spool("status", "--watch", "-o", "-", root=root).code == 2
    assert spool("metrics", "--port", "0", "--address", "nowhere", root=root).code == 2


class Shown(HTMLParser):
    """What a browser makes of a page: its tags, and the text of each paragraph and cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("p", "td", "th"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data.strip("\n")


def cells(found: list[Line | Table]) -> list[str]:
    """The text of blocks, in their order."""
    each = [
        [block.text] if isinstance(block, Line) else [*block.header, *(c.text for row in block.rows for c in row)]
        for block in found
    ]
    return [text for texts in each for text in texts]


def test_the_page_shows_what_the_terminal_shows() -> None:
    found = blocks(PICTURE)
    shown = Shown(page(found, "spool s1", "now"))
    assert shown.texts == ["as of now", *cells(found)]
    assert {tag for tag, _ in shown.tags} == {
        *("html", "head", "meta", "title", "style", "body", "main", "h1", "p", "div", "table", "thead", "tbody"),
        *("tr", "th", "td"),
    }
    assert all(not name.startswith("on") for _, attributes in shown.tags for name in attributes)


def test_every_hostile_text_is_text() -> None:
    said = PICTURE.model_dump(mode="json")
    said["spool_id"] = said["master"]["leader"] = said["nodes"][0]["host"] = EVIL
    said["nodes"][0]["labels"] = said["warnings"] = [EVIL]
    said["types"] = {EVIL: {"waiting": 1}}
    said["alerts"][0] |= {"name": EVIL, "text": EVIL, "task": EVIL}
    text = page([*blocks(Snapshot.model_validate(said)), Line(EVIL, EVIL)], EVIL, EVIL)
    plain = page(blocks(PICTURE), "s", "now")
    assert {tag for tag, _ in Shown(text).tags} == {tag for tag, _ in Shown(plain).tags}
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script" not in text
    assert "<img" not in text


def test_the_policy_lets_nothing_in_but_the_style_of_the_page() -> None:
    text = page([], "s", "now")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/]+='; base-uri 'none'; form-action 'none'", policy
    )
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"https?:|url\(|@import|style=", text)
    assert "refresh" not in text
    assert 'http-equiv="refresh" content="5"' in page([], "s", "now", 5.0)


def test_status_writes_the_page_once_or_again_and_again(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "status.html"
    before = tree(root)
    done = spool("status", "-o", str(file), root=root)
    assert (done.code, done.out) == (0, "")
    assert "led by m-0001 (epoch 1)" in file.read_text()
    assert tree(root) == before
    file.unlink()
    watched = start("status", "--watch", "-o", str(file), root=root, stdout=subprocess.DEVNULL)
    try:
        wait_for(file.exists, "the page is written")
        assert 'http-equiv="refresh"' in file.read_text()
    finally:
        watched.send_signal(signal.SIGINT)
        watched.communicate(timeout=20)
    assert watched.returncode == 130
