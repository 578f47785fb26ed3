"""Goal: an action does what its page said, to the tasks that it showed, and the journal says who asked."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spoold.faces.web import action_pages
from spoold.faces.web.action_pages import DEEDS, Mark, note, told
from spoold.pictures import task_description
from spoold.protocol.request import Verb
from tests.cli.command import leader, make
from tests.cli.test_verbs import end, put
from tests.support.said import ERRAND, FIELDS, errand_with, evil_task, read_later, task_with
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
            assert browser.get(path).status_code in (200, 400, 404), path
    assert browser.requests() == []


def test_one_task_is_cancelled_after_a_page_that_says_so(browser: Browser) -> None:
    assert '<a class="button" href="/act/cancel?id=w00">' in browser.text("/tasks/w00")
    text = browser.text("/act/cancel?id=w00")
    assert "1 task" in main(text)
    done = browser.post("/act/cancel", {**form(text), "reason": "wrong input"})
    assert done.status_code == 303
    assert done.headers["location"].startswith("/tasks/w00?done=cancel%3A1%3A")
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
    assert done.headers["location"].startswith("/tasks?type=t&done=cancel%3A12%3A")
    assert browser.requests() == [("cancel", f"w{number:02}") for number in range(12)]


def test_a_set_that_has_changed_is_shown_again(browser: Browser) -> None:
    text = browser.text("/act/retry?type=t")
    end(browser.root, "bad9", "failed")
    with opened(browser.root.parent, actions=True) as later:
        answer = later.post("/act/retry", form(text))
        assert answer.status_code == 409
        assert "Nothing was requested: the tasks that fit, or their states, have changed" in answer.text
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
    assert done.status_code == 303
    assert done.headers["location"].startswith("/tasks/ask?done=approve%3A1%3A")
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


def test_only_our_own_words_say_what_was_done(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    look(browser.view)
    ours = note("cancel", 12)
    assert told(ours) == "Requested: cancel of 12 tasks. The leader acts on it."
    assert told(note("pause", 1)) == "Requested: pause. The leader acts on it."
    forged = ("cancel", "cancel:12", "cancel:999999", "pay:1", "cancel:1;rm", "cancel:٣", "", ":", "a:b:c:d")
    for said in (*forged, ours.replace("12", "13", 1), ours[:-1], ours + "0", ours + "é"):
        assert told(said) == ""
    assert "Requested" not in browser.text("/tasks?done=cancel%3A999999")
    assert "send money" not in browser.text("/tasks?done=send+money")
    then = time.time() + 3600
    monkeypatch.setattr("time.time", lambda: then)
    assert told(ours) == ""


def test_all_tasks_are_meant_only_where_that_is_said(browser: Browser) -> None:
    for path in ("/act/cancel", "/act/cancel?archived=0&sort=id", "/act/retry?q="):
        assert browser.get(path).status_code == 400, path
    assert browser.post("/act/cancel", {"set": "x"}).status_code == 400
    assert 'href="/act/cancel?all=1"' in browser.text("/tasks")
    assert "all=1" not in browser.text("/tasks?type=t")
    text = browser.text("/act/cancel?all=1")
    assert "13 tasks of 17 that fit" in main(text)
    assert browser.post("/act/cancel", form(text)).status_code == 303
    assert len(browser.requests()) == 13


def ask_path(root: Path) -> Path:
    """The file of the leader's question."""
    (found,) = (root / "control").glob("ask.ask.*.json")
    return found


def test_an_approval_is_of_what_was_shown(browser: Browser) -> None:
    """The form carried the id alone: another command, or another text, could be put under it before it was sent."""
    (token,) = (browser.root / "waiting" / "type=deploy").iterdir()
    question = ask_path(browser.root)
    old_task, old_ask = token.read_text(), question.read_text()
    text = browser.text("/act/approve?id=ask")
    assert "true" in main(text)
    assert hashlib.sha256(token.read_bytes()).hexdigest() in text

    def refused() -> str:
        answer = browser.post("/act/approve", {**form(text), "answer": "no"})
        assert answer.status_code == 409
        assert "has changed since it was shown" in answer.text
        assert browser.requests() == []
        return str(answer.text)

    token.write_text(json.dumps({**json.loads(old_task), "command": ["rm", "-rf", "/"]}))
    assert "rm" in main(refused())
    token.write_text(old_task)
    question.write_text(json.dumps({**json.loads(old_ask), "ask": "Deploy the other?"}))
    refused()
    question.write_text(old_ask)
    other = token.with_name(token.name.replace("0000000001-1", "0000000002-1"))
    token.rename(other)  # another token of the same id; the leader has not asked for it
    question.write_text(json.dumps({**json.loads(old_ask), "order": "0000000002-1"}))
    refused()
    other.rename(token)
    question.write_text(old_ask)
    assert browser.post("/act/reject", {**form(text), "reason": "no"}).status_code == 409  # a form of another action
    assert browser.requests() == []
    assert browser.post("/act/approve", {**form(text), "answer": "no"}).status_code == 303
    (answer,) = (browser.root / "control").glob("approve.ask.*.json")
    said = json.loads(answer.read_text())
    assert said["order"] == "0000000001-1"
    assert said["seen"] == hashlib.sha256(token.read_bytes()).hexdigest()


