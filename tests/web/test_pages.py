"""Goal: each page shows what the view knows, exactly; every count leads to what it counts; all is in the URL."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from spoold.faces.web import page_address
from spoold.faces.web.assets import known
from spoold.faces.web.page_cache import Copies, Later, copy_of
from spoold.protocol.errors import BadFile, NotFound
from tests.cli.command import leader, make
from tests.cli.test_verbs import end, put
from tests.web.browser import Browser, opened, waiting

PAGES: tuple[str, ...] = (
    "/",
    "/tasks",
    "/batches",
    "/batch?name=b1",
    "/nodes",
    "/gates",
    "/events",
    "/alerts",
    "/asks",
    "/tasks/bad",
)
PAGES += ("/tasks/bad/log", "/tasks/bad/history", "/tasks/w0", "/tasks?state=failed&q=b&sort=id", "/nope")
DATA_MOST, NODES_MOST = 150_000, 3000


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    root = make(tmp_path / "s")
    end(root, "good", tokens_used=1234, cost_usd=0.5)
    end(root, "bad", "failed", tokens_used=66)
    child = {"id": "bad", "type": "t", "batch": "b1", "parent": "good"}
    (root / "failed" / "bad.1.w-aaaaa.json").write_text(json.dumps(child))
    for number in range(5):
        waiting(root, f"w{number}", batch="b2", after="w0" if number else ())
    (root / "logs" / "bad.1.w-aaaaa.log").write_text("".join(f"line {n}\n" for n in range(1000)))
    leader(root)
    with opened(tmp_path) as found:
        yield found


def main(text: str) -> str:
    """What is in the main part of a page, without tags."""
    inside = text.partition('<main id="main"')[2].partition("</main>")[0].partition(">")[2]
    return " ".join(unescape(re.sub("<[^>]*>", " ", inside)).split())


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_small_and_whole(browser: Browser, path: str) -> None:
    answer = browser.get(path, **{"Accept-Encoding": "identity"})
    text = answer.text
    assert len(gzip.compress(text.encode())) + sum(len(copy.packed) for copy in known().values()) < DATA_MOST
    assert len(re.findall("<[a-z]", text)) < NODES_MOST
    assert text.count("<h1") == 1
    assert '<html lang="en">' in text
    assert text.count("<main") == text.count("</main>") == 1
    text = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(
        r"style=|<style|<script(?! (type=\"module\" )?src=\"/static/)|\son\w+=|javascript:|https?://", text
    )
    assert "{{" not in text
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids)), path
    named = set(re.findall(r'(?:aria-labelledby|for)="([^"]+)"', text))
    assert named <= set(ids)


def test_every_count_of_the_overview_leads_to_as_many_tasks(browser: Browser) -> None:
    text = browser.text("/")
    tiles = re.findall(r'<a href="(/tasks\?[^"]*)"><b>(\d+)</b>', text)
    counts = re.findall(r'<a class="count" href="(/tasks\?[^"]*)">(\d+)<', text)
    assert len(tiles) >= 8
    assert counts
    for href, number in [*tiles, *counts]:
        listed = main(browser.text(unescape(href)))
        assert f" {number} of 7 tasks" in f" {listed}", (href, number)


def test_the_list_combines_facets_and_counts_exactly(browser: Browser) -> None:
    assert "7 of 7 tasks" in main(browser.text("/tasks"))
    assert "4 of 7 tasks" in main(browser.text("/tasks?state=waiting"))
    assert "5 of 7 tasks" in main(browser.text("/tasks?state=waiting&state=failed"))
    assert "1 of 7 tasks" in main(browser.text("/tasks?state=waiting&state=failed&q=bad"))
    assert "0 of 7 tasks" in main(browser.text("/tasks?state=completed&batch=b2"))
    text = browser.text("/tasks?state=waiting")
    assert 'href="/tasks" aria-current="true"' in text  # chosen once more, it is taken out
    assert 'href="/tasks?state=waiting&amp;state=failed"' in text


def test_the_order_is_in_the_url_and_turns(browser: Browser) -> None:
    up, down = (re.findall(r'<tr id="t-([^"]+)"', browser.text(f"/tasks?sort={sort}")) for sort in ("id", "-id"))
    assert up == ["bad", "good", "w0", "w1", "w2", "w3", "w4"]
    assert down == up[::-1]
    assert 'aria-sort="ascending"><a href="/tasks?sort=-id"' in browser.text("/tasks?sort=id")
    assert browser.get("/tasks?sort=nothing").status_code == 400


def test_pages_of_the_list_are_reached_by_links(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    for number in range(230):
        waiting(root, f"w{number:03}")
    leader(root)
    with opened(tmp_path) as browser:
        seen, path = list[str](), "/tasks?sort=id"
        while path:
            text = browser.text(path)
            assert "230 of 230 tasks" in main(text)
            seen += re.findall(r'<tr id="t-([^"]+)"', text)
            found = re.search(r'<a href="([^"]+)" rel="next"', text)
            path = unescape(found[1]) if found else ""
        assert seen == [f"w{number:03}" for number in range(230)]


def test_a_task_says_all_that_is_known_of_it(browser: Browser) -> None:
    said = main(browser.text("/tasks/bad"))
    assert "failed , attempt 1" in said
    assert "EXIT_NONZERO: exit code 3" in said
    assert "line 999" in said
    said = main(browser.text("/tasks/good"))
    assert "1,234 tokens" in said
    assert "0.5000 USD" in said
    said = main(browser.text("/tasks/w1"))
    assert "Needs 1 w0 ◇ ready" in said
    assert "Why it is where it is" in said
    assert browser.get("/tasks/none").status_code == 404


def test_a_task_of_an_agent_says_what_became_of_its_merge(tmp_path: Path) -> None:
    """Only `spool show` and `spool explain` said so: the page of a completed task said that something merges it."""
    root = make(tmp_path / "s")
    place = {"ref": "refs/spool/edit/1", "commit": "c0ffee", "repo": "/srv/app.git"}
    end(root, "edit", output={"outcome": "done", "changed_files": ["x"], "workspace": place, "merge": "edit-merge"})
    end(root, "edit-merge", output={"into": "main", "landed": [{"task": "edit", "merge": "beef"}], "refused": []})
    leader(root)
    with opened(tmp_path) as browser:
        work = "Work done, 1 changed file, in refs/spool/edit/1 of /srv/app.git; merged as beef into main"
        assert work in main(browser.text("/tasks/edit"))
        assert "Work merged as beef into main" in main(browser.text("/tasks/edit-merge"))


def test_who_needs_a_task_is_shown(browser: Browser) -> None:
    for _ in range(20):  # the view reads conditions and batches by and by
        browser.view.look()
    assert "Needed by 4 " in main(browser.text("/tasks/w0"))


def test_who_needed_a_task_outside_a_batch_is_shown_when_it_has_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N20: outside a batch nobody seemed to need it."""
    root = make(tmp_path / "s")
    waiting(root, "first")
    end(root, "then")
    content = {"id": "then", "type": "t", "after": ["first"]}
    (root / "completed" / "then.1.w-aaaaa.json").write_text(json.dumps(content))
    leader(root)
    with opened(tmp_path) as found:
        page = until(found, "/tasks/first", "Needed by")
        assert "Needed by 1 then" in page
        monkeypatch.setattr("spoold.faces.web.task_pages.SCENE_MOST", 1)
        assert "the spool has many tasks: who needs it is not read" in main(found.text("/tasks/then"))


