"""What strangers drop: arbitrary names, kinds and contents for hypothesis, whole or in pieces."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from hypothesis import strategies as st

GOOD = "zz-good"
VALID: tuple[dict[str, Any], ...] = (
    {"command": ["work"]},
    {"id": "dup", "command": ["work"]},
    {"id": "Dup", "type": "code_review", "priority": 1, "timeout": 300, "input": {"code": "x"}, "max_retries": 3},
    {"id": "DUP", "command": ["work"], "dependencies": ["a", "b"], "requires": {"cpus": 1, "labels": ["docker"]}},
    {"id": "a", "command": ["work"], "after": "dup", "not_before": "2030-01-01T00:00:00Z", "env": {"A": "1"}},
    {"id": "b", "command": ["work"], "retry": {"max": 3, "backoff": 1.5, "on": [1]}, "batch": "x", "meta": {"k": []}},
)
FIELDS = sorted(
    {name for task in VALID for name in task} | {"deadline", "pool", "name", "parent", "cwd", "artifacts"}
)
# What JSON can spell and few programs can read.
SPELLINGS = ("1e400", "-1e400", "NaN", "Infinity", "1e-400", "-0", "00", "0x1", "1_000", "18446744073709551616")


@dataclass(frozen=True, slots=True)
class Drop:
    """One drop. pieces: its content in the order in which it appears, one piece a round.

    vanishes: the verb during which the leader finds it taken away again, if any; target: where a link leads.
    """

    name: str
    kind: Literal["file", "dir", "symlink", "fifo"]
    pieces: tuple[bytes, ...]
    vanishes: Literal["", "read", "stat", "rename"] = ""
    target: str = "nowhere"


def _fits(name: str) -> bool:
    return (
        0 < len(os.fsencode(name)) <= 255
        and name not in (".", "..")
        and not {"/", "\0"} & set(name)
        and GOOD not in name
    )


_odd_ends = st.one_of(
    st.sampled_from([".json", ".jsonl", ".whole.jsonl", ".JSON", ".Jsonl", ".jsonl.json", ".whole.jsonl.jsonl"]),
    st.sampled_from(["", ".json.tmp", ".json~", ".json.part", ".reason.json", ".json ", ".json.", ".json\n", ".txt"]),
)
_stems = st.one_of(
    st.sampled_from(["con", "NUL", "com1", "aux.json", ".hidden", "-rf", "*", "a:b", "..a", " ", "a b", "\\", "é"]),
    st.integers(200, 255).map(lambda length: "z" * length),
    st.sampled_from(["5000.hbv8u6fzts-1.a.a1f0c0", "0000000000.dup", "a.1.w1", "1.m1.0", "x.reason", "dup", "Dup"]),
    st.text(st.characters(exclude_characters="/\0", codec="utf-8"), max_size=30),
    st.binary(max_size=20).map(lambda raw: os.fsdecode(raw.replace(b"/", b"").replace(b"\0", b""))),
)
names = st.builds(lambda stem, end: f"{stem}{end}", _stems, _odd_ends).filter(_fits)

_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["dup", "../../etc/passwd", "\ud800", "\0", "con", "-1", "2030-13-45"]),
)
values = st.recursive(
    _leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=8,
)
_deep = st.builds(
    lambda n, pair: pair[0] * n + pair[1] * n, st.integers(1, 1500), st.sampled_from(["[]", ('{"a":', "}")])
)
_long = st.sampled_from(["9", "-8.7"]).map(lambda digits: digits + "6" * 400)
_raw_values = st.one_of(values.map(json.dumps), st.sampled_from(SPELLINGS), _deep, _long)


def _spell(task: dict[str, Any], changes: list[tuple[str, str]], removed: str) -> bytes:
    """A valid task with some fields said again, otherwise or for the first time; a name may then occur twice."""
    pairs = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in task.items() if name != removed]
    pairs += [f"{json.dumps(name)}: {raw}" for name, raw in changes]
    return ("{" + ", ".join(pairs) + "}").encode(errors="surrogatepass")


_fields = st.one_of(st.sampled_from(FIELDS), st.text(max_size=8))
tasks = st.builds(
    _spell,
    st.sampled_from(VALID),
    st.lists(st.tuples(_fields, _raw_values), max_size=2),
    st.one_of(st.just(""), st.sampled_from(FIELDS)),
)
_odd = st.one_of(
    st.binary(max_size=60),
    _raw_values.map(lambda text: text.encode(errors="surrogatepass")),
    st.sampled_from([b"", b" \n", b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0", b"\0" * 50]),
    st.sampled_from([b"{", b"x", b"[1,", b"\n"]).map(lambda raw: raw * 3000),
    tasks.map(lambda raw: b"\xef\xbb\xbf" + raw),
    tasks.map(lambda raw: raw.decode(errors="replace").encode("utf-16")),
)
_line_ends = st.sampled_from([b"\n", b"\r\n", b"\n\n", b""])
batches = st.builds(
    lambda lines, between, end: between.join(lines) + end,
    st.lists(st.one_of(tasks, st.sampled_from(VALID).map(lambda task: json.dumps(task).encode()), _odd), max_size=4),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    _line_ends,
)
contents = st.one_of(tasks, st.sampled_from(VALID).map(lambda task: json.dumps(task).encode()), batches, _odd)


def _cut(content: bytes, cuts: list[int]) -> tuple[bytes, ...]:
    places = sorted({0, *(cut % (len(content) + 1) for cut in cuts), len(content)})
    pieces = tuple(content[a:b] for a, b in pairwise(places))
    return pieces or (b"",)


drops = st.builds(
    Drop,
    names,
    st.sampled_from(["file"] * 7 + ["dir", "symlink", "fifo"]),
    st.builds(_cut, contents, st.one_of(st.just([]), st.lists(st.integers(0, 10_000), max_size=3))),
    st.sampled_from(["", "", "", "", "read", "stat", "rename"]),
    st.sampled_from(["nowhere", "../spool.json", "../../outside/canary", "../../outside", "."]),
)
boxes = st.lists(drops, max_size=5, unique_by=lambda drop: drop.name)
