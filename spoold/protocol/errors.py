"""Errors, split by their cause: spoold itself, the file, or the environment.

Law: a lost race is not an error. It is an outcome, and is returned, never raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# So alike (0 to 1) are a word and the same with a slip of the finger; and two that begin alike, if one was meant.
_SLIPPED, _LOOSELY = 0.75, 0.55
# So many letters tell a word; an abbreviation has so large a part of them.
_TOLD, _PART = 3, 0.4


def _without_init(kind: type[Exception], *args: Any) -> Exception:
    return kind.__new__(kind, *args)


class _Portable(Exception):
    """An error that pickle and copy make again from its text and its fields.

    Python itself would call `__init__` with the text alone, which fails where that asks for more. Executors and
    multiprocessing pickle what a call raises.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _without_init, (type(self), *self.args), self.__dict__


class SpoolError(_Portable):
    """An error that spoold raises on purpose."""


class LawBroken(SpoolError):
    """Our fault: the protocol rules this out, and it happened. Always worth a bug report."""


class BadFile(SpoolError):
    """The file's fault: names the file, the field and the fix."""

    def __init__(self, file: str, field: str, problem: str, mend: str) -> None:
        self.file = legible(file)
        self.field = legible(field)
        self.problem = legible(problem)
        self.mend = mend
        super().__init__(f"{self.told()} Fix: {mend}")

    def told(self, of: str = "") -> str:
        """The problem and its place: file (with the line of a batch) and field. of: a file that need not be named."""
        file = "" if self.file == legible(of) else self.file
        return ": ".join(filter(None, (file, self.field, self.problem)))


class WrongValue(_Portable, ValueError):
    """The error of our models' validators: the problem with a value, and the fix."""

    def __init__(self, problem: str, mend: str) -> None:
        self.problem = problem
        self.mend = mend
        super().__init__(f"{problem}; {mend}")


def legible(text: str) -> str:
    """The text with every byte that is not UTF-8 (names may hold any) written out as an escape."""
    return text.encode(errors="backslashreplace").decode()


class BadName(SpoolError, ValueError):
    """A name that does not fit its grammar. Encoders raise it; parsers return None."""


class Unavailable(SpoolError):
    """The environment's fault: the spool cannot be reached or used as it stands."""


class ShutOut(Unavailable):
    """This writer was declared dead and its directories were removed: start again under a new name."""


class NotFound(SpoolError):
    """No task, worker or file of that name is in the spool."""


class WaitTimeout(SpoolError, TimeoutError):
    """The time allowed for waiting is over; the task goes on."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that a person most likely meant; '' in doubt, since a wrong guess misleads.

    That is one with a slip of a letter or two, one that the word abbreviates (cmd, command), or that begins alike.
    """
    from difflib import get_close_matches

    typed, words = word.lower(), sorted({*known}, key=lambda one: (len(one), one))
    if close := get_close_matches(typed, words, 1, _SLIPPED):
        return close[0]
    abbreviated = [one for one in words if len(typed) >= _TOLD and _abbreviates(typed, one.lower())]
    begin = typed[: max(_TOLD + 1, len(typed) // 2)]
    alike = [one for one in words if len(begin) > _TOLD and one.lower().startswith(begin)]
    begun = [one for one in words if len(one) >= _TOLD and typed.startswith(one.lower())]
    loosely = [one for one in get_close_matches(typed, words, 3, _LOOSELY) if one.lower()[:2].startswith(typed[:2])]
    return next(iter(abbreviated + begun + alike + loosely), "")


def _abbreviates(short: str, whole: str) -> bool:
    """Whether enough letters of `whole` stand in `short` in their order, from the first one on."""
    letters = iter(whole)
    enough = len(short) >= _PART * len(whole)
    return enough and short[:1] == whole[:1] and all(letter in letters for letter in short)
