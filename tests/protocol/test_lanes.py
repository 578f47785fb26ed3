"""A lane's name is the demand: a worker reads it once and must come to what the task said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.errors import BadName
from spoold.protocol.lanes import LANE_MAX, Lane, parse_lane
from tests.protocol import strategies as some


@given(lane=some.lanes)
def test_a_demand_reads_back_from_its_name(lane: Lane) -> None:
    try:
        name = lane.encode()
    except BadName:
        assert sum(map(len, (lane.type, lane.pool, lane.module, *lane.need))) > LANE_MAX - 80
        return
    back = parse_lane(name)
    assert back is not None
    assert (back.type, back.run, back.pool) == (lane.type, lane.run, lane.pool)
    assert (back.cpus, back.mem_mb, back.gpus) == (lane.cpus, lane.mem_mb, lane.gpus)
    assert back.need == tuple(sorted(set(lane.need)))
    assert back.module == lane.module
    assert len(name) <= LANE_MAX
    assert not name.endswith(".")


@given(text=st.one_of(st.text(max_size=60), st.text("type=runpoolcpumgd,.+0123456789٣abc", max_size=60)))
def test_what_parses_encodes_to_the_very_same_text(text: str) -> None:
    for name in (text, f"type=a,{text}", f"type={text}"):
        lane = parse_lane(name)
        assert lane is None or lane.encode() == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "cpu=2",
        "type=",
        "type=Review",
        "type=a.",
        "type=a,type=a",
        "type=a,cpu=0",
        "type=a,cpu=2.0",
        "type=a,mem=08",
        "type=a,gpu=0",
        "type=a,run=handler",
        "type=a,run=shell",
        "cpu=2,type=a",
        "type=a,need=b+a",
        "type=a,need=a+a",
        "type=a,colour=red",
        "type=a,",
        f"type={'a' * 48},pool={'b' * 48},need={'c' * 48}+{'d' * 48}",
    ],
)
def test_other_spellings_of_a_demand_are_no_lanes(name: str) -> None:
    """Two spellings would be two directories for one demand, of which a worker might watch one."""
    assert parse_lane(name) is None


def test_a_demand_that_is_next_to_nothing_is_still_a_demand() -> None:
    name = Lane("a", cpus=0.0001).encode()
    assert name == "type=a,cpu=0.001"
    assert parse_lane(name) is not None


@pytest.mark.parametrize(
    "lane",
    [
        Lane(""),
        Lane("A"),
        Lane("a", run="shell"),
        Lane("a", cpus=-1),
        Lane("a", cpus=10_000),
        Lane("a", mem_mb=10**9),
        Lane("a", need=("x y",)),
        Lane("a", module="pkg."),
        Lane("a", module="café"),
        Lane("a" * 48, pool="b" * 48, need=("c" * 48, "d" * 48)),
    ],
    ids=str,
)
def test_what_cannot_stand_in_a_name_is_refused(lane: Lane) -> None:
    with pytest.raises(BadName):
        lane.encode()


def test_the_example_of_the_docstring_is_a_lane() -> None:
    name = "type=review,run=command,pool=gpu,cpu=2,mem=4096,gpu=1,need=docker+node,py=pkg.jobs"
    assert parse_lane(name) == Lane("review", "command", "gpu", 2, 4096, 1, ("docker", "node"), "pkg.jobs")