def asks(root: Path, task: str, content: dict[str, Any]) -> None:
    """Put a task where it waits for its approval, which the leader has asked for."""
    content = {**content, "id": task, "approval": content.get("approval", {"ask": "Really?"})}
    put(root, f"waiting/type=deploy/5000.0000000001-1.{task}.a1f0c0d.json", content)
    put(root, f"control/ask.{task}.q1.json", {"by": "m-1", "ask": "Really?", "order": "0000000001-1"})


def drawn(text: str) -> list[str]:
    """The lines of what a task runs, as a page has them."""
    return [unescape(line) for line in re.findall(r"<code>([^<]*)</code>", text)]


@pytest.mark.parametrize("path", ["/act/approve?id={}", "/tasks/{}"])
def test_a_person_sees_all_that_an_approval_would_run(browser: Browser, path: str) -> None:
    """G24: accept, success_if, model, prompt_file, workspace, args, kwargs and calls were on no page."""
    for name in FIELDS:
        asks(browser.root, f"f-{name.replace('_', '-')}", task_with(name))
    for name in ERRAND:
        asks(browser.root, f"e-{name.replace('_', '-')}", errand_with(name))
    look(browser.view)
    for kind, all_of in (("f", FIELDS), ("e", ERRAND)):
        for name, (_, said) in all_of.items():
            text = browser.text(path.format(f"{kind}-{name.replace('_', '-')}"))
            part = text.partition("<blockquote>")[2] if "act" in path else text.partition('id="given"')[2]
            assert said in unescape(part.partition("All of it")[0]), name


@pytest.mark.parametrize("seed", range(12))
def test_no_line_of_what_an_approval_would_run_looks_like_a_part_of_another(browser: Browser, seed: int) -> None:
    """G23, G24: a generator of tasks that want to be overlooked."""
    content, _ = evil_task(Random(seed))
    asks(browser.root, "evil", content)
    lines = [line for part in task_description.parts_of(content) for line in part.lines]
    for page in ("/act/approve?id=evil", "/act/reject?id=evil"):
        shown = drawn(browser.text(page))
        assert [line for line in shown if line in lines] == lines


def test_a_page_says_what_is_no_part_of_an_approval(browser: Browser) -> None:
    content, said = read_later()
    asks(browser.root, "later", content)
    look(browser.view)
    for page in ("/act/approve?id=later", "/act/reject?id=later", "/tasks/later"):
        text = unescape(browser.text(page))
        assert f"<h3>{task_description.READ} (2 lines)</h3>" in text
        assert [line for line in drawn(text) if line in said] == list(said)


def test_a_long_prompt_is_folded_and_whole(browser: Browser) -> None:
    prompt = "".join(f"step {number}\n" for number in range(5000)) + "and then curl evil"
    asks(browser.root, "long", {"agent": "coder", "prompt": prompt, "accept": [prompt]})
    text = browser.text("/act/approve?id=long")
    assert drawn(text).count("and then curl evil") == 2
    assert "<details><summary><b>prompt (5,001 lines)</b> step 0</summary>" in text
    assert text.count("<details>") == 1, "a command is never folded"


def test_a_task_that_cannot_be_read_shows_nothing_that_runs(browser: Browser) -> None:
    (token,) = (browser.root / "waiting" / "type=deploy").iterdir()
    assert action_pages._does(b"{", str(token)) == ()
    assert task_description.drawn(action_pages._does(b'{"comand": "x"}', str(token))) == ['comand: "x"']


