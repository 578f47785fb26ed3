"""Loans of slots, between a worker and a process that waits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from spoold.system.loans import NO_LOANS, Loan, LocalLoans, OwnLoan


def test_a_slot_is_lent_asked_for_and_comes_back(tmp_path: Path) -> None:
    loans, mine = LocalLoans(f"{tmp_path}/loans"), OwnLoan(f"{tmp_path}/loans", "a.b.1", "x1")
    assert loans.look() == []
    mine.lend()
    mine.lend()  # once is enough
    assert loans.look() == [Loan("a.b.1", "a.b.1.x1.lend", back=False)]
    asking = threading.Thread(target=mine.take_back)
    asking.start()
    while loans.look() != [Loan("a.b.1", "a.b.1.x1.back", back=True)]:
        time.sleep(0.005)
    time.sleep(0.05)
    assert asking.is_alive(), "it does not go on before it is let"
    loans.settle(*loans.look())
    asking.join(10)
    assert not asking.is_alive()
    assert loans.look() == []
    assert os.listdir(loans.directory) == []


def test_a_loan_ends_with_its_process(tmp_path: Path) -> None:
    loans = LocalLoans(str(tmp_path))
    code = "import sys, time; from spoold.system.loans import OwnLoan; loan = OwnLoan(sys.argv[1], 'a.1', 'x')\n"
    code += "loan.lend(); print(flush=True); time.sleep(99)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [loan.attempt for loan in loans.look()] == ["a.1"]
        process.kill()
    assert loans.look() == []
    assert os.listdir(tmp_path) == []


def test_who_did_not_lend_takes_nothing_back(tmp_path: Path) -> None:
    mine = OwnLoan(str(tmp_path), "a.1", "x")
    mine.take_back()
    mine.drop()
    mine.lend()
    mine.drop()
    assert os.listdir(tmp_path) == []


def test_where_nothing_can_be_lent_a_wait_is_only_a_wait(tmp_path: Path) -> None:
    mine = OwnLoan(f"{tmp_path}/nowhere", "a.1", "x")
    mine.lend()
    mine.take_back()
    assert NO_LOANS.look() == []
    NO_LOANS.settle(Loan("a.1", "a.1.x.lend", back=False))
    gone = LocalLoans(f"{tmp_path}/gone")
    os.rmdir(gone.directory)
    assert gone.look() == []


def test_a_worker_that_is_gone_holds_nobody_up(tmp_path: Path) -> None:
    mine = OwnLoan(str(tmp_path), "a.1", "x")
    mine.lend()
    os.unlink(f"{tmp_path}/a.1.x.lend")
    mine.take_back()


def test_what_others_put_there_is_no_loan(tmp_path: Path) -> None:
    for name in (".a.1.x.lend", "a.lend", "x.txt", ".lend", "a.1..lend"):
        (tmp_path / name).touch()
    (tmp_path / "a.1.x.lend").mkdir()
    os.mkfifo(tmp_path / "a.1.y.lend")
    assert LocalLoans(str(tmp_path)).look() == []


def test_an_unchanged_directory_without_loans_is_not_listed_again(tmp_path: Path) -> None:
    loans = LocalLoans(str(tmp_path))
    os.utime(tmp_path, (1, 1))
    assert loans.look() == []
    (tmp_path / "a.1.x.lend").touch()
    os.utime(tmp_path, (1, 1))
    assert loans.look() == []
    assert len(os.listdir(tmp_path)) == 1
