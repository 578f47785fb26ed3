"""Values that the rules decide about, for hypothesis."""

from collections.abc import Collection

from hypothesis import strategies as st

from spoold.protocol.names import TaskName, encode_order
from spoold.protocol.result import Code
from spoold.rules.attempts import attempt_outcome
from spoold.rules.attempts.attempt_outcome import Outcome
from spoold.rules.attempts.task_policy import RetryPolicy
from spoold.rules.gates.facts import TypeFacts
from spoold.rules.gates.resources import Capacity, Stock

exit_codes = st.one_of(st.sampled_from([0, 1, 64, 65, 75, 77, 78, 126, 127]), st.integers(0, 255))
code_sets = st.frozensets(exit_codes, max_size=4)

policies = st.builds(
    RetryPolicy,
    max=st.integers(0, 5),
    backoff_s=st.floats(0, 1e9),
    factor=st.floats(1, 100),
    jitter=st.floats(0, 1),
    max_backoff_s=st.floats(0, 1e9),
    crash_limit=st.integers(1, 4),
    on=code_sets,
    never=code_sets,
)
failures = st.sampled_from([code for code in Code if code not in (Code.TRY_LATER, Code.HANDED_BACK)])
waits = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(attempt_outcome.of_exit, exit_codes, code_sets, code_sets, waits),
    st.builds(attempt_outcome.failure, failures, st.just("it broke"), final=st.booleans()),
    st.just(attempt_outcome.worker_died("worker w died")),
    st.just(attempt_outcome.handed_back("drained")),
    st.just(attempt_outcome.cancelled("by somebody")),
    st.just(attempt_outcome.past_deadline("too late")),
)


def limited(
    kind: str, limit: int | None, active: int = 0, doubtful: int = 0, *, paused: Collection[str] = ()
) -> TypeFacts:
    """The facts of a type with a `max_concurrent`, and how many of it are ready or claimed."""
    unit = f"type:{kind}"
    capacity = {} if limit is None else {unit: Capacity(limit, f"type {kind}", f"[types.{kind}] max_concurrent")}
    return TypeFacts(dict.fromkeys(paused), uses={unit: 1}, stock=Stock(capacity, {unit: active}, {unit: doubtful}))


def name(task_id: str = "a", *, micros: int = 1_770_000_000_000_000, rank: int = 5000, **fields: int) -> TaskName:
    """A task's name, with what a test does not care about filled in."""
    return TaskName(rank, encode_order(micros, 1), task_id, **fields)  # type: ignore[arg-type]
