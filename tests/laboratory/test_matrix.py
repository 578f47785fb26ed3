"""The command line of the matrix, and one small lab where this machine can have one."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.laboratory import __main__ as netlab
from tools.laboratory import needs
from tools.laboratory.lab import Lab
from tools.laboratory.matrix import run
from tools.laboratory.matrix.cell import Cell, play
from tools.laboratory.matrix.faults import FAULTS, Fault
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
    missing = {name: sorted(set(FAULTS) - set(cells)) for name, cells in every.items()}
    nfs = {name: ["held-open"] for name in ("nfs3", "nfs4.0", "nfs4.1", "nfs4.2")}
    assert missing == {**nfs, "smb3": ["chmod-12", "read-only-60"]}


def test_the_list_is_printed_without_a_lab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["netlab", "test", "--list", "--protocol", "smb3", "--fault", "held-open"])
    monkeypatch.setattr(needs, "install", lambda: pytest.fail("nothing needs to be installed for that"))
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


class Timed:
    """A lab that comes up, and cells that take so long by a clock of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cell_s: float) -> None:
        self.now = 0.0
        self.cell_s = cell_s
        monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(run, "Lab", lambda name, protocol, laptops: self)
        monkeypatch.setattr(run, "play", lambda lab, fault, evidence, tasks: self.play(fault))

    def play(self, fault: Fault) -> Cell:
        self.now += self.cell_s
        return Cell("nfs3", fault.name)

    def up(self) -> None: ...

    def down(self) -> None: ...


def test_what_does_not_fit_into_the_time_is_told_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Timed(monkeypatch, 10.0)
    matrix = Matrix("none", ["nfs3"], ["plain", "cut-off", "suspended"], evidence=tmp_path, within_s=25)
    assert matrix.run(1) == 1
    out = capsys.readouterr().out
    assert "2 passed, 0 failed" in out
    assert "1 not played for want of time: nfs3 suspended" in out
    # A fault that no protocol has met was not shown to be harmless.
    assert "too little was played: nothing of suspended" in out


def test_every_protocol_has_its_share_of_the_time_and_begins_with_another_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Timed(monkeypatch, 10.0)
    protocols, faults = ["nfs3", "nfs4.0"], ["plain", "cut-off", "suspended", "hung-mount"]
    matrix = Matrix("none", protocols, faults, evidence=tmp_path, within_s=40)
    matrix.run(1)
    assert [cell.fault for cell in matrix.cells] == ["suspended", "hung-mount", "plain", "cut-off"]
    assert matrix.unplayed == ["nfs4.0 plain", "nfs4.0 cut-off", "nfs3 suspended", "nfs3 hung-mount"]


def test_a_fault_that_no_protocol_has_met_goes_before_one_that_was_met(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Though by its order the second protocol begins with what the first has just played."""
    Timed(monkeypatch, 10.0)
    protocols, faults = ["nfs3", "nfs4.0"], ["plain", "cut-off", "suspended", "hung-mount"]
    monkeypatch.setattr(Matrix, "_order", lambda self, protocol: list(cells_of(protocol, faults)))
    matrix = Matrix("none", protocols, faults, evidence=tmp_path, within_s=40)
    matrix.run(1)
    assert [cell.fault for cell in matrix.cells] == faults
    assert matrix.unplayed == ["nfs4.0 suspended", "nfs4.0 hung-mount", "nfs3 plain", "nfs3 cut-off"]


def test_a_few_turns_together_play_every_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Though none of them comes to more than a third of its cells."""
    played: set[str] = set()
    for turn in range(5):
        Timed(monkeypatch, 10.0)
        within_s = 10.0 * len(FAULTS) / 3 + 5
        matrix = Matrix("none", ["smb3"], [*FAULTS], evidence=tmp_path, within_s=within_s, turn=turn)
        matrix.run(1)
        played |= {cell.fault for cell in matrix.cells}
    assert played == {fault.name for fault in cells_of("smb3", FAULTS)}


def test_the_first_lab_has_a_job_for_itself_where_one_is_to_spare() -> None:
    assert run.shares(5, 3, 100.0, 60.0) == [160.0, 130.0, 130.0, 160.0, 160.0]
    assert run.shares(2, 3, 0.0, 60.0) == [60.0, 60.0]
    assert run.shares(3, 1, 0.0, 60.0) == [20.0, 40.0, 60.0]
    assert run.shares(2, 1, 0.0, None) == [None, None]


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
