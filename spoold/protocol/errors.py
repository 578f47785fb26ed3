"""Errors, split by whose fault they are: ours, the file's, or the environment's.

A lost race is none of these: it is an outcome, and is returned, never raised.
"""

from __future__ import annotations


class SpoolError(Exception):
    """Anything spoold raises on purpose."""


class LawBroken(SpoolError):
    """Our fault: something the protocol rules out was seen. Always worth a bug report."""


class BadFile(SpoolError):
    """The file's fault: names the file, the field and the mend."""

    def __init__(self, file: str, field: str, problem: str, mend: str) -> None:
        self.file = legible(file)
        self.field = legible(field)
        self.problem = legible(problem)
        self.mend = mend
        super().__init__(f"{self.told()} Fix: {mend}")

    def told(self, of: str = "") -> str:
        """What is wrong, and where: file (with the line of a batch) and field. of: the file that is spoken of."""
        file = "" if self.file == legible(of) else self.file
        return ": ".join(filter(None, (file, self.field, self.problem)))


class WrongValue(ValueError):
    """What the validators of our models raise: what is wrong with a value, and what to write instead of it."""

    def __init__(self, problem: str, mend: str) -> None:
        self.problem = problem
        self.mend = mend
        super().__init__(f"{problem}; {mend}")


def legible(text: str) -> str:
    """The text with whatever is not UTF-8 in it (names may hold any bytes) written out as escapes."""
    return text.encode(errors="backslashreplace").decode()


class BadName(SpoolError, ValueError):
    """A name that does not fit its grammar; raised by encoders, parsers return None."""


class Unavailable(SpoolError):
    """The environment's fault: the spool cannot be reached or used as it is."""


class ShutOut(Unavailable):
    """This writer was taken for dead and its directories were removed: start again under a new name."""


class NotFound(SpoolError):
    """No task, worker or file of that name is in the spool."""


class WaitTimeout(SpoolError, TimeoutError):
    """The time given for waiting is over; the task goes on."""
