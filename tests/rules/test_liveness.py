"""Who is dead: a beat that stands still while the observer itself was awake and could see."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.rules.cluster.liveness import Absence, Watch

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


def looks(observer: Watch, beats: dict[str, int], *at: float) -> None:
    for now in at:
        observer.look(beats, (), now)


def test_after_a_silence_of_the_share_a_node_has_as_long_again_to_come_back() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0, 5.0)
    looks(observer, {"w": 1}, *range(185, 380, 5))  # back after 180 s; until 185 + 180 + 15
    assert observer.dead() == []
    assert observer.returning() == ["w"]
    assert observer.absence.away_s == 180
    looks(observer, {"w": 1}, 380.0)
    assert observer.dead() == ["w"]
    assert observer.returning() == []


def test_a_node_that_was_dead_before_the_silence_has_no_more_time() -> None:
    """One call on a file that a dead SMB client holds takes the server seconds; that says nothing of the client."""
    observer = watch()
    looks(observer, {"w": 1}, 0.0, 5.0, 10.0, 15.0)
    assert observer.dead() == ["w"]
    looks(observer, {"w": 1}, 50.0)
    assert observer.absence.away_s == 35
    assert observer.dead() == ["w"]
    assert observer.returning() == []


def test_a_second_silence_ends_no_time_that_the_first_gave() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0, 5.0, *range(185, 205, 5))  # back after 180 s; until 185 + 180 + 15
    looks(observer, {"w": 1}, *range(215, 380, 5))  # back after 15 s; alone, that would be until 215 + 15 + 15
    assert observer.dead() == []
    assert observer.returning() == ["w"]
    looks(observer, {"w": 1}, 380.0)
    assert observer.dead() == ["w"]


def test_a_beat_that_came_before_the_silence_and_is_seen_after_it_says_nothing() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0)
    looks(observer, {"w": 2}, *range(180, 375, 5))
    assert observer.dead() == []
    looks(observer, {"w": 2}, 375.0)
    assert observer.dead() == ["w"]


def test_a_node_that_was_back_and_fell_silent_again_is_not_on_the_way() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0, 180.0)
    looks(observer, {"w": 2}, 185.0, 190.0, 195.0)
    assert observer.dead() == []
    looks(observer, {"w": 2}, 200.0)
    assert observer.dead() == ["w"]


def test_no_connection_is_tried_less_often_than_every_five_minutes() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0, *range(10_000, 10_315, 5))
    assert observer.dead() == []
    looks(observer, {"w": 1}, 10_315.0)
    assert observer.dead() == ["w"]


def test_a_silence_in_which_each_look_failed_is_one_too() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0)
    observer.untrusted()
    looks(observer, {"w": 1}, *range(60, 130, 5))
    assert observer.dead() == []
    observer.untrusted()
    assert observer.returning() == ["w"]


def test_looks_at_other_things_of_the_same_share_tell_of_its_silences_too() -> None:
    absence = Absence(INTERVAL, DEAD_AFTER)
    standby = Watch(INTERVAL, DEAD_AFTER, absence)
    looks(standby, {"token": 1}, 0.0, 60.0)
    leader = Watch(INTERVAL, DEAD_AFTER, absence)
    looks(leader, {"w": 1}, *range(60, 135, 5))
    assert leader.dead() == []
    looks(leader, {"w": 1}, 135.0)
    assert leader.dead() == ["w"]


def test_a_leader_that_looks_late_is_not_taken_for_one_that_was_away() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0, 10.0, 20.0, 30.0)
    assert observer.absence.away_s == 0
    assert observer.dead() == ["w"]


def test_a_report_of_its_own_host_counts_beside_an_interval_of_silence() -> None:
    """N1: of two machines with one identity each finds only its own processes."""
    observer = watch()
    looks(observer, {"w": 1}, 0.0)
    assert observer.gone(["w", "unknown"]) == ["unknown"]
    looks(observer, {"w": 1}, 3.0)
    assert observer.gone(["w"]) == []
    looks(observer, {"w": 1}, 5.0)
    assert observer.gone(["w"]) == ["w"]
    assert observer.dead() == []


def test_a_beat_that_moves_refutes_the_report_for_good() -> None:
    observer = watch()
    looks(observer, {"w": 1}, 0.0)
    observer.gone(["w"])
    looks(observer, {"w": 2}, 3.0)
    assert observer.refuted == {"w"}
    looks(observer, {"w": 2}, 8.0, 13.0)
    assert observer.gone(["w"]) == []
    looks(observer, {"w": 2}, 18.0)
    assert observer.dead() == ["w"]
    looks(observer, {}, 19.0)
    assert observer.refuted == set()


def test_silence_counts_from_the_end_of_the_look_that_first_showed_the_beat() -> None:
    observer = watch()
    observer.look({"w": 7}, (), 100.0, 104.0)
    observer.look({"w": 8}, (), 104.0, 108.0)  # it may have come at 108
    observer.look({"w": 8}, (), 109.0, 113.0)
    assert observer.silent_s("w") == 1.0
    observer.look({"w": 8}, (), 113.0, 113.5)
    assert observer.silent_s("w") == 5.0
