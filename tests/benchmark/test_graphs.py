"""The three shapes of graphs: of the size that was asked for, without a cycle, and walked to their end."""

from pathlib import Path

import pytest

from tools.benchmark.machine import Place
from tools.benchmark.parts.graphs import SHAPES, STATIONS, _walked, chain, mesh, wide


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [20, 1000])
def test_a_shape_has_its_size_and_only_looks_back(shape: str, count: int) -> None:
    parents = list(SHAPES[shape](count))
    assert len(parents) == count
    assert all(int(parent[1:]) < number for number, needs in enumerate(parents) for parent in needs)
    assert all(len(set(needs)) == len(needs) for needs in parents)


def test_the_shapes() -> None:
    assert list(chain(3)) == [[], ["n0"], ["n1"]]
    assert list(wide(4)) == [[], ["n0"], ["n0"], ["n1", "n2"]]
    assert list(mesh(30))[3:6] == [["n0", "n1"], ["n1", "n2"], ["n2", "n0"]]


def test_a_walk_measures_every_station(tmp_path: Path) -> None:
    spent = _walked(Place(str(tmp_path), "any"), list(mesh(30)))
    assert spent.keys() == set(STATIONS)
    assert all(seconds > 0 for seconds in spent.values())
