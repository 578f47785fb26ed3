"""Who is dead: a beat that stands still while the observer itself was awake and could see."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.rules.liveness import Watch

INTERVAL, DEAD_AFTER = 5.0, 15.0


def watch() -> Watch:
    return Watch(INTERVAL, DEAD_AFTER)


def test_a_node_whose_beat_stands_still_is_dead_after_the_time_and_not_before() -> None:
    observer = watch()
    for second in range(15):
        observer.look({"w": 7}, (), 100.0 + second)
        assert observer.dead() == []
        assert observer.silent_s("w") == second
    observer.look({"w": 7}, (), 115.0)
    assert observer.dead() == ["w"]


def test_a_new_beat_is_life_even_if_it_is_lower() -> None:
    observer = watch()
    for second in range(40):
        observer.look({"w": 9 - second // 10}, (), float(second))
        assert observer.dead() == []


def test_an_observer_that_was_asleep_has_proved_nothing() -> None:
    observer = watch()
    observer.look({"w": 1}, (), 0.0)
    observer.look({"w": 1}, (), 1_000_000.0)
    assert observer.silent_s("w") == INTERVAL
    assert observer.dead() == []


def test_a_look_that_failed_proves_nothing() -> None:
    observer = watch()
    for second in range(0, 100, 5):
        observer.look({"w": 1}, (), float(second))
        observer.untrusted()
    assert observer.silent_s("w") == 0
    assert observer.dead() == []


def test_a_clock_that_goes_backwards_proves_nothing() -> None:
    observer = watch()
    observer.look({"w": 1}, (), 100.0)
    observer.look({"w": 1}, (), 50.0)
    assert observer.silent_s("w") == 0


def test_a_claim_directory_without_a_heartbeat_is_watched_too() -> None:
    observer = watch()
    for second in range(0, 20, 5):
        observer.look({}, ["w"], float(second))
    assert observer.dead() == ["w"]
    observer.look({"w": 1}, ["w"], 20.0)
    assert observer.dead() == []


def test_a_node_that_left_is_forgotten() -> None:
    observer = watch()
    for second in range(0, 20, 5):
        observer.look({"a": 1, "b": 1}, (), float(second))
    assert observer.dead() == ["a", "b"]
    observer.look({"a": 1}, (), 20.0)
    assert observer.dead() == ["a"]
    assert observer.silent_s("b") == 0
    assert observer.silent_s("never seen") == 0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.booleans()), max_size=40))
def test_nobody_is_dead_before_the_observer_has_looked_often_enough(steps: list[tuple[float, bool]]) -> None:
    """Each look counts for one interval at most, so three after the first are the least that prove a death."""
    observer, now, looks = watch(), 0.0, 0
    for passed, trusted in steps:
        now += passed
        if not trusted:
            observer.untrusted()
            continue
        observer.look({"w": 1}, (), now)
        looks += 1
        assert observer.silent_s("w") <= min(now, (looks - 1) * INTERVAL)
        assert not observer.dead() or looks > DEAD_AFTER / INTERVAL
