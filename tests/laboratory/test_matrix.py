"""The command line of the matrix, and one small lab where this machine can have one."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.laboratory import __main__ as netlab
from tools.laboratory import needs
from tools.laboratory.lab import Lab
from tools.laboratory.matrix import run
from tools.laboratory.matrix.cell import Cell, play
from tools.laboratory.matrix.faults import FAULTS
from tools.laboratory.matrix.ledger import Verdict
from tools.laboratory.matrix.run import Matrix, cells_of, line_of
from tools.laboratory.protocols import PROTOCOLS


@pytest.fixture
def lab(worker_id: str) -> Iterator[Lab]:
    """Two laptops over NFS 4.2; what an earlier run that was killed left of them goes first."""
    if reasons := needs.missing():
        pytest.skip("; ".join(reasons))
    made = Lab(f"smoke-{worker_id}", PROTOCOLS["nfs4.2"], 2)
    made.down()
    made.up()
    yield made
    made.down()


def test_a_small_lab_completes_what_it_is_given(lab: Lab, tmp_path: Path) -> None:
    cell = play(lab, FAULTS["plain"], tmp_path, tasks=20)
    assert cell.passed, (cell.verdict.problems, cell.evidence)
    assert cell.verdict.tasks == 34


def test_every_protocol_meets_every_fault_that_it_can_have() -> None:
    every = {protocol: [fault.name for fault in cells_of(protocol, FAULTS)] for protocol in PROTOCOLS}
    assert len(every["smb3"]) == len(FAULTS)
    assert {name: sorted(set(FAULTS) - set(cells)) for name, cells in every.items() if name != "smb3"} == {
        name: ["held-open"] for name in ("nfs3", "nfs4.0", "nfs4.1", "nfs4.2")
    }


def test_the_list_is_printed_without_a_lab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["netlab", "test", "--list", "--protocol", "smb3", "--fault", "held-open"])
    assert netlab.main() == 0
    assert capsys.readouterr().out == "smb3: held-open\n"


class NoLab:
    """A lab that cannot come up."""

    def __init__(self, *_: object) -> None:
        self.downs = 0

    def up(self) -> None:
        raise RuntimeError("no cables")

    def down(self) -> None:
        self.downs += 1


def test_a_lab_that_does_not_come_up_fails_its_cells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "Lab", NoLab)
    matrix = Matrix("none", ["nfs3", "smb3"], ["plain", "held-open"], evidence=tmp_path)
    assert matrix.run(2) == 1
    out = capsys.readouterr().out
    assert out.count("the lab broke: RuntimeError: no cables") == 3
    assert "0 passed, 3 failed" in out


def test_a_matrix_of_no_cells_has_not_passed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "Lab", NoLab)
    assert Matrix("none", [], ["plain"], evidence=tmp_path).run(1) == 1


def test_a_line_of_the_table_says_what_was_counted() -> None:
    sound = Cell(
        "nfs3", "cut-off", 1, "called dead", 61.4, Verdict(tasks=76, rerun=6, fenced=5, late=2, overlap_s=0.04)
    )
    assert line_of(sound).split() == [
        "nfs3", "cut-off", "76", "1", "0", "0", "6", "5", "2", "0.0", "61", "ok", "(called", "dead)"
    ]  # fmt: skip
    broken = Cell("nfs3", "plain", verdict=Verdict(tasks=5, lost=1, problems=["one is lost"]))
    assert line_of(broken).split()[4] == "1"
    assert line_of(broken).endswith("FAILED")
