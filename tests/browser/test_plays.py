"""Goal: what a person does with `spool web` works in a real browser, without a word of complaint in its console.

Method: a pool of three nodes, Debian's Chromium; each play opens a page of its own, and fails for any warning, breach
of the policy, or request that leaves the machine.
"""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from tests.browser.chromium import opened, violations
from tests.browser.stage import BATCH, NODES, submit
from tests.e2e.pool import wait_for


def test_the_token_lets_in_once_and_does_not_stay_in_the_address(guest: Any) -> None:
    assert guest.landed == f"{guest.stage.top}/"
    with opened(guest.browser, allowed=("401", "403")) as (page, _):
        answer = page.goto(guest.stage.url)
        assert answer is not None
        assert answer.status in (401, 403)
    with guest.page() as (page, _):
        page.goto(guest.stage.top)
        assert not page.evaluate("document.cookie"), "no script can read the cookie"


def test_three_nodes_are_seen(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(f"{guest.stage.top}/nodes")
        for name in NODES:
            expect(page.locator("#main")).to_contain_text(f"{name}-")


def test_a_list_is_narrowed_and_its_address_keeps_all_of_it(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(f"{guest.stage.top}/tasks")
        page.locator(".facets a", has_text="build").click()
        expect(page.locator("#matches .chosen")).to_have_count(1)
        narrowed = page.url
        page.locator("#q").fill("compile")
        page.locator("#q").press("Enter")
        expect(page.locator("#matches b")).to_have_text("3")
        found = page.url
        assert "q=compile" in found
        assert "build" in found
        page.go_back()
        expect(page).to_have_url(narrowed)
        expect(page.locator("#matches b")).to_have_text("12")
        page.go_forward()
        expect(page).to_have_url(found)
        expect(page.locator("#q")).to_have_value("compile")
        expect(page.locator("#matches b")).to_have_text("3")
        page.reload()
        expect(page.locator("#main tbody tr")).to_have_count(3)


def test_a_log_is_followed(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(f"{guest.stage.top}/tasks/long")
        log = page.locator("pre.log")
        expect(log).to_contain_text("begun")
        page.evaluate("window.stays = true")
        with guest.stage.pool.path("long.lines").open("a") as lines:
            lines.write("first line\nsecond line\n")
        expect(log).to_contain_text("second line")
        page.locator("#log-search").fill("line")
        expect(page.locator("#log-found")).to_have_text("2 lines")
        assert page.evaluate("window.stays"), "it was not loaded again"


def test_a_hostile_log_is_text(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(f"{guest.stage.top}/tasks/check")
        log = page.locator("pre.log")
        expect(log).to_contain_text("<script>alert(1)</script>")
        assert log.locator("script, img").count() == 0
        assert "\x1b" not in log.inner_text()


def test_a_running_task_is_cancelled_after_a_question(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(f"{guest.stage.top}/tasks/doomed")
        page.get_by_role("link", name="Cancel…").click()
        expect(page.locator("h1")).to_have_text("Cancel tasks")
        assert guest.stage.pool.ended("doomed") is None
        page.get_by_label("Reason").fill("no more")
        page.get_by_role("button", name="Cancel 1 task").click()
        expect(page.locator(".good")).to_contain_text("Requested: cancel of 1 task")
        wait_for(lambda: guest.stage.pool.ended("doomed"), "doomed is cancelled")
        expect(page.locator("#main .lead")).to_contain_text(re.compile("failed|skipped", re.IGNORECASE))


def test_an_approval_is_answered(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(f"{guest.stage.top}/asks")
        expect(page.locator("blockquote")).to_contain_text("Deploy it to everybody?")
        page.get_by_role("link", name="Answer…").first.click()
        lines = page.locator("ol.runs").first.locator("li")
        expect(lines).to_have_text(["true  # quick check", "true"])  # G23: each by itself
        top, below = lines.nth(0).bounding_box(), lines.nth(1).bounding_box()
        assert below["y"] >= top["y"] + top["height"]
        assert not violations(page)
        page.get_by_role("button", name="Answer").click()
        wait_for(lambda: guest.stage.pool.ended("deploy") == "completed", "deploy has run")
        page.goto(f"{guest.stage.top}/tasks/deploy")
        expect(page.locator("#main .lead")).to_contain_text("completed")


def test_a_batch_is_watched_to_its_end(guest: Any) -> None:
    gate = guest.stage.pool.path("gate")
    held = ["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done", guest.stage.pool.mark]
    tasks = [
        {"id": "w1", "command": held, "batch": "watched"},
        {"id": "w2", "command": ["true"], "after": "w1", "batch": "watched"},
        {"id": "w3", "command": ["true"], "after": "w1", "batch": "watched"},
        {"id": "w4", "command": ["true"], "after": ["w2", "w3"], "batch": "watched"},
    ]
    submit(guest.stage.pool, tasks)
    guest.stage.pool.claimed("w1")
    with guest.page() as (page, _):
        page.goto(f"{guest.stage.top}/batches")
        page.get_by_role("link", name="watched", exact=True).click()
        expect(page.locator("#main .lead")).to_contain_text("0 of 4 tasks ended")
        expect(page.locator("#main svg").first).to_be_visible()
        page.evaluate("window.stays = true")
        gate.touch()
        expect(page.locator("#main .lead")).to_contain_text("4 of 4 tasks ended, 100 %")
        # The graph shows it, too: its words for each task are those of the end.
        expect(page.locator("#main .drawing").first.locator("svg title", has_text="completed")).not_to_have_count(0)
        assert page.evaluate("window.stays"), "it was not loaded again"


def go_to_the_tasks(page: Any, guest: Any) -> None:
    """Press g and t; once more where the machine stood still for so long between the two that they were no pair."""

    def gone() -> bool:
        page.keyboard.press("g")
        page.keyboard.press("t")
        try:
            page.wait_for_url(f"{guest.stage.top}/tasks", timeout=6000)
        except PlaywrightTimeoutError:
            return False
        return True

    assert gone() or gone()


def test_the_keys(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(guest.stage.top)
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#help")).to_be_hidden()
        go_to_the_tasks(page, guest)
        page.keyboard.press("/")
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.type("compile")
        page.keyboard.press("Escape")
        expect(page.locator("#q")).not_to_be_focused()
        rows = page.locator("a[data-row]")
        page.keyboard.press("j")
        expect(rows.nth(0)).to_be_focused()
        page.keyboard.press("j")
        expect(rows.nth(1)).to_be_focused()
        width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width >= 2, "the focus is seen"
        page.keyboard.press("k")
        expect(rows.nth(0)).to_be_focused()
        name = rows.nth(0).inner_text()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text(name)
        page.keyboard.press("Escape")
        expect(page).to_have_url(re.compile("/tasks$"))


def test_each_page_shows_its_focus_at_every_stop(guest: Any) -> None:
    script = """() => { const at = document.activeElement, style = getComputedStyle(at);
      if (at === document.body) return "";
      return `${style.outlineStyle} ${style.outlineWidth} ${at.outerHTML.slice(0, 80)}`; }"""
    for path in ("/", "/tasks", f"/batch?name={BATCH}"):
        with guest.page() as (page, _):
            page.goto(f"{guest.stage.top}{path}")
            for _stop in range(40):
                page.keyboard.press("Tab")
                seen = page.evaluate(script)
                assert not seen or re.match(r"(solid|auto) [2-9]", seen), (path, seen)


def test_without_scripts_pages_and_links_work(guest: Any) -> None:
    with guest.page(java_script_enabled=False) as (page, _):
        page.goto(guest.stage.top)
        page.get_by_role("link", name="Tasks", exact=True).click()
        page.locator("#q").fill("fetch")
        page.locator("#q").press("Enter")
        page.locator("a[data-row]").first.click()
        expect(page.locator("h1")).to_have_text("fetch")
        expect(page.locator("pre.log")).to_contain_text("fetched")
        page.get_by_role("link", name=f"Batch {BATCH}").click()
        expect(page.locator("h1")).to_contain_text(BATCH)
        assert page.locator("#theme").is_hidden()


def test_what_is_wrong_on_a_page_is_heard(guest: Any) -> None:
    script = """() => { const code = document.createElement("script"), picture = new Image();
      code.textContent = "window.ran = true"; document.body.append(code);
      picture.src = "http://192.0.2.1/a.png"; document.body.append(picture); console.warn("a warning"); }"""
    with guest.page(allowed=("policy: ", "Content Security Policy", "a warning")) as (page, heard):
        page.goto(guest.stage.top)
        page.evaluate(script)
        # The browser says each of the first two in two ways, in no certain order.
        wanted = {"policy: script-src-elem inline", "policy: img-src http://192.0.2.1/a.png", "warning: a warning"}

        def all_said() -> bool:
            page.wait_for_timeout(20)
            return all(any(want in word for word in heard.words) for want in wanted)

        wait_for(all_said, "the three")
        assert page.evaluate("window.ran") is None
        assert heard.wrong() == ["http://192.0.2.1/a.png"]
        heard.asked.clear()


def test_a_box_that_has_the_focus_takes_no_letters(guest: Any) -> None:
    with guest.page() as (page, _):
        page.goto(guest.stage.top)
        # The box of the help itself, as it is for a moment after the help has closed.
        page.evaluate("document.querySelector('header').append(document.querySelector('#help input[type=checkbox]'))")
        page.locator("header input[type=checkbox]").focus()
        go_to_the_tasks(page, guest)
