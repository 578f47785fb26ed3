"""What is said of pace and of what went wrong: nothing stale, nothing foretold that was not seen."""

from __future__ import annotations

from spoold.protocol.result import Total
from spoold.protocol.snapshot import History, Minute, Node, Rates, Recent, Snapshot, TaskCounts
from spoold.rules.cluster.recent_minutes import CAUSES, KEPT, WORDS_MAX, RecentMinutes
from spoold.rules.cluster.throughput import Left, Tally, Tempo

LEFT = Left(tasks=10, slots=2)


def looks(tempo: Tempo, *counts: tuple[float, int, int], left: Left = LEFT, working: bool = True) -> Rates:
    """The rates at the last of several looks: (at, completed, failed)."""
    return [tempo.rates(at, completed, failed, left, working=working) for at, completed, failed in counts][-1]


def test_a_rate_is_over_at_least_a_minute_and_an_end_over_what_was_seen() -> None:
    rates = looks(Tempo(), (0, 100, 7), (30, 104, 8))
    assert (rates.completed_per_min, rates.failed_per_min) == (4.0, 1.0)
    rates = looks(Tempo(), (0, 100, 7), (30, 106, 8))
    assert (rates.eta_s, rates.eta_unknown) == (50.0, "")


def test_a_rate_of_enough_tasks_is_over_what_was_seen() -> None:
    """P14: it was at first the count so far, 18 where 120 was true."""
    rates = looks(Tempo(), (0, 0, 0), (9, 18, 1))
    assert (rates.completed_per_min, rates.failed_per_min) == (120.0, 1.0)
    assert looks(Tempo(), (0, 0, 0), (0.5, 5, 0)).completed_per_min == 60.0, "at least five seconds"


def test_what_nothing_has_confirmed_for_two_minutes_is_no_rate() -> None:
    tempo = Tempo()
    assert looks(tempo, (0, 0, 0), (60, 6, 2), (179, 6, 2)).completed_per_min > 0
    rates = looks(tempo, (180, 6, 2))
    assert (rates.completed_per_min, rates.failed_per_min, rates.eta_s) == (0, 0, None)
    assert rates.eta_unknown == "no task has completed lately"


def test_old_looks_are_forgotten() -> None:
    tempo = Tempo()
    rates = looks(tempo, (0, 0, 0), (10, 600, 0), (200, 601, 0), (310, 607, 0), (400, 608, 0))
    assert rates.completed_per_min == round(7 / (200 / 60), 2)


def test_too_few_samples_foretell_nothing() -> None:
    assert looks(Tempo(), (0, 0, 0), (60, 4, 0)).eta_unknown == "too few tasks have completed lately"
    many = Left(tasks=10, slots=24)
    assert looks(Tempo(), (0, 0, 0), (60, 23, 0), left=many).eta_s is None
    assert looks(Tempo(), (0, 0, 0), (60, 24, 0), left=many).eta_s == 25.0


def test_the_time_before_the_work_began_says_nothing_of_its_pace() -> None:
    tempo = Tempo()
    looks(tempo, (0, 0, 0), (250, 0, 0), working=False)
    rates = looks(tempo, (251, 0, 0), (260, 10, 0))
    assert rates.eta_s == 10.0


def test_no_end_is_foretold_for_what_cannot_run() -> None:
    for left, why in (
        (Left(10, unservable=3, slots=2), "no worker can run 3 of 10 tasks"),
        (Left(1, unservable=1, slots=2), "no worker can run 1 of 1 task"),
        (Left(10, held="tasks are paused", unservable=3), "tasks are paused"),
    ):
        rates = looks(Tempo(), (0, 0, 0), (60, 60, 0), left=left)
        assert (rates.eta_s, rates.eta_unknown) == (None, why)
        assert rates.completed_per_min == 60


def test_no_end_is_foretold_while_all_that_is_left_waits_for_something_else() -> None:
    """A task whose `not_before` is an hour away was to end in about 0 s, at the pace of those before it."""
    tempo = Tempo()
    looks(tempo, (0, 0, 0), (50, 60, 0))
    rates = looks(tempo, (60, 60, 0), left=Left(1, slots=2), working=False)
    assert (rates.eta_s, rates.eta_unknown) == (None, "no task is ready or runs")


