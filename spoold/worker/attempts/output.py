"""The output of an attempt: the value that its call returned, its result file, or else its printed text.

Law: what an attempt wrote never changes how it ended, and is kept. A result file that is no JSON becomes output as
text, and its record says what was wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.result import TEXT
from spoold.rules.attempts.figures import NONE, Figures, figures_in, filled
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.reporting import progress_of

RESULT_MAX = 4 << 20
_FILE = "SPOOL_RESULT_FILE"
_SMALLER = "write large results into a file of their own, and its path into this one."
_NUMBER = "write the number without quotes, or leave it out."


@dataclass(frozen=True, slots=True)
class Output:
    """The output and the figures beside it. format: TEXT where the result file is no JSON; problem: what is wrong
    with the file, and the fix. None where nothing is.
    """

    value: Any
    figures: Figures = NONE
    format: str | None = None
    problem: str | None = None


def output_of(attempt: Attempt, scratch: Scratch) -> Output:
    """Return the output of an attempt that is over.

    A figure that its result lacks is that of its last progress report: an attempt that was stopped has mostly written
    no result, and yet it has spent something.
    """
    output = _output_of(attempt, scratch)
    if attempt.ending is None:
        return output
    if None not in (output.figures.tokens_used, output.figures.cost_usd):
        return output
    return replace(output, figures=filled(output.figures, progress_of(scratch, attempt.key)))


def _output_of(attempt: Attempt, scratch: Scratch) -> Output:
    """Return what it returned, wrote or printed.

    For a task with several calls it is a list: one value for each call that is known to have returned.
    """
    ending = attempt.ending
    if ending is None:
        return Output(None)
    if attempt.task.calls is not None:
        return Output(ending.value or [])
    if ending.value is not None:
        return Output(ending.value)
    data = scratch.read(attempt.key, "result.json", 0, RESULT_MAX + 1)
    if not data.strip():
        return Output(None if ending.returned else ending.stdout)
    try:
        if len(data) > RESULT_MAX:
            raise BadFile(_FILE, "", f"has more than {RESULT_MAX:,} bytes; its beginning is kept.", _SMALLER)
        value = attempt.redacting.value(codec.load(data, _FILE))
    except BadFile as error:
        text = data[:RESULT_MAX].decode(errors="replace")
        masked = attempt.redacting.value
        return Output(masked(text), format=TEXT, problem=masked(str(error)))
    figures, wrong = figures_in(value)
    return Output(value, figures, problem=f"{_FILE} {wrong}. Fix: {_NUMBER}" if wrong else None)
