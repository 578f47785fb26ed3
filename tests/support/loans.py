"""Loans of a worker's slots without files: a test says who waits, and who wants to go on."""

from __future__ import annotations

from spoold.system.slot_loans import Loan


class FakeLoans:
    """Loans without files. settled: those that were let go on."""

    directory = "/loans"

    def __init__(self) -> None:
        self.all: list[Loan] = []
        self.settled: list[str] = []

    def look(self) -> list[Loan]:
        return list(self.all)

    def settle(self, loan: Loan) -> None:
        self.all.remove(loan)
        self.settled.append(loan.attempt)

    def lend(self, attempt: str) -> None:
        """A process of the attempt waits."""
        self.all.append(Loan(attempt, f"{attempt}.x.lend", back=False))

    def ask(self, attempt: str) -> None:
        """It wants to go on."""
        self.gone(attempt)
        self.all.append(Loan(attempt, f"{attempt}.x.back", back=True))

    def gone(self, attempt: str) -> None:
        """It was killed."""
        self.all = [loan for loan in self.all if loan.attempt != attempt]
