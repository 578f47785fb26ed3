"""Ahead, level or behind: by the median of the pairs, and only where all pairs agree."""

from pathlib import Path
from typing import Any

import pytest

from tools.benchmark.bench import SCALES, Bench
from tools.benchmark.machine import Place
from tools.benchmark.parts import throughput
from tools.benchmark.peers import Peers
from tools.benchmark.position import REASONS, peer, position
from tools.benchmark.race import Results


@pytest.mark.parametrize(
    ("samples", "stands"),
    [
        ((1.2,), "ahead"),
        ((1.05, 1.2, 1.3), "ahead"),
        ((0.99, 1.2, 1.3), "level"),
        ((1.05, 1.08, 1.3), "level"),
        ((1.0,), "level"),
        ((0.91, 0.95), "level"),
        ((0.5, 0.8, 1.01), "level"),
        ((0.5, 0.8, 0.99), "behind"),
    ],
)
def test_it_is_ahead_or_behind_only_where_every_round_says_so(samples: tuple[float, ...], stands: str) -> None:
    assert position(samples) == stands


def test_each_peer_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    beside: set[str] = set()

    def note(*arguments: Any) -> Results:
        beside.update(peer(entry.label) for entry in arguments[4])
        return {}

    monkeypatch.setattr(throughput, "race", note)
    bench = Bench(SCALES["tiny"], (Place("/nowhere", "ext4"),), Peers(Path("/nowhere")))
    for part in (throughput.queue, throughput.call, throughput.process):
        part(bench)
    assert beside - {"spoold"} == REASONS.keys()
