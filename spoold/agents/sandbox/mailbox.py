"""The task's own in- and outbox, as an agent in a sandbox finds them.

What a task is given is shown where it is, to be read. What an agent says comes out of a folder of its own: the files
of the attempt itself, such as its log, are not shown.

Law: what comes out is what the agent wrote in a plain file, and never what a link of the agent's names.

Touches: files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

PLAIN = (
    *("SPOOL_TASK_ID", "SPOOL_TASK_TYPE", "SPOOL_ATTEMPT", "SPOOL_MAX_ATTEMPTS", "SPOOL_WORKER_ID", "SPOOL_BATCH"),
)
READ = (
    *("SPOOL_TASK_FILE", "SPOOL_DEPS_DIR", "SPOOL_ANSWER_FILE", "SPOOL_FEEDBACK_FILE", "SPOOL_PREVIOUS_FILE"),
    "SPOOL_CONTEXT_DIR",
)
WRITTEN = ("SPOOL_WORK_DIR",)
SAID = {"SPOOL_RESULT_FILE": "result.json", "SPOOL_PROGRESS_FILE": "progress.json"}
MOST_BYTES = 4 << 20
_WARY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Mailbox:
    """env: the SPOOL_* variables within; shown, writable: as of `Scene`; said: a file of the agent → the file of the
    attempt that it stands for."""

    env: Mapping[str, str]
    shown: tuple[str, ...]
    writable: tuple[str, ...]
    said: Mapping[str, str] = field(default_factory=dict)
    _taken: dict[str, bytes] = field(default_factory=dict)

    def deliver(self) -> list[str]:
        """Bring what the agent has written since to where the worker looks, whole or not at all. Call it while the
        agent runs, for its progress, and after its end. Returns what was refused, in words. Errors: OSError.
        """
        refused = []
        for source, target in self.said.items():
            try:
                data = _read(source)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                refused.append(f"{os.path.basename(source)} was not taken: {error}")
                continue
            # What says nothing new must not look like progress: a worker tells a stalled task by that.
            if self._taken.get(source) == data:
                continue
            self._taken[source] = data
            new = f"{target}.new"
            with open(new, "wb") as file:
                file.write(data)
            os.replace(new, target)
        return refused


def mailbox(environ: Mapping[str, str], folder: str) -> Mailbox:
    """Return the boxes of the task whose variables these are; folder: one of this machine that the attempt has to
    itself, in which the agent's files come to lie. What lies in the spool, as SPOOL_CONTEXT_DIR does, has to be
    replaced in `environ` by a copy: it is not shown. Errors: OSError.
    """
    os.makedirs(folder, exist_ok=True)
    env = {name: environ[name] for name in (*PLAIN, *READ, *WRITTEN) if environ.get(name)}
    there = {name: path for name, path in env.items() if name not in PLAIN and os.path.exists(path)}
    said = {f"{folder}/{file}": environ[name] for name, file in SAID.items() if environ.get(name)}
    inside = {name: f"{folder}/{file}" for name, file in SAID.items() if environ.get(name)}
    return Mailbox(
        {name: env[name] for name in PLAIN if name in env} | there | inside,
        tuple(there[name] for name in READ if name in there),
        (folder, *(there[name] for name in WRITTEN if name in there)),
        said,
    )


def _read(path: str) -> bytes:
    """Return the content of a plain file, and of nothing else. Errors: OSError, ValueError."""
    descriptor = os.open(path, _WARY)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise ValueError("it is no plain file of its own")
        if found.st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
        return os.pread(descriptor, MOST_BYTES, 0)
    finally:
        os.close(descriptor)
