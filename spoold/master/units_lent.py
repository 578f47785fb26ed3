"""The loans of units that stand: which claimed tasks have lent what they use, and which want it back.

Law: a claim without a loan that stands holds its units. A loan that this leader has given back never stands again,
whatever a listing shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from spoold.protocol.names import key
from spoold.protocol.request import OF_A_LOAN, Request, Verb, loan_mark

# A loan, whatever its verb: the key of its task, and UNIQUE.
Loan = tuple[str, str]


def loan_of(request: Request) -> Loan:
    """Return the loan that a request is about."""
    return key(request.target), request.unique


@dataclass(slots=True)
class UnitsLent:
    """standing: loans that leaders have taken, by the key of the task and the mark of its worker. given: loans that
    this leader has given back, or tried to. doubted: loans whose claim was not there at the last look.
    """

    standing: dict[tuple[str, str], Request] = field(default_factory=dict)
    given: set[Loan] = field(default_factory=set)
    doubted: set[Loan] = field(default_factory=set)

    def see(self, requests: Iterable[Request]) -> None:
        """Take in the requests that stand. While a loan gets another name, a listing may show both: the later one
        counts.
        """
        self.standing = {}
        for request in sorted((r for r in requests if r.verb in OF_A_LOAN and r.verb is not Verb.LEND), key=_later):
            if loan_of(request) not in self.given:
                self.standing[key(request.target), request.unique.partition("-")[0]] = request

    def of(self, node: str, task_ids: Iterable[str]) -> dict[str, Request]:
        """Return the loans of these tasks, all claimed by one worker, by the key of the task."""
        if not self.standing:
            return {}
        mark = loan_mark(node)
        found = ((key(task_id), self.standing.get((key(task_id), mark))) for task_id in task_ids)
        return {task_key: request for task_key, request in found if request is not None}

    def forget(self, still: Callable[[Loan], bool]) -> None:
        """Forget loans that were given back and cannot be seen again. still: whether one can."""
        self.given = {loan for loan in self.given if still(loan)}

    def give(self, loan: Loan) -> None:
        """Note that a loan is over: its units are the task's again."""
        self.given.add(loan)

    def doubt(self, loans: set[Loan]) -> set[Loan]:
        """Note the loans without a claim; return those that had none at the last look either."""
        twice = loans & self.doubted
        self.doubted = loans
        return twice


def _later(request: Request) -> tuple[bool, str]:
    return request.verb is Verb.REGAIN, request.unique