def test_nothing_left_needs_no_end() -> None:
    rates = looks(Tempo(), (0, 0, 0), (60, 60, 0), left=Left())
    assert (rates.eta_s, rates.eta_unknown) == (None, "")


def test_archived_tasks_that_are_deleted_make_no_negative_rate() -> None:
    assert looks(Tempo(), (0, 100, 9), (10, 101, 10), (20, 50, 2)).completed_per_min == 0


def test_causes_are_counted_from_what_nodes_say_more() -> None:
    tally = Tally()
    tally.hear(0, "old", 40, {"TIMEOUT": 100})  # of before this leader's time
    tally.hear(0, "new", 0, {"STALLED": 1})
    tally.hear(5, "old", 41, {"TIMEOUT": 103, "STALLED": 1})
    tally.hear(20, "new", 7, {"STALLED": 3})
    tally.ended(30, {"WORKER_DIED": 1})
    tally.rejected(30, {"is empty.": 2})
    recent = tally.recent(30)
    assert list(recent.failed_attempts.items()) == [("STALLED", 4), ("TIMEOUT", 3), ("WORKER_DIED", 1)]
    assert (recent.over_s, recent.rejections) == (600, {"is empty.": 2})


def test_causes_age_out_and_are_few() -> None:
    tally = Tally()
    tally.ended(0, {f"C{number}": 1 for number in range(9)})
    assert len(tally.recent(600).failed_attempts) == 8
    assert tally.recent(601).failed_attempts == {}
    tally.ended(601, {})
    assert tally.recent(601).failed_attempts == {}


def test_a_node_that_left_and_one_that_comes_under_its_name_are_counted_anew() -> None:
    tally = Tally()
    tally.hear(0, "w", 0, {"TIMEOUT": 5})
    tally.forget("w")
    tally.forget("w")
    tally.hear(1, "w", 0, {"TIMEOUT": 2})
    assert tally.recent(1).failed_attempts == {"TIMEOUT": 7}


NINE = 1_770_022_800.0  # 2026-02-02T09:00:00Z


def stamp(minute: float) -> str:
    return f"2026-02-02T09:{int(minute):02}:{round(minute % 1 * 60):02}.000Z"


def left_behind(minutes: tuple[Minute, ...], until: float, **more: object) -> Snapshot:
    """The snapshot of a leader that had counted 500 completed and 50 failed tasks."""
    history = History(since=stamp(0), until=stamp(until), minutes=minutes)
    counts = TaskCounts(completed=500, failed=50)
    return Snapshot(generated_at="", spool_id="s", tasks=counts, history=history, **more)


def test_a_new_leader_goes_on_with_the_rates_of_the_last_one() -> None:
    minutes = tuple(Minute(at=stamp(number), completed=60, failed=2) for number in range(10, 20))
    tempo = Tempo()
    tempo.begin(1000.0, NINE + 20.5 * 60, left_behind(minutes, 20))
    rates = looks(tempo, (1000, 510, 51))
    # It has seen the five minutes before 09:20:30 but for the first half; nobody led for the last.
    assert (rates.completed_per_min, rates.failed_per_min) == (round(250 / 4.5, 2), round(9 / 4.5, 2))
    assert rates.eta_unknown == ""
    late = Tempo()
    late.begin(1000.0, NINE + 40 * 60, left_behind(minutes, 20))
    assert looks(late, (1000, 500, 50)).completed_per_min == 0, "what is 20 minutes old is no rate"


def test_moments_that_nobody_can_read_are_passed_over() -> None:
    """A snapshot is what a foreign leader may have written as well."""
    minutes = (Minute(at="soon", completed=9, attempts={"TIMEOUT": 9}), Minute(at=stamp(19), attempts={"TIMEOUT": 1}))
    left = left_behind(minutes, 20)
    tally = Tally()
    tally.begin(1000.0, NINE + 20 * 60, left)
    assert tally.recent(1000.0).failed_attempts == {"TIMEOUT": 1}
    again = RecentMinutes()
    before = left.history.model_copy(update={"minutes": (*minutes, Minute(at=stamp(3), completed=5))})
    again.begin(before, 0, 0, [])
    assert [one.at for one in again.said(NINE + 20 * 60).minutes] == [stamp(19)]
    tempo = Tempo()
    tempo.begin(1000.0, NINE, left.model_copy(update={"history": left.history.model_copy(update={"until": "late"})}))
    assert looks(tempo, (1000, 500, 50)).completed_per_min == 0


