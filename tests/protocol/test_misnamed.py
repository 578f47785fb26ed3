"""Names that look like a task's and are none: each fault is said, and nothing else has one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.lifecycle import State
from spoold.protocol.names import parse_ended, parse_returned, parse_task
from spoold.protocol.request import Verb, parse_request
from spoold.protocol.settings_change import parse_change
from spoold.protocol.wrong_names import fault, of_change, of_request

GOOD = "4990.hff58yhhc0-3.build.a2f1c0r1500d.json"
BACK = "4990.hff58yhhc0-3.build.a2f1c0r789.laptop1-7f3a.json"
ENDED = "build.2.laptop1-7f3a.json"


@pytest.mark.parametrize(
    ("state", "name", "words"),
    [
        (State.READY, "4990.hff58yhhc0-3.build.a2f1c0r0.json", "r0: leave out"),
        (State.RETURNED, "4990.hff58yhhc0-3.build.a2f1c0r0.laptop1-7f3a.json", "r0: leave out"),
        (State.READY, "build.json", "is not RANK.ORDER.ID.aAfFcC[rMS][d].json"),
        (State.RETURNED, GOOD, "is not RANK.ORDER.ID.aAfFcC[rMS][d].NODE.json"),
        (State.RETURNED, "build.json", "[d].NODE.json"),
        (State.CLAIMED, "499.hff58yhhc0-3.build.a2f1c0.json", "rank '499': write four digits"),
        (State.CLAIMED, "4990.HFF-3.build.a2f1c0.json", "order 'HFF-3': write ten digits"),
        (State.CLAIMED, "4990.hff58yhhc0-3.-x.a2f1c0.json", "id '-x'"),
        (State.RETURNED, "4990.hff58yhhc0-3.build.a2f1c0.Laptop.json", "node 'Laptop'"),
        (State.WAITING, "4990.hff58yhhc0-3.build.a2f1.json", "has 'a2f1' where aAfFcC[rMS][d] belongs"),
        (State.WAITING, "4990.hff58yhhc0-3.build.a02f1c0.json", "'02' for attempt a: write it without leading zeros"),
        (State.WAITING, f"4990.hff58yhhc0-3.build.a1f{'1' * 10}c0.json", "for failures f: at most 9 digits"),
        (State.WAITING, f"4990.hff58yhhc0-3.build.a1f1c0r{'1' * 13}.json", "for rest r: at most 12 digits"),
        (State.WAITING, "4990.hff58yhhc0-3.build.a1f1c0r00.json", "'00' for rest r: write it without leading zeros"),
        (State.COMPLETED, "build.json", "is not ID.ATTEMPT.DECIDER.json"),
        (State.FAILED, "build.02.laptop1-7f3a.json", "attempt '02': write 1 to 9 digits"),
        (State.FAILED, "build.2.Laptop.json", "decider 'Laptop'"),
        (State.FAILED, "-b.2.laptop1-7f3a.json", "id '-b'"),
    ],
)
def test_what_is_wrong_is_said(state: State, name: str, words: str) -> None:
    found = fault(state, name)
    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (State.READY, GOOD),
        (State.RETURNED, BACK),
        (State.COMPLETED, ENDED),
        (State.READY, ".DS_Store"),
        (State.READY, ".x.json"),
        (State.READY, "notes.txt"),
    ],
)
def test_what_is_right_or_a_strangers_has_no_fault(state: State, name: str) -> None:
    assert fault(state, name) is None


@given(
    st.text(alphabet="a01r.fcd-xZ", max_size=30)
    | st.from_regex(r"[0-9]{4}\.[0-9a-z]{10}-1\.x\.a[0-9]+f0c0(r[0-9]+)?d?(\.n)?")
)
def test_a_name_parses_or_has_a_fault(stem: str) -> None:
    name = f"{stem}.json"
    if name.startswith("."):
        return
    assert (fault(State.READY, name) is None) == (parse_task(name) is not None)
    assert (fault(State.RETURNED, name) is None) == (parse_returned(name) is not None)
    assert (fault(State.FAILED, name) is None) == (parse_ended(name) is not None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("notes.txt", "is not VERB.TARGET.UNIQUE.json"),
        ("cancel", "is not VERB.TARGET.UNIQUE.json"),
        ("cancel.a.1", "is not VERB.TARGET.UNIQUE.json"),
        ("cancel.a.json", "is not VERB.TARGET.UNIQUE.json"),
        ("explode.a.1.json", "is not VERB.TARGET.UNIQUE.json"),
        ("cancle.a.1.json", "has the verb 'cancle': write cancel if you meant that"),
        ("CANCEL.a.1.json", "has the verb 'CANCEL': write cancel if you meant that"),
        ("cancel.a.UPPER.json", "has 'UPPER' as UNIQUE: write 1 to 40 characters of a-z, 0-9 and -"),
        ("cancel.+all.1.json", "has the target '+all': cancel is for a single one"),
        ("halt.a.1.json", "has the target 'a': halt is for the whole spool alone: write +all"),
        ("cancel.-a.1.json", "has the target '-a': it is not an id"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(name: str, words: str) -> None:
    found = of_request(name)
    assert found is not None
    assert words in found


@given(
    st.sampled_from([*Verb, "x", "Cancel", ""]),
    st.sampled_from(["a", "+all", "-", "", "a.b"]) | st.text(max_size=5),
    st.sampled_from(["1", "UP", "", "a_b", "x" * 41]) | st.text(max_size=5),
    st.sampled_from([".json", "", ".JSON", ".json.tmp"]),
)
def test_a_name_in_control_is_a_request_or_has_a_fault(verb: str, target: str, unique: str, end: str) -> None:
    name = f"{verb}.{target}.{unique}{end}"
    assert (of_request(name) is None) == (parse_request(name) is not None or name.startswith("."))


@given(st.from_regex(r"[0-9]{0,10}\.?[a-zA-Z_-]{0,41}(\.json)?", fullmatch=True))
def test_a_name_in_settings_is_a_change_or_has_a_fault_or_is_a_strangers(name: str) -> None:
    strange = name.startswith(".") or not name.endswith(".json")
    assert (of_change(name) is None) == (parse_change(name) is not None or strange)
