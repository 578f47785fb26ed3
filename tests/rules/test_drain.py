"""A drain means a worker by its id or its own name, or all of them, and never a master."""

import pytest

from spoold.rules.workers.readiness import is_meant


@pytest.mark.parametrize(
    ("target", "node", "meant"),
    [
        ("+all", "desk-7f3a0", True),
        ("desk-7f3a0", "desk-7f3a0", True),
        ("desk", "desk-7f3a0", True),
        ("Desk", "desk-7f3a0", True),
        ("desk-1", "desk-1-7f3a0", True),
        ("desk", "desk-1-7f3a0", False),
        ("des", "desk-7f3a0", False),
        ("w1", "w1", True),
        ("w", "w1", False),
    ],
)
def test_a_worker_is_meant_by_id_by_name_or_with_all(target: str, node: str, meant: bool) -> None:
    assert is_meant(target, node) == meant


@pytest.mark.parametrize("target", ["+all", "m-desk", "m-desk-7f3a0"])
def test_a_master_is_never_meant(target: str) -> None:
    assert not is_meant(target, "m-desk-7f3a0", "master")
