"""`spool graph`, `timeline` and `report`: formats, files, errors, and the numbers of `status` and `show`."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spoold.faces.cli.terminal.local_files import save
from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from tests.cli.command import make
from tests.cli.commands import spool
from tests.cli.test_verbs import end, put

TIMES = {"started_at": "2026-01-01T00:00:01Z", "completed_at": "2026-01-01T00:00:05Z"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    end(root, "good", tokens_used=1234, cost_usd=0.5, **TIMES)
    end(root, "bad", "failed", **TIMES)
    put(root, "ready/type=t/5000.0000000001-1.open.a1f0c0.json", {"id": "open", "type": "t", "batch": "b1"})
    put(root, "ready/type=t/5000.0000000001-1.other.a1f0c0.json", {"id": "other", "type": "t", "batch": "b2"})
    (root / "logs" / "bad.1.w-aaaaa.log").write_text("</pre><script>alert(1)</script>\n")
    return root


def test_a_graph_is_svg_unless_another_format_is_named(root: Path) -> None:
    plain = spool("graph", "b1", root=root)
    assert plain.code == 0
    assert ElementTree.fromstring(plain.out).tag.endswith("svg")
    assert plain.out == spool("graph", "b1", "--svg", root=root).out
    assert spool("graph", "b1", "--mermaid", root=root).out.startswith("flowchart LR\n")
    assert spool("graph", "b1", "--dot", root=root).out.startswith('digraph "batch b1" {\n')


def test_a_timeline_is_of_a_batch_or_of_all(root: Path) -> None:
    end(root, "elsewhere", **TIMES)
    put(root, "completed/elsewhere.1.w-aaaaa.json", {"id": "elsewhere", "type": "t", "batch": "b2"})
    one, every = (spool(*words, root=root).out for words in (("timeline", "b1"), ("timeline",)))
    assert "Timeline of batch b1" in one
    assert "2 attempts" in one
    assert "Timeline of all tasks" in every
    assert "3 attempts" in every
    trace = json.loads(spool("timeline", "b1", "--perfetto", root=root).out)
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 2


def test_all_adds_the_archive_and_a_batch_always_has_it(root: Path) -> None:
    end(root, "old", **TIMES)
    bucket = root / layout.bucket("old")
    bucket.mkdir(parents=True)
    (root / "completed" / "old.1.w-aaaaa.json").rename(bucket / "old.1.w-aaaaa.completed.json")
    (root / "results" / "old.1.w-aaaaa.json").rename(bucket / "old.1.w-aaaaa.result.json")
    assert "2 attempts" in spool("timeline", root=root).out
    assert "3 attempts" in spool("timeline", "--all", root=root).out
    assert "3 attempts" in spool("timeline", "b1", root=root).out


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("graph", "b1", "--svg", "--dot"), "--mermaid"),
        (("graph", "b1", "--mermaid", "--dot"), "--mermaid"),
        (("timeline", "--svg", "--perfetto"), "--perfetto"),
    ],
)
def test_two_formats_at_once_are_refused(root: Path, words: tuple[str, ...], fix: str) -> None:
    done = spool(*words, root=root)
    assert (done.code, done.out) == (2, "")
    assert "give one of" in done.err
    assert fix in done.err


@pytest.mark.parametrize("words", [("graph", "b"), ("timeline", "b"), ("report", "b", "-o", "-")])
def test_an_unknown_batch_is_not_found(root: Path, words: tuple[str, ...]) -> None:
    done = spool(*words, root=root)
    assert (done.code, done.out) == (4, "")
    assert "Did you mean --batch b" in done.err


def test_a_picture_goes_into_a_file_and_a_dash_is_stdout(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "g.svg"
    assert spool("graph", "b1", "-o", str(file), root=root).out == ""
    assert file.read_text(encoding="utf-8") == spool("graph", "b1", "-o", "-", root=root).out
    done = spool("report", "b1", "-o", str(tmp_path / "no" / "r.html"), root=root)
    assert done.code == 2
    assert "-o" in done.err
    assert "cannot be written: No such file or directory" in done.err


@pytest.mark.parametrize(
    ("words", "old"),
    [
        (("report", "b1"), "--html"),
        (("status",), "--html"),
        (("trace", "export", "b1"), "--out"),
        (("metrics",), "--textfile"),
    ],
)
def test_a_file_is_named_by_o_and_the_older_word_works_with_a_remark(
    root: Path, tmp_path: Path, words: tuple[str, ...], old: str
) -> None:
    new, before = tmp_path / "new", tmp_path / "before"
    assert spool(*words, "-o", str(new), root=root).code == 0
    done = spool(*words, old, str(before), root=root)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[0] == f"spool: {old} FILE is written -o FILE now"
    assert min(new.stat().st_size, before.stat().st_size) > 100
    assert f"{old} " not in spool(words[0], "--help").out
    both = spool(*words, "-o", str(new), old, str(before), root=root)
    assert (both.code, f"has -o and {old}" in both.err) == (2, True)
    assert len(spool(*words, "-o", "-", root=root).out) > 100


def test_a_file_that_cannot_be_written_is_no_error_of_the_spool(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="name a file"):
        save("x", str(tmp_path))


def test_a_report_has_the_numbers_of_status_and_of_show(root: Path) -> None:
    text = unescape(re.sub(r"<[^>]*>", " ", spool("report", "b1", "-o", "-", root=root).out))
    words = " ".join(text.split())
    status = json.loads(spool("status", "--batch", "b1", "--json", root=root).out)
    assert f"{status['ended']} of {status['total']} tasks ended" in words
    for state, count in status["tasks"].items():
        assert (re.search(rf" {count} \S {state} ", words) is not None) == bool(count), state
    spent = status["spent"]
    assert f"{spent['attempts']} attempts" in words
    assert f"{spent['duration_s']:.1f} s of run time" in words
    assert f"{spent['tokens_used']:,} tokens" in words
    assert f"{spent['cost_usd']:.4f} USD" in words
    for cause in status["causes"]:
        assert f"{cause['count']} {cause['code']} {cause['message']} {', '.join(cause['ids'])}" in words
    shown = json.loads(spool("show", "bad", "--json", root=root).out)
    assert shown["reason"] in words


def test_a_report_shows_a_log_as_text(root: Path) -> None:
    page = spool("report", "b1", "-o", "-", root=root).out
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_looking_changes_nothing_in_the_spool(root: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    before = everything()
    for words in (("graph", "b1"), ("timeline",), ("report", "b1", "-o", "-")):
        assert spool(*words, root=root).code == 0
    assert everything() == before