def test_a_task_cannot_answer_through_the_pages(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    text = browser.text("/act/approve?id=ask")
    monkeypatch.setenv("SPOOL_TASK_ID", "agent-1")
    answer = browser.post("/act/approve", {**form(text), "answer": "yes"})
    assert (answer.status_code, "a task cannot answer" in answer.text) == (409, True)
    assert browser.requests() == []


def test_a_task_of_the_same_id_is_not_the_one_that_was_shown(browser: Browser) -> None:
    (old,) = (browser.root / "ready").rglob("*.w00.*")
    text, many = browser.text("/act/cancel?id=w00"), browser.text("/act/cancel?type=t&q=w0")
    old.rename(old.with_name(old.name.replace("0000000001-1", "0000000002-1")))
    answer = browser.post("/act/cancel", form(text))
    assert answer.status_code == 409
    assert "have changed" in answer.text
    told_apart = browser.post("/act/cancel", form(many))  # before the view has looked
    assert told_apart.status_code == 200
    assert "1 left alone: w00: it has changed since it was shown" in main(told_apart.text)
    assert ("cancel", "w00") not in browser.requests()
    with opened(browser.root.parent, actions=True) as later:
        assert later.post("/act/cancel", form(many)).status_code == 409


def test_a_form_is_of_one_action_and_one_state(browser: Browser) -> None:
    text, many = browser.text("/act/cancel?id=w00"), browser.text("/act/cancel?type=t")
    for found in (text, many):
        assert browser.post("/act/hold", form(found)).status_code == 409
    (old,) = (browser.root / "ready").rglob("*.w00.*")
    claimed = browser.root / "claimed" / "w-aaaaa" / old.name
    claimed.parent.mkdir(parents=True)
    old.rename(claimed)
    assert browser.post("/act/cancel", form(text)).status_code == 409
    with opened(browser.root.parent, actions=True) as later:
        assert later.post("/act/cancel", form(many)).status_code == 409
        again = later.text("/act/cancel?id=w00")
        assert later.post("/act/cancel", form(again)).status_code == 303
    assert browser.requests() == [("cancel", "w00")]


def test_only_what_has_an_id_is_linked(browser: Browser) -> None:
    name = "bad <svg onload=alert(4)>.json"
    (browser.root / "pending" / name).write_text("{")
    with opened(browser.root.parent, actions=True) as later:
        for path in ("/tasks?state=pending", "/act/cancel?state=pending"):
            text = later.text(path)
            assert name in main(text)
            assert "/tasks/bad%20" not in text


def test_an_answer_to_a_running_task_is_to_the_text_that_was_shown(browser: Browser) -> None:
    (old,) = (browser.root / "ready").rglob("*.w00.*")
    claimed = browser.root / "claimed" / "w-aaaaa" / old.name
    claimed.parent.mkdir(parents=True)
    old.rename(claimed)
    name = browser.client.post(Verb.ASK, "w00", "", by="w00 on w-aaaaa", ask="Delete a?", attempt=1)
    (question,) = (browser.root / "control").glob("ask.w00.*.json")
    path = f"/act/approve?id=w00&question={name}"
    text = browser.text(path)
    assert "Delete a?" in main(text)
    assert "by w00 on w-aaaaa" in main(text)
    question.write_text(question.read_text().replace("Delete a?", "Delete b?"))
    answer = browser.post("/act/approve", form(text))
    assert answer.status_code == 409
    assert "Delete b?" in main(answer.text)
    assert browser.requests() == []
    assert browser.post("/act/approve", {**form(answer.text), "answer": "3"}).status_code == 303
    (given,) = (browser.root / "control").glob("approve.w00.*.json")
    said = json.loads(given.read_text())
    assert (said["about"], said["answer"]) == (name, 3)


def test_what_is_not_known_of_a_task_tells_nothing_apart() -> None:
    """The view may know another writer as the one who ended a task, and not the name of one that was handed back."""
    assert Mark("failed", 1, "", "m-1").fits(Mark("failed", 1))
    assert Mark("ready", 1, "0000000001-1").fits(Mark("ready", 1))
    for other in (Mark("ready", 2, "0000000001-1"), Mark("waiting", 1), Mark("ready", 1, "0000000002-1")):
        assert not Mark("ready", 1, "0000000001-1").fits(other)
    assert not Mark("failed", 1, "", "m-1").fits(Mark("failed", 1, "", "m-2"))
