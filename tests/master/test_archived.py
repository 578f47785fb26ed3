"""Which ids stand in the archive: what a plain dictionary would say, in a tenth of the room."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.master.state.tree_view import ENDS, Archived
from spoold.protocol.lifecycle import State

ENDED = st.sampled_from([*ENDS, None])


@given(st.lists(st.tuples(st.integers(0, 40).map("t{}".format), ENDED), max_size=200))
def test_it_says_what_a_dictionary_says(changes: list[tuple[str, State | None]]) -> None:
    """None: the task is taken out again."""
    archived, model = Archived(), dict[str, State]()
    for task_key, state in changes:
        if state is None:
            archived.discard(task_key)
            model.pop(task_key, None)
        else:
            archived.add(task_key, state)
            model[task_key] = state
        assert archived.state(task_key) is state
    for task_key in (f"t{number}" for number in range(41)):
        assert archived.state(task_key) is model.get(task_key)
        assert (task_key in archived) == (task_key in model)
    assert archived.counts == {s: list(model.values()).count(s) for s in ENDS}
