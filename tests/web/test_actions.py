"""Goal: an action does what its page said, to the tasks that it showed, and the journal says who asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from spoold.faces.web.acting import DEEDS, told
from tests.cli.command import leader, make
from tests.cli.test_verbs import end
from tests.web.browser import Browser, look, opened, waiting
from tests.web.test_pages import main


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    root = make(tmp_path / "s")
    end(root, "good")
    for number in range(3):
        end(root, f"bad{number}", "failed")
    for number in range(12):
        waiting(root, f"w{number:02}")
    waiting(root, "ask", "deploy", approval={"ask": "Deploy <now>?", "choices": ["yes", "no"]})
    leader(root)
    with opened(tmp_path, actions=True) as found:
        yield found


def form(text: str) -> dict[str, str]:
    """The hidden fields of the form on a page."""
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', text)
    return {unescape(name): unescape(value) for name, value in found}


def test_a_get_changes_nothing(browser: Browser) -> None:
    for verb in DEEDS:
        for path in (f"/act/{verb}?id=w00", f"/act/{verb}?type=t", f"/act/{verb}?id=ask", f"/act/{verb}"):
            assert browser.get(path).status_code in (200, 404), path
    assert browser.requests() == []


def test_one_task_is_cancelled_after_a_page_that_says_so(browser: Browser) -> None:
    assert '<a class="button" href="/act/cancel?id=w00">' in browser.text("/tasks/w00")
    text = browser.text("/act/cancel?id=w00")
    assert "1 task" in main(text)
    done = browser.post("/act/cancel", {**form(text), "reason": "wrong input"})
    assert (done.status_code, done.headers["location"]) == (303, "/tasks/w00?done=cancel%3A1")
    assert browser.requests() == [("cancel", "w00")]
    (who,) = browser.who()
    assert re.fullmatch(r".+@.+ via web", who)
    assert "Requested: cancel of 1 task." in browser.text(done.headers["location"])


def test_a_preview_says_how_many_in_which_states_and_the_first_ids(browser: Browser) -> None:
    text = browser.text("/act/cancel?type=t")
    said = main(text)
    assert "12 tasks of 16 that fit: 12 ◇ ready" in said
    assert "The other 4 are in states for which this is nothing" in said
    assert "and 2 more" in said
    done = browser.post("/act/cancel", form(text))
    assert done.headers["location"] == "/tasks?type=t&done=cancel%3A12"
    assert browser.requests() == [("cancel", f"w{number:02}") for number in range(12)]


def test_a_set_that_has_changed_is_shown_again(browser: Browser) -> None:
    text = browser.text("/act/retry?type=t")
    end(browser.root, "bad9", "failed")
    with opened(browser.root.parent, actions=True) as later:
        answer = later.post("/act/retry", form(text))
        assert answer.status_code == 409
        assert "Nothing was requested: the tasks that fit have changed" in answer.text
        assert later.requests() == []
        assert later.post("/act/retry", form(answer.text)).status_code == 303
        assert later.requests() == [("retry", task) for task in ("bad0", "bad1", "bad2", "bad9")]


def test_tasks_that_cannot_be_are_left_alone_and_named(browser: Browser) -> None:
    text = browser.text("/act/retry?type=t")
    (browser.root / "failed" / "bad1.1.w-aaaaa.json").unlink()  # since the view last looked
    answer = browser.post("/act/retry", form(text))
    assert answer.status_code == 200
    assert "Requested for 2 tasks ; 1 left alone: bad1" in main(answer.text)
    assert browser.requests() == [("retry", "bad0"), ("retry", "bad2")]


def test_what_cannot_be_has_no_button(browser: Browser) -> None:
    assert "No task fits for this: good is" in main(browser.text("/act/cancel?id=good"))
    assert browser.post("/act/cancel", {"id": "good", "set": "x"}).status_code == 409
    assert browser.get("/act/cancel?id=none").status_code == 404
    assert browser.get("/act/nothing?id=w00").status_code == 404
    assert browser.requests() == []


def test_hold_and_release(browser: Browser) -> None:
    done = browser.post("/act/hold", form(browser.text("/act/hold?id=w00")))
    assert done.status_code == 303
    assert browser.requests() == [("hold", "w00")]


def test_a_question_is_answered_or_rejected(browser: Browser) -> None:
    asked = browser.text("/asks")
    assert "Deploy &lt;now&gt;?" in asked
    text = browser.text("/act/approve?id=ask")
    assert 'type="radio" name="answer" id="choice-2" value="no"' in text
    wrong = browser.post("/act/approve", {**form(text), "answer": "perhaps"})
    assert (wrong.status_code, "none of the choices" in unescape(wrong.text)) == (409, True)
    done = browser.post("/act/approve", {**form(text), "answer": "no"})
    assert (done.status_code, done.headers["location"]) == (303, "/tasks/ask?done=approve%3A1")
    assert ("approve", "ask") in browser.requests()
    assert browser.post("/act/reject", {**form(text), "reason": "late"}).status_code == 409  # answered already
    assert browser.get("/act/approve?id=w00").status_code == 404


def test_types_and_workers(browser: Browser) -> None:
    assert browser.post("/act/pause", {"type": "t", "minutes": "5", "reason": "lunch"}).status_code == 303
    assert browser.post("/act/pause", {"type": "", "minutes": "-1"}).status_code == 400
    assert browser.post("/act/resume", {"type": ""}).status_code == 303
    assert browser.post("/act/drain", {"worker": "none"}).status_code == 404
    assert browser.post("/act/drain", {"worker": ""}).status_code == 400
    assert browser.requests() == [("pause", "t"), ("resume", "+all")]


def test_only_our_own_words_say_what_was_done(browser: Browser) -> None:
    look(browser.view)
    assert told("cancel:12") == "Requested: cancel of 12 tasks. The leader acts on it."
    assert told("pause:1") == "Requested: pause. The leader acts on it."
    for forged in ("cancel", "cancel:", "cancel:x", "pay:1", "cancel:1;rm", "cancel:٣", f"cancel:{10**12}"):
        assert told(forged) == ""
    assert "send money" not in browser.text("/tasks?done=send+money")
