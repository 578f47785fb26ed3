"""The output of an attempt: the value that its call returned, its result file, or else its printed text.

Law: a result file that cannot be used is a fault of the attempt and never an error: the printed text is the output
then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.rules.attempts.figures import NONE, Figures, figures_in, filled
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.reporting import progress_of

RESULT_MAX = 4 << 20
_FILE = "SPOOL_RESULT_FILE"


@dataclass(frozen=True, slots=True)
class Output:
    """The output, the figures beside it, and the fault of the file that it came from; None for no fault."""

    value: Any
    figures: Figures = NONE
    fault: str | None = None


def output_of(attempt: Attempt, scratch: Scratch) -> Output:
    """Return the output of an attempt that is over: its printed text, if its result file cannot be used.

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
    if len(data) > RESULT_MAX:
        return Output(ending.stdout, fault=f"{_FILE} has more than {RESULT_MAX:,} bytes")
    try:
        value = attempt.redacting.value(codec.load(data, _FILE))
    except BadFile as error:
        return Output(ending.stdout, fault=attempt.redacting.value(str(error)))
    figures, wrong = figures_in(value)
    return Output(value, figures, f"{_FILE} {wrong}" if wrong else None)
