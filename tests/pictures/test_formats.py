"""Every format is what its readers expect, and a hostile name is nothing but text in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections import defaultdict
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from spoold.pictures import dot, graph_svg, mermaid, perfetto, report_html, timeline_svg
from spoold.pictures.mermaid import label
from spoold.pictures.picture_data import RUNNING, Attempt, Bond, Need, Scene, Task
from spoold.pictures.svg import Markup, lines, tag
from spoold.pictures.wording import clip, columns, log_text, visible
from spoold.protocol.result import Total
from tests.pictures.scenes import BEGAN, EVIL, big, hostile, ran, scene, task

SVG = "{http://www.w3.org/2000/svg}"
WRITERS = {
    "graph": graph_svg.draw,
    "timeline": timeline_svg.draw,
    "report": report_html.write,
    "mermaid": mermaid.write,
    "dot": dot.write,
    "perfetto": perfetto.write,
}
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# All that a picture is made of.
ELEMENTS = {"svg", "title", "style", "rect", "g", "text", "path", "line", "defs", "marker"}
ATTRIBUTES = {"viewBox", "width", "height", "role", "class", "x", "y", "x1", "x2", "y1", "y2", "rx", "d", "id"}
ATTRIBUTES |= {"refX", "refY", "markerWidth", "markerHeight", "orient", "transform", "marker-end"}


def some() -> Scene:
    """One of everything."""
    return scene(
        ran("fetch", 0, 10),
        ran("build", 11, 30, "fetch", type=""),
        ran("soak", 12, None, "fetch", "elsewhere"),
        task("later", "build", state="waiting", since=BEGAN + 3),
        Task("rescue", "rescue", "waiting", needs=(Need("build", Bond.FAILURE), Need("batch x", Bond.BATCH))),
        Task("bad.json", "bad.json", "rejected", cause=("rejected", "unknown field.")),
        Task("elsewhere", "elsewhere", "completed", outside=True),
        Task("batch x", "batch x", "unknown", outside=True),
    )


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("drawn", [some(), hostile(), big(300), scene()], ids=["some", "hostile", "big", "empty"])
def test_nothing_hidden_is_left_and_equal_scenes_give_equal_text(name: str, drawn: Scene) -> None:
    text = WRITERS[name](drawn)
    assert not HIDDEN.search(text)
    text.encode()
    assert text == WRITERS[name](drawn)


@pytest.mark.parametrize("name", ["graph", "timeline"])
@pytest.mark.parametrize("drawn", [some(), hostile(), big(300), scene()], ids=["some", "hostile", "big", "empty"])
def test_a_drawing_is_xml_of_harmless_parts(name: str, drawn: Scene) -> None:
    root = ElementTree.fromstring(WRITERS[name](drawn))
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in ELEMENTS
        assert set(element.attrib) <= ATTRIBUTES
        assert not any("url(" in value and value != "url(#tip)" for value in element.attrib.values())
    (style,) = root.iter(f"{SVG}style")
    assert not re.search(r"url|@import|expression|http", style.text or "")


def test_a_hostile_name_is_text() -> None:
    root = ElementTree.fromstring(graph_svg.draw(hostile()))
    said = " ".join(element.text or "" for element in root.iter())
    assert "\\u202eabc</title><script>" in said
    assert "\\x1b[31m\\x9b2J\\ud800\\x00#quot;" in said


class _Page(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.opened: list[str] = []
        self.texts: defaultdict[str, str] = defaultdict(str)
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[self.opened[-1] if self.opened else ""] += data


@pytest.mark.parametrize("drawn", [some(), hostile(), big(1500), scene()], ids=["some", "hostile", "big", "empty"])
def test_a_report_runs_nothing_asks_nobody_and_is_well_formed(drawn: Scene) -> None:
    text = report_html.write(drawn)
    page = _Page(text)
    assert page.opened == []
    kinds = {kind for kind, _ in page.elements}
    assert not kinds & {"script", "iframe", "object", "embed", "link", "img", "form", "base", "a", "use", "image"}
    names = {name for _, attributes in page.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in {"style", "src", "href", "srcset"}]
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", text)


def test_the_policy_of_a_report_allows_its_own_sheet_alone() -> None:
    text = report_html.write(some())
    page = _Page(text)
    (policy,) = (held["content"] for kind, held in page.elements if held.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(page.texts["style"].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "prefers-color-scheme:dark" in page.texts["style"]


def test_a_report_says_of_how_many_its_tables_are() -> None:
    text = report_html.write(big(1500))
    assert "1,000 of 1,500 tasks" in text
    assert '<p class="note">20 of ' not in text  # no task of this scene has sums
    slow = report_html.write(scene(*(ran(f"t{number}", 0, number + 1) for number in range(30))))
    assert "20 of 30 tasks" in slow


def test_a_batch_that_is_partly_archived_says_so() -> None:
    text = report_html.write(scene(ran("a", 0, 1, archived=True), ran("b", 0, 1)))
    assert "2 of 2 tasks ended, 100 %; 1 archived, which `spool status` counts no longer" in text


def test_mermaid_quotes_all_that_a_name_may_hold() -> None:
    assert label('a-1 "x" <b> #quot; `y`') == "a-1 #34;x#34; #60;b#62; #35;quot#59; #96;y#96;"
    text = mermaid.write(hostile())
    node = re.compile(
        r'    n\d+(\[\["|\[")[^"\[\]{}<>`%\\;]* ?(#\d+;|[^"<>`%\\])*<br/>(#\d+;|[^"<>`%\\])*("\]\]|"\])'
    )
    header, *body = text.splitlines()
    assert header == "flowchart LR"
    for line in body:
        link = re.fullmatch(r"    n\d+ (-->|==>|-\. (ended|failed) \.->) n\d+", line)
        said = re.fullmatch(r"    classDef s_[a-z]+ fill:#[0-9a-f]{6},stroke:#[0-9a-f]{6},color:#[0-9a-f]{6}", line)
        assert link or said or re.fullmatch(r"    class n\d+(,n\d+)* s_[a-z]+", line) or node.fullmatch(line), line


def test_mermaid_is_small_enough_for_its_readers() -> None:
    for count in (200, 1000, 5000):
        text = mermaid.write(big(count))
        assert len(text) < 50_000
        assert len(re.findall(r"-->|==>|\.->", text)) < 500


def test_no_name_ends_its_string_in_dot_or_is_an_escape_of_it() -> None:
    assert dot.quoted('a"b\\N') == r'"a\"b\\N"'


def test_dot_is_one_graph_of_quoted_names() -> None:
    text = dot.write(hostile())
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert "script" not in bare
    assert bare.count("{") == bare.count("}") == 1
    assert "<" not in bare


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("drawn", [some(), hostile(), big(300)], ids=["some", "hostile", "big"])
def test_graphviz_takes_it(drawn: Scene) -> None:
    done = subprocess.run(
        ["dot", "-Tplain"], input=dot.write(drawn).encode(), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def traced(drawn: Scene) -> list[dict[str, Any]]:
    found = json.loads(perfetto.write(drawn))
    assert set(found) == {"traceEvents", "displayTimeUnit", "otherData"}
    return list(found["traceEvents"])


@pytest.mark.parametrize("drawn", [some(), hostile(), big(2000), scene()], ids=["some", "hostile", "big", "empty"])
def test_trace_events_have_the_form_of_their_format(drawn: Scene) -> None:
    events = traced(drawn)
    by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        by_kind[event["ph"]].append(event)
    assert set(by_kind) <= set("MXbesfC")
    for event in events:
        if event["ph"] != "M":
            assert isinstance(event["ts"], int)
            assert event["ts"] >= 0
    lanes: defaultdict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in by_kind["X"]:
        assert event["dur"] >= 1
        lanes[event["pid"], event["tid"]].append(event)
    named = {(event["pid"], event["tid"]) for event in by_kind["M"] if event["name"] == "thread_name"}
    assert set(lanes) == named
    for lane in lanes.values():
        ordered = sorted(lane, key=lambda event: int(event["ts"]))
        assert all(one["ts"] + one["dur"] <= other["ts"] for one, other in pairwise(ordered))
    begun = {event["id"]: event["ts"] for event in by_kind["b"]}
    assert {event["id"]: event["ts"] >= begun[event["id"]] for event in by_kind["e"]} == dict.fromkeys(begun, True)
    for kind in "sf":
        for event in by_kind[kind]:
            around = [
                one for one in lanes[event["pid"], event["tid"]] if one["ts"] <= event["ts"] < one["ts"] + one["dur"]
            ]
            assert len(around) == 1
    assert [event["id"] for event in by_kind["s"]] == [event["id"] for event in by_kind["f"]]
    assert all(event["args"]["tasks"] >= 0 for event in by_kind["C"])
    assert len(by_kind["X"]) == sum(one.begin is not None for each in drawn.inside for one in each.attempts)


def test_waiting_is_told_before_between_and_after_attempts() -> None:
    tries = (
        Attempt(1, "w-1", "failure", BEGAN + 2, BEGAN + 3, 1.0),
        Attempt(2, "w-1", "failure", BEGAN + 5, BEGAN + 6, 1.0),
    )
    events = traced(scene(task("a", state="waiting", attempts=tries, since=BEGAN), at=10))
    spans: dict[int, list[int]] = {}
    for event in events:
        if event["ph"] in "be":
            spans.setdefault(event["id"], []).append(event["ts"] // 1_000_000)
    assert list(spans.values()) == [[0, 2], [3, 5], [6, 10]]


def test_a_task_of_which_nobody_knows_when_it_came_waits_from_the_end_of_what_it_came_after() -> None:
    events = traced(scene(ran("a", 0, 10), ran("b", 0, 20), ran("c", 25, 30, "a", "b", since=None)))
    assert [(event["ph"], event["ts"]) for event in events if event["ph"] in "be"] == [
        ("b", 20_000_000),
        ("e", 25_000_000),
    ]


def test_a_dependency_is_an_arrow_from_end_to_begin() -> None:
    events = traced(scene(ran("a", 0, 10), ran("b", 11, 12, "a"), ran("early", 1, 2, "a")))
    arrows = [(event["ph"], event["ts"]) for event in events if event["ph"] in "sf"]
    assert arrows == [("s", 9_999_999), ("f", 11_000_000)]


def test_attempts_that_are_too_short_to_be_seen_are_one_bar_that_counts_them() -> None:
    many = [ran(f"t{n}", n / 100, n / 100 + 0.01, status="failure" if n == 50 else "success") for n in range(100)]
    text = timeline_svg.draw(scene(ran("long", 0, 1000, worker="w-2"), *many))
    assert "100 attempts: 99 success, 1 failure" in text
    assert "101 attempts" in text
    assert text.count("<rect") < 20


def test_a_gap_says_how_long_nothing_ran() -> None:
    text = timeline_svg.draw(scene(ran("a", 0, 60), ran("b", 8000, 8060)))
    assert "nothing ran for 2 h 12 m" in text


def test_a_box_shows_its_state_in_colour_sign_and_word() -> None:
    text = graph_svg.draw(scene(task("a", state="failed")))
    assert 'class="f-failed"' in text
    assert ">✗<" in text
    assert "1 failed" in text


def test_a_group_says_how_many_tasks_it_holds() -> None:
    text = graph_svg.draw(scene(*(task(f"t{number}") for number in range(201))))
    assert ">201 tasks<" in text
    assert "201 of them folded into 1 group" in text
    many = scene(*(task(f"t{number}", type=f"k{number % 2}") for number in range(400)))
    assert "400 of them folded into 2 groups" in graph_svg.draw(many)


def test_everything_but_markup_is_escaped() -> None:
    assert tag("a", "<b>", tag("i", "&"), class_="\"'", view_Box=None) == (
        '<a class="&quot;&#39;">&lt;b&gt;<i>&amp;</i></a>'
    )
    assert tag("p", Markup("<b>"), data_x=1.25) == '<p data-x="1.2"><b></p>'
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert lines("a\n<\x07") == "a\n&lt;\\x07"


def test_a_long_text_is_cut_in_its_middle_and_a_short_place_shows_the_beginning() -> None:
    assert clip("a" * 30 + "z" * 30, 22) == "a" * 14 + "…" + "z" * 7
    assert clip("abcdefghijklmnop", 8) == "abcdefg…"
    assert clip("abc", 3) == "abc"
    assert columns(clip("漢" * 50, 20)) <= 20
    assert columns(clip(EVIL, 30)) <= 30


def test_a_log_is_shown_as_a_terminal_without_colours_has_it() -> None:
    data = b"\x1b[31mred\x1b[0m\r\n10%\r100%\n\x1b]0;title\x07x\x1bPq\x1b\\y\x1b(Bz\tt\xff\x9b\n\xe2\x80\xae!\n\n"
    assert log_text(data) == "red\n100%\nxyz    t\ufffd\ufffd\n\\u202e!"
    assert log_text("\x9b31mred\x9d0;t\x9cx".encode()) == "redx"
    assert visible("a\nb") == "a\\nb"


def test_the_sentence_of_an_attempt_names_what_is_known() -> None:
    one = Attempt(2, "w-1", RUNNING, BEGAN, None, tokens=12, cost_usd=0.5, model="m", exit_code=3)
    text = timeline_svg.draw(scene(task("a", state="claimed", name="A task", attempts=(one,)), at=90))
    assert "a (A task), attempt 2: running, 1 m 30 s; on w-1; exit code 3; tokens 12; USD 0.5000; model m" in text


def test_a_report_says_what_the_children_of_a_task_came_to() -> None:
    alone = ran("alone", 0, 1, total=Total(attempts=1, tokens_used=3.0, cost_usd=0.125))
    assert "with children" not in report_html.write(scene(alone))
    planned = ran("plan", 0, 1, total=None, tree=(4, 1234.0, 2.5))
    text = report_html.write(scene(alone, planned))
    assert "with children: tasks" in text
    for figure in ("1,234", "2.5", "0.125"):
        assert figure in text
