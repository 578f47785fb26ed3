"""Loans of slots, between a worker and a process that waits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from spoold.system.slot_loans import NO_LOANS, Loan, LocalLoans, OwnLoan


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
    code = "import sys, time; from spoold.system.slot_loans import OwnLoan; loan = OwnLoan(sys.argv[1], 'a.1', 'x')\n"
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


class Asides:
    """Puts aside what cannot be unlinked, as the scratch does. stuck: names that stay."""

    def __init__(self, to: Path, *stuck: str) -> None:
        to.mkdir()
        self.to, self.stuck, self.asked = to, set(stuck), list[str]()

    def __call__(self, name: str, above: int, path: str) -> bool:
        self.asked.append(path)
        if name not in self.stuck:
            with suppress(FileNotFoundError):
                os.rename(name, self.to / f"{len(self.asked)}", src_dir_fd=above)
        return name not in self.stuck


def test_what_is_no_loan_does_not_stay(tmp_path: Path) -> None:
    """tools/hostile --deed elsewhere: it stayed, unnamed, until the worker ended."""
    now, asides = [0.0], Asides(tmp_path / "aside")
    loans = LocalLoans(str(tmp_path / "loans"), asides, lambda: now[0])
    folder, mine = Path(loans.directory), OwnLoan(loans.directory, "b.1", "x")
    for name in (".a.1.x", ".a.1.x.lend", "a.lend", "x.txt", ".lend", "a.1..lend", "a.1.z.lend"):
        (folder / name).touch()
    (folder / "a.1.x.lend" / "deep").mkdir(parents=True)
    os.mkfifo(folder / "a.1.y.lend")
    (folder / "a.1.l.lend").symlink_to(tmp_path)
    mine.lend()
    assert [loan.attempt for loan in loans.look()] == ["b.1"]
    # One of its names is that of a file which is about to become a loan; so it may stay for a while.
    assert sorted(os.listdir(folder)) == [".a.1.x", ".a.1.x.lend", "b.1.x.lend"]
    assert asides.asked == [f"{folder}/a.1.x.lend"]
    now[0] = 6.0
    assert [loan.attempt for loan in loans.look()] == ["b.1"]
    assert os.listdir(folder) == ["b.1.x.lend"]
    mine.drop()
    assert loans.look() == []


def test_an_entry_that_stays_is_put_aside_once(tmp_path: Path) -> None:
    asides = Asides(tmp_path / "aside", "left")
    loans = LocalLoans(str(tmp_path / "loans"), asides)
    Path(loans.directory, "left").mkdir()
    for _ in range(3):
        assert loans.look() == []
        os.utime(loans.directory)
    assert asides.asked == [f"{loans.directory}/left"]


def by_a_link(folder: Path, stranger: Path) -> None:
    folder.symlink_to(stranger)


def by_a_file(folder: Path, _: Path) -> None:
    folder.touch()


def by_nothing(_: Path, __: Path) -> None:
    pass


def by_a_folder(folder: Path, _: Path) -> None:
    (folder / "in").mkdir(parents=True)


@pytest.mark.parametrize("replace", [by_a_link, by_a_file, by_nothing, by_a_folder])
def test_what_takes_the_place_of_the_directory_is_put_aside(
    tmp_path: Path, replace: Callable[[Path, Path], None]
) -> None:
    """Behind a link, others' files were taken for loans without a process, and removed."""
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "a.1.x.lend").touch()
    loans = LocalLoans(str(tmp_path / "loans"), Asides(tmp_path / "aside"))
    folder = Path(loans.directory)
    folder.rmdir()
    replace(folder, stranger)
    assert loans.look() == []
    assert os.listdir(stranger) == ["a.1.x.lend"]
    assert not folder.is_symlink()
    assert os.listdir(folder) == []
    OwnLoan(loans.directory, "b.1", "x").lend()
    assert len(os.listdir(folder)) == 1


def test_while_its_place_is_taken_nothing_is_lent(tmp_path: Path) -> None:
    asides = Asides(tmp_path / "aside", "loans")
    loans = LocalLoans(str(tmp_path / "loans"), asides)
    folder = Path(loans.directory)
    folder.rmdir()
    folder.touch()
    for _ in range(3):
        assert loans.look() == []
    assert asides.asked == [str(folder)]
    folder.unlink()
    assert loans.look() == []
    assert folder.is_dir()


def test_a_flood_of_names_is_put_aside_as_a_whole(tmp_path: Path) -> None:
    loans = LocalLoans(str(tmp_path / "loans"), Asides(tmp_path / "aside"))
    for number in range(10_001):
        os.close(os.open(f"{loans.directory}/{number}", os.O_CREAT))
    assert loans.look() == []
    assert os.listdir(loans.directory) == []
    for number in range(501):
        os.close(os.open(f"{loans.directory}/{number}", os.O_CREAT))
    assert loans.look() == []
    assert len(os.listdir(loans.directory)) == 1, "one look removes so many"
    assert loans.look() == []
    assert os.listdir(loans.directory) == []


def test_an_unchanged_directory_without_loans_is_not_listed_again(tmp_path: Path) -> None:
    loans = LocalLoans(str(tmp_path))
    os.utime(tmp_path, (1, 1))
    assert loans.look() == []
    (tmp_path / "a.1.x.lend").touch()
    os.utime(tmp_path, (1, 1))
    assert loans.look() == []
    assert len(os.listdir(tmp_path)) == 1
    loans.close()
