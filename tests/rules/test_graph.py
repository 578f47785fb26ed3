"""Which tasks wait for which: a cycle is always found, however its members arrived, and nothing else ever is."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.rules.gates.dependency_gates import Graph

nodes = st.sampled_from("abcdef")
edges = st.dictionaries(nodes, st.lists(nodes, max_size=3), max_size=6)


def closed(parents: dict[str, list[str]], start: str) -> bool:
    """Whether start waits for itself: the slow way, by all that can be reached."""
    reached: set[str] = set()
    front = set(parents[start])
    while front:
        reached |= front
        front = {p for child in front for p in parents.get(child, [])} - reached
    return start in reached


@given(edges, st.randoms(use_true_random=False))
def test_the_member_that_closes_a_cycle_finds_it_and_no_other_does(
    parents: dict[str, list[str]], dice: object
) -> None:
    graph, known = Graph(), dict[str, list[str]]()
    order = list(parents)
    dice.shuffle(order)  # type: ignore[attr-defined]
    for child in order:
        graph.add(child, parents[child])
        known[child] = parents[child]
        cycle = graph.cycle(child)
        assert bool(cycle) == closed(known, child)
        if cycle:
            assert cycle[0] == child
            assert len(set(cycle)) == len(cycle)
            assert all(parent in known[member] for member, parent in zip(cycle, [*cycle[1:], child], strict=True))
            graph.remove(child)
            del known[child]


@given(st.lists(st.tuples(st.booleans(), nodes, st.lists(nodes, max_size=3)), max_size=30))
def test_children_are_those_that_wait_and_nothing_is_left_behind(steps: list[tuple[bool, str, list[str]]]) -> None:
    graph, known = Graph(), dict[str, list[str]]()
    for add, child, parents in steps:
        graph.remove(child)
        known.pop(child, None)
        if add:
            graph.add(child, parents)
            known[child] = parents
        assert bool(graph) == bool(known)
        for parent in "abcdef":
            assert graph.children(parent) == sorted(c for c, ps in known.items() if parent in ps)
            assert (parent in graph) == (parent in known)
    for child in list(known):
        graph.remove(child)
    assert not graph._children
    assert not graph._parents


def test_a_task_that_waits_for_itself_is_a_cycle_of_one() -> None:
    graph = Graph()
    graph.add("a", ["a"])
    assert graph.cycle("a") == ["a"]


def test_many_ways_to_the_same_task_are_walked_once() -> None:
    """Forty diamonds in a row have 2**40 paths."""
    graph = Graph()
    for number in range(40):
        graph.add(f"{number}", [f"{number}l", f"{number}r"])
        graph.add(f"{number}l", [f"{number + 1}"])
        graph.add(f"{number}r", [f"{number + 1}"])
    graph.add("40", ["elsewhere"])
    graph.add("first", ["0"])
    graph.add("child", ["first"])
    assert graph.cycle("first") == []


def test_a_long_chain_that_arrives_in_order_costs_no_search() -> None:
    """Each new task looks for somebody who waits for it, and there is none: 100,000 tasks take no noticeable time."""
    graph = Graph()
    for number in range(100_000):
        graph.add(str(number), [str(number - 1)])
        assert graph.cycle(str(number)) == []
    graph.add("-1", ["99999"])
    assert len(graph.cycle("-1")) == 100_001


def test_a_knot_is_all_who_are_on_a_cycle_and_nobody_beside_it() -> None:
    graph = Graph()
    for child, parents in {"b": "a", "c": "a", "d": "bc", "after": "a", "a": "dx"}.items():
        graph.add(child, parents)
    assert graph.knot("a") == ["a", "b", "c", "d"]
    assert graph.knot("after") == []


def test_a_child_waits_until_the_last_of_its_parents_has_ended() -> None:
    graph = Graph()
    graph.add("child", ["a", "b"])
    assert graph.settle("child", "a", ended=True)
    assert not graph.settle("child", "b", ended=True)
    assert graph.settle("child", "a", ended=False)
