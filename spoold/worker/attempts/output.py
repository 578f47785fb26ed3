"""The output of an attempt: the value that its call returned, its result file, or else its printed text.

Law: what an attempt wrote never changes how it ended, and is kept. A result file that is no JSON becomes output as
text. The record says what was wrong with the file, and with each field that does not count as it stands there. It
names what cannot be read in the place of that file or of the progress report. No link is followed to either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.result import TEXT
from spoold.rules.attempts.figures import COUNTS, NONE, PROGRESS, Figures, faults_in, figures_in, filled
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.reporting import PROGRESS as PROGRESS_FILE
from spoold.worker.attempts.reporting import look, problem_of

RESULT_MAX = 4 << 20
_FILE, _NAME = "SPOOL_RESULT_FILE", "result.json"
_SMALLER = "write large results into a file of their own, and its path into this one."


@dataclass(frozen=True, slots=True)
class Output:
    """The output and the figures beside it. format: TEXT where the result file is no JSON; problem: what is wrong
    with the file or its fields, and the fix. None where nothing is.
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
    lacks = {name for name in COUNTS if getattr(output.figures, name) is None}
    report = look(attempt, scratch)
    faults = faults_in(report.counts, PROGRESS_FILE, tuple(n for n in PROGRESS if n in lacks or n not in COUNTS))
    unread = problem_of(attempt, report) if lacks else report.problem
    problem = _told(attempt, faults if unread is None else [unread])
    return replace(
        output,
        figures=filled(output.figures, attempt.reported) if lacks else output.figures,
        problem=" ".join(filter(None, (output.problem, problem))) or None,
    )


def _told(attempt: Attempt, faults: list[BadFile]) -> str | None:
    return attempt.redacting.value(" ".join(map(str, faults))) if faults else None


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
    data = scratch.read(attempt.key, _NAME, 0, RESULT_MAX + 1)
    if not data.strip():
        why = scratch.why_unread(attempt.key, _NAME)
        faults = [] if why is None else [BadFile(_FILE, "", why, "write the result into a regular file there.")]
        return Output(None if ending.returned else ending.stdout, problem=_told(attempt, faults))
    try:
        if len(data) > RESULT_MAX:
            raise BadFile(_FILE, "", f"has more than {RESULT_MAX:,} bytes; its beginning is kept.", _SMALLER)
        value = attempt.redacting.value(codec.load(data, _FILE))
    except BadFile as error:
        text = data[:RESULT_MAX].decode(errors="replace")
        masked = attempt.redacting.value
        return Output(masked(text), format=TEXT, problem=masked(str(error)))
    return Output(value, figures_in(value), problem=_told(attempt, faults_in(value, _FILE)))
