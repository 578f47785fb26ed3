"""The ledger is what tells a lost task from one that ran twice, whoever ran it."""

import os
from pathlib import Path

from tools.benchmark import ledger
from tools.benchmark.draining import fork


def test_what_several_processes_noted_is_read_by_time(tmp_path: Path) -> None:
    folder = str(tmp_path)
    ledger.note(folder, 3)
    for child in fork(lambda number: ledger.note(folder, number), 2):
        os.waitpid(child, 0)
    assert ledger.count(folder) == 3
    assert sorted(number for number, _ in ledger.read(folder)) == [0, 1, 3]
    moments = [moment for _, moment in ledger.read(folder)]
    assert moments == sorted(moments)


def test_a_record_that_a_kill_cut_off_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "1-1").write_bytes(ledger.RECORD.pack(7, 100) + b"\x01\x02")
    assert ledger.read(str(tmp_path)) == [(7, 100)]
    assert ledger.count(str(tmp_path)) == 1


def test_lost_and_doubled_are_counted_apart() -> None:
    assert ledger.lost_and_doubled([0, 1, 1, 1, 3, 9], 5) == (2, 1)
    assert ledger.lost_and_doubled([2, 1, 0], 3) == (0, 0)
