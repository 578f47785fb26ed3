"""How attempts ended, and the last line that they wrote.

Law: looks and never touches. A last line costs one read of at most TAIL_BYTES, of the log that the result names; a
log that cannot be read has none. A name in a result that is no log of that task is not followed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from spoold.client.waiting import read_result
from spoold.protocol import layout
from spoold.protocol.errors import BadFile, NotFound
from spoold.protocol.names import key, parse_log
from spoold.protocol.result import Result, message_of, remark_of, work_of
from spoold.rules.answers.task_facts import EndedAttempt
from spoold.rules.answers.why_failed import began, silence, speaks
from spoold.store.locate import Located
from spoold.store.store import Store

TAIL_BYTES = 4096


def last_line(store: Store, path: str) -> str:
    """Return the last line of a log that holds more than blanks; '' where there is none. Errors: none."""
    try:
        size = store.fs.stat(path).size
        data = store.fs.read(path, TAIL_BYTES, offset=max(0, size - TAIL_BYTES))
    except OSError:
        return ""
    lines = [line for line in data.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def last_words(store: Store, result: Result, *, archived: bool = False) -> str:
    """Return the last line that a failed attempt wrote, where its program is at fault; else ''. Errors: none."""
    name = parse_log(result.log) if result.log else None
    if not result.log or name is None or key(name.id) != key(result.task_id):
        return ""
    if result.error is None or not speaks(result.error.code):
        return ""
    return last_line(store, layout.join(layout.bucket(name.id) if archived else layout.LOGS, result.log))


def ended(result: Result) -> EndedAttempt:
    """Return an attempt that ended, as its result tells it."""
    code = "" if result.error is None else str(result.error.code)
    how = result.attempt, str(result.status), result.worker_id, result.completed_at, code, message_of(result)
    started, remark, work = began(code, result.started_at), remark_of(result), work_of(result.output)
    frozen_s, wrote = result.frozen_s or 0.0, bool(result.log)
    return EndedAttempt(*how, frozen_s=frozen_s, started=started, wrote=wrote, remark=remark, work=work)


def ending(store: Store, located: Located, result: Result) -> EndedAttempt:
    """Return the attempt that ended a task, with its last line if it failed by itself. Errors: none."""
    return replace(ended(result), last_line=last_words(store, result, archived=located.archived))


def why_silent(store: Store, located: Located) -> str:
    """Return why a task without output has none: it did not begin; '' for any other task. Errors: OSError."""
    last = None
    with suppress(NotFound, BadFile):
        last = ended(read_result(store, located)) if located.result else None
    return silence(located.id, located.state, last)