def until(browser: Browser, path: str, said: str) -> str:
    """The page, once it says so: some of it is read by and by."""
    page = ""
    for _ in range(200):
        browser.view.look()
        page = main(browser.text(path))
        if said in page:
            return page
    raise AssertionError(page)


def test_a_log_is_shown_in_parts_and_searched(browser: Browser) -> None:
    text = browser.text("/tasks/bad/log?at=0")
    assert "line 0" in text
    assert "Bytes 0 to 8,890 of 8,890" in main(text)
    hits = main(browser.text("/tasks/bad/log?q=LINE+99"))
    assert hits.count("at ") == 11
    lines = browser.text("/tasks/bad/log/lines?attempt=1&at=8880")
    assert 'data-end="8890"' in lines
    assert "line 999" in lines
    file = browser.get("/tasks/bad/log/file")
    assert (len(file.content), file.headers["content-type"]) == (8890, "application/octet-stream")
    assert file.headers["content-disposition"] == 'attachment; filename="bad.1.log"'
    assert browser.get("/tasks/good/log/file").status_code == 404
    assert browser.get("/tasks/bad/log?at=x").status_code == 400
    assert "No attempt of this task has written a log" in browser.text("/tasks/good/log")


def test_a_log_with_one_endless_line_ends_a_page(browser: Browser) -> None:
    (browser.root / "logs" / "good.1.w-aaaaa.log").write_bytes(b"x" * 300_000)
    assert len(browser.text("/tasks/good/log")) < 100_000
    assert "Earlier" in browser.text("/tasks/good/log")