def test_words_of_failures_are_few() -> None:
    minutes = RecentMinutes()
    for number in range(WORDS_MAX + 9):
        minutes.failures(NINE, {f"C{number}": 1})
    minutes.failures(NINE, {"C0": 1})
    said = minutes.said(NINE + 1).minutes[0].attempts
    assert len(said) == CAUSES
    assert said["C0"] == 2


def test_a_leader_that_watched_an_idle_pool_says_so_to_the_next() -> None:
    tempo = Tempo()
    tempo.begin(1000.0, NINE + 20 * 60, left_behind((Minute(at=stamp(19), completed=60),), 20))
    assert looks(tempo, (1000, 500, 50)).completed_per_min == 12.0, "60 within five minutes"


def test_a_new_leader_remembers_the_failures_of_the_last_minutes() -> None:
    """N17: "failed in the last 10 m" forgot at a change of leader."""
    minutes = (
        Minute(at=stamp(5), attempts={"OLD": 1}),
        Minute(at=stamp(18), attempts={"TIMEOUT": 3}, rejected=2, drops={"is empty.": 2}),
    )
    nodes = (
        Node(worker="w", host="", state="idle", slots=1, running=0, cpus=1, mem_mb=1, mem_available_mb=1, load=0),
    )
    nodes = (nodes[0].model_copy(update={"endings": {"TIMEOUT": 7}}),)
    tally = Tally()
    tally.begin(1000.0, NINE + 20 * 60, left_behind(minutes, 19.5, nodes=nodes))
    assert tally.hear(1000.0, "w", 90, {"TIMEOUT": 9}) == {"TIMEOUT": 2}, "two while nobody led"
    wanted = Recent(failed_attempts={"TIMEOUT": 5}, rejections={"is empty.": 2})
    assert tally.recent(1000.0) == wanted
    assert tally.recent(1000.0 + 481 + 60).failed_attempts == {"TIMEOUT": 2}, "these are younger"


def test_minutes_merge_over_changes_of_the_leader_and_are_bounded() -> None:
    first = RecentMinutes()
    first.counted(NINE, 10, 1)
    first.counted(NINE + 20, 14, 1)
    first.failures(NINE + 21, {"TIMEOUT": 1})
    first.spent(NINE + 30, "w", 0, Total(attempts=1, tokens_used=100, cost_usd=0.5))
    first.spent(NINE + 61, "old", 40, Total(attempts=9, tokens_used=900))
    said = first.said(NINE + 62)
    assert said.minutes == (Minute(at=stamp(0), completed=4, attempts={"TIMEOUT": 1}, tokens_used=100, cost_usd=0.5),)
    node = Node(worker="w", host="", state="idle", slots=1, running=0, cpus=1, mem_mb=1, mem_available_mb=1, load=0)
    node = node.model_copy(update={"spent": Total(attempts=1, tokens_used=100, cost_usd=0.5)})
    second = RecentMinutes()
    second.begin(said, 14, 1, [node])
    second.counted(NINE + 50, 16, 1)
    second.spent(NINE + 130, "w", 9, Total(attempts=2, tokens_used=130, cost_usd=0.75))
    second.rejections(NINE + 10, {"is empty.": 2})  # a clock that was set back
    again = second.said(NINE + 130)
    assert [(one.completed, one.rejected, one.tokens_used, one.cost_usd) for one in again.minutes] == [
        (6, 0, 100, 0.5),
        (0, 2, 30, 0.25),
    ]
    assert again.since == said.since
    assert [one.drops for one in second.said(NINE + 13 * 60).minutes] == [{}, {}], "sentences are kept for 10 minutes"
    for number in range(100):
        second.failures(NINE + 60 * number, {f"C{number}": 1})
    assert len(second.said(NINE + 99 * 60).minutes) == KEPT
    assert second.said(NINE + 500 * 60).minutes == ()
