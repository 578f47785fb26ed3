"""Who has a slot of a worker, and who gets one back."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given

from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.rules.workers.slots import Held, demands, full_depths, given_back, lent_now

LANE = Lane("t", cpus=2, mem_mb=100)
CAN = Capabilities(cpus=4, mem_mb=1000)


def held(key: str, *, lent: bool = False, waits: bool = False, asks: bool = False, depth: int = 0) -> Held:
    return Held(key, LANE, depth, lent, waits, asks)


def test_who_waits_lends_its_slot_and_its_cpus_and_keeps_its_memory() -> None:
    (one, two) = lent_now([held("a", waits=True), held("b")])
    assert (one.lent, two.lent) == (True, False)
    assert demands([one, two]) == [Lane("t", cpus=0, mem_mb=100), LANE]


def test_who_asks_has_lent_it_until_it_is_given_back_and_who_lost_its_waiting_process_has_it_again() -> None:
    asks, gone, never = lent_now([held("a", lent=True, asks=True), held("b", lent=True), held("c", asks=True)])
    assert (asks.lent, gone.lent, never.lent) == (True, False, False)


def test_a_slot_comes_back_when_one_is_free_to_who_asked_first() -> None:
    asking = [held("a", lent=True, asks=True), held("b", lent=True, asks=True), held("c")]
    assert given_back(asking, CAN, 1) == []
    assert given_back(asking, CAN, 2) == ["a"]
    assert given_back(asking[:2], CAN, 2) == ["a", "b"]
    assert given_back(asking[1:2], CAN, 1) == ["b"]


def test_nobody_passes_one_for_whom_cpus_are_missing() -> None:
    small = replace(held("b", lent=True, asks=True), lane=Lane("t"))
    running = replace(held("c"), lane=Lane("t", cpus=3))
    assert given_back([held("a", lent=True, asks=True), small, running], CAN, 8) == []
    assert given_back([small, running], CAN, 8) == ["b"]


def test_a_depth_is_full_when_so_many_of_it_have_lent() -> None:
    found = [held("a", lent=True), held("b", lent=True), held("c"), held("d", lent=True, depth=1)]
    assert full_depths(found, 2) == {0}
    assert full_depths(found, 3) == set()


steps = st.lists(st.tuples(st.sampled_from(["begin", "lend", "ask", "end", "look"]), st.integers(0, 5)), max_size=60)


@given(st.integers(1, 3), steps)
def test_never_more_than_the_slots_go_on_and_whoever_asks_gets_one_when_the_others_end(
    slots: int, story: list[tuple[str, int]]
) -> None:
    now: dict[str, Held] = {}
    for number, (what, whom) in enumerate(story):
        key = sorted(now)[whom % len(now)] if now else ""
        if what == "begin" and sum(not one.lent for one in now.values()) < slots:
            now[f"{number:02}"] = replace(held(""), key=f"{number:02}", lane=Lane("t"))
        elif what == "lend" and key and not now[key].asks:
            now[key] = replace(now[key], waits=True)
        elif what == "ask" and key and now[key].waits:
            now[key] = replace(now[key], waits=False, asks=True)
        elif what == "end" and key and not now[key].lent:
            del now[key]
        now = _look(now, slots)
    while any(one.lent for one in now.values()):
        for key, one in list(now.items()):
            if not one.lent:
                del now[key]
            elif one.waits:
                now[key] = replace(one, waits=False, asks=True)
        now = _look(now, slots)


def _look(now: dict[str, Held], slots: int) -> dict[str, Held]:
    found = lent_now(list(now.values()))
    back = set(given_back(found, Capabilities(cpus=99), slots))
    now = {one.key: replace(one, lent=False, asks=False) if one.key in back else one for one in found}
    now = {key: one if one.lent else replace(one, asks=False) for key, one in now.items()}
    assert sum(not one.lent for one in now.values()) <= slots
    return now