def test_a_batch_has_its_pictures_with_links(browser: Browser) -> None:
    text = browser.text("/batch?name=b1")
    assert text.count("<svg ") == 2
    assert '<a href="/tasks/bad"' in text
    assert "2 of 2 tasks ended" in main(text)
    assert "good 1,234 tokens" in main(text)
    assert "with 1 below it: 1,300 tokens" in main(text)
    picture = browser.get("/batch/graph.svg?name=b1")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "style-src 'sha256-" in picture.headers["content-security-policy"]
    cause = re.search(r'href="(/batch\?name=b1&amp;cause=[^"]+)">1<', text)
    assert cause is not None
    assert "1 task of batch b1" in main(browser.text(unescape(cause[1])))
    for path in ("/batch?name=none", "/batch/graph.svg?name=none", "/batch/x.svg?name=b1", "/batch?name=b1&cause=x"):
        assert browser.get(path).status_code == 404, path
    assert browser.get("/batch").status_code == 400


def test_a_page_is_made_once_for_all_who_ask(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    first = browser.get("/tasks")
    monkeypatch.setattr(browser.view, "find", None)  # nobody asks the view again
    again = browser.get("/tasks")
    assert again.text == first.text
    same = browser.get("/tasks", **{"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert browser.get("/tasks", **{"Accept-Encoding": "identity"}).content == first.content


def test_a_part_has_only_what_changes(browser: Browser) -> None:
    part = browser.get("/tasks", **{"X-Spool-Part": "1"})
    assert "<html" not in part.text
    assert '<main id="main"' in part.text
    assert part.headers["x-spool-version"] == str(browser.view.version)


def test_a_new_version_makes_a_new_page(browser: Browser) -> None:
    assert "7 of 7" in main(browser.text("/tasks"))
    put(browser.root, "completed/new.1.w-aaaaa.json", {"id": "new", "type": "t"})
    with opened(browser.root.parent) as other:
        assert "8 of 8" in main(other.text("/tasks"))


def test_copies_are_bounded_and_one_is_made_at_a_time() -> None:
    now, made = [0.0], list[float]()
    copies = Copies(lambda: now[0])

    def make(at: float) -> object:
        made.append(at)
        return copy_of("x" * 1_000_000, 1, at)

    for number in range(40):
        copies.get(number, 1, 10, make)  # type: ignore[arg-type]
    assert len(made) == 40
    assert copies._bytes < 25 << 20
    assert copies.get(39, 1, 10, make).version == 1  # type: ignore[arg-type]
    assert len(made) == 40
    now[0] = 10.0
    copies.get(39, 1, 10, make)  # type: ignore[arg-type]
    copies.get(39, 2, 10, lambda at: copy_of("", 2, at))
    assert len(made) == 41
    with pytest.raises(NotFound):
        copies.get("x", 1, 10, lambda _: (_ for _ in ()).throw(NotFound("no.")))


def test_what_takes_long_is_shown_later() -> None:
    import threading

    later, go = Later(), threading.Event()
    try:
        first = later.get("a", lambda: go.wait(20), fresh_s=60, patience_s=0.01)
        assert (first.value, first.pending) == (None, True)
        go.set()
        assert later.get("a", lambda: False, fresh_s=60, patience_s=20).value is True
        assert later.get("a", lambda: False, fresh_s=60).value is True

        def fails() -> str:
            raise NotFound("it is gone.")

        assert later.get("b", fails, fresh_s=60, patience_s=20).error == "it is gone."
    finally:
        later.close()


def test_an_address_says_a_query_and_back() -> None:
    text = "state=failed&state=waiting&type=a%20b&batch=x%26y&worker=w&code=C&q=%3Cb%3E&sort=-id&archived=0"
    query = page_address.query_of(page_address.read(text))
    assert (query.states, query.types, query.text, query.archived) == (("failed", "waiting"), ("a b",), "<b>", False)
    assert page_address.query_of(page_address.read(page_address.tasks(query).partition("?")[2])) == query
    assert page_address.tasks(page_address.query_of(page_address.read(""))) == "/tasks"
    with pytest.raises(BadFile):
        page_address.read("from=x").number("from")
    with pytest.raises(BadFile):
        page_address.read("from=1").number("from") and page_address.read("from=٣").number("from")


def test_a_list_of_an_age_says_so_and_is_exact(browser: Browser) -> None:
    old = main(browser.text("/tasks?admitted=..1000000000"))
    assert "5 of 7 tasks" in old
    assert "Admitted: up to 2001-09-09 01:46:40" in old
    assert "2 of 7 tasks" in main(browser.text("/tasks?admitted=1000000000.."))  # of these nobody knows it
    assert "0 of 7 tasks" in main(browser.text("/tasks?admitted=1000000000..2000000000"))
    for wrong in ("x", "1", "1e9..", "..999999999999", "-1.."):
        assert browser.get(f"/tasks?admitted={wrong}").status_code == 400, wrong


def test_a_batch_is_read_by_its_own_tasks_alone(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from spoold.client.read import graph_data

    for _ in range(20):  # the view learns of batches by and by
        browser.view.look()
    whole = browser.client.scene("b2")
    monkeypatch.setattr(graph_data, "candidates", None)  # nobody goes through all tasks
    mine = browser.view.scene("b2")
    assert sorted(mine.tasks, key=str) == sorted(whole.tasks, key=str)
    assert replace(mine, at=0, tasks=()) == replace(whole, at=0, tasks=())


def test_a_rejected_drop_has_its_page_and_no_task_is_named_by_a_beginning(browser: Browser) -> None:
    put(browser.root, "rejected/my drop.json", {"id": "my"})
    put(
        browser.root, "rejected/my drop.json.reason.json", {"drop": "my drop.json", "problem": "is odd.", "mend": "x"}
    )
    with opened(browser.root.parent) as other:
        (card,) = other.view.find(page_address.query_of(page_address.read("state=rejected"))).cards
        assert "rejected" in main(other.text(page_address.task(card.id)))
        assert other.get("/tasks/goo").status_code == 404
        assert other.get("/tasks/no%20drop").status_code == 404


def test_a_value_that_is_nested_deeply_is_no_error_of_ours(browser: Browser) -> None:
    deep = "[" * 900 + "]" * 900
    (browser.root / "completed" / "deep.1.w-aaaaa.json").write_text(f'{{"id": "deep", "type": "t", "input": {deep}}}')
    with opened(browser.root.parent) as other:
        assert other.get("/tasks/deep").status_code == 200


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_a_log_that_is_no_file_says_so_in_its_place(browser: Browser, kind: str) -> None:
    """It said that the spool cannot be reached."""
    path = browser.root / "logs" / "bad.1.w-aaaaa.log"
    path.unlink()
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    for page in ("/tasks/bad/log", "/tasks/bad/log?q=line", "/tasks/bad/log?at=0", "/tasks/bad/log?attempt=1"):
        said = main(browser.text(page))
        assert "The log of attempt 1 cannot be read: not a regular file but a" in said, page
        assert "cannot be reached" not in said
    assert browser.get("/tasks/bad/log/lines?attempt=1&at=0").status_code == 409
    assert browser.get("/tasks/bad/log/file?attempt=1").status_code == 409
    said = main(browser.text("/tasks/bad"))
    assert "The log of attempt 1 cannot be read" in said
    assert "exit code 3" in said


def test_a_spool_that_is_away_is_not_a_fault_of_the_log(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(browser.view._details, "_read", away)
    assert browser.get("/tasks/bad/log").status_code == 503
