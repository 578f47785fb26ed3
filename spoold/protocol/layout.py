"""The tree: the directories of a spool and their purposes.

Law: a path is spelled only here. A directory of `TREE` is part of every spool, but those in `LATER` are missing in
spools of earlier releases, and count as empty there.
"""

from __future__ import annotations

from functools import lru_cache

from spoold.protocol.names import key

FORMAT_VERSION = 1
MARKER = "spool.json"
SETTINGS = "spool.toml"
LOCK = "spool.lock"

PENDING = "pending"
ADMITTING = "admitting"
WAITING = "waiting"
READY = "ready"
CLAIMED = "claimed"
RETURNED = "returned"
COMPLETED = "completed"
FAILED = "failed"
REJECTED = "rejected"
RESULTS = "results"
LOGS = "logs"
HEARTBEATS = "heartbeats"
CONTROL = "control"
MASTER = "master"
EVENTS = "events"
STATUS = "status"
ARCHIVE = "archive"
DOCTOR = "doctor"
CHANGES = "settings"
CONTEXT = "context"
STEPS = "steps"
TMP = "tmp"
REASON = ".reason.json"
# The output of attempts and what tasks share may hold secrets: not readable by everybody who can reach the share.
PRIVATE = (RESULTS, LOGS, ARCHIVE, CONTEXT, STEPS)

TREE: dict[str, str] = {
    PENDING: "the drop box: leaders pick up every *.json (one task) or *.jsonl (many tasks, a whole DAG) here",
    ADMITTING: "what a leader is admitting: one directory per leader and epoch, removed by the next leader",
    WAITING: "admitted, not yet runnable; in lanes; only leaders move here",
    READY: "runnable now; in lanes whose name is the demand; workers claim from here",
    CLAIMED: "running: one directory per worker, and only that worker renames into it",
    RETURNED: "tasks to be tried again (after a retry, crash or drain), for the leader to place",
    COMPLETED: "succeeded",
    FAILED: "ended otherwise: retries spent, timed out, cancelled, dependency failed, skipped",
    REJECTED: "drops that are no task, each with NAME.reason.json",
    RESULTS: "the result of each attempt, under the name that its task file gets",
    LOGS: "stdout and stderr of each attempt",
    HEARTBEATS: "one file for each living node; the beat is in its name",
    CONTROL: "requests, such as cancel, retry, pause, drain and halt",
    MASTER: "the one token of leadership",
    EVENTS: "journals for people and tools, one writer per file; no node decides by them",
    STATUS: "the leader's snapshots and checkpoints; of each the highest name counts",
    ARCHIVE: "old tasks with their results and logs, by hash of id",
    DOCTOR: "reports of `spool doctor`, one for each kind of mount, and its trials while it runs",
    CHANGES: "changes of settings while the spool runs, merged over spool.toml by their numbers",
    CONTEXT: "what the tasks of a batch share: one directory per batch, entries that never change",
    STEPS: "how far tasks have come: one directory per task, steps from which a later attempt may go on",
    TMP: "one directory per writer, where files are written before they are renamed into place",
}
# Spools of earlier releases lack these: a missing one counts as empty.
LATER = frozenset({CHANGES, CONTEXT, STEPS})


def join(*parts: str) -> str:
    """A path relative to the spool's root."""
    return "/".join(parts)


def waiting(lane: str, name: str) -> str:
    """A task that is admitted and not yet runnable."""
    return f"{WAITING}/{lane}/{name}"


def ready(lane: str, name: str) -> str:
    """A task that may be claimed."""
    return f"{READY}/{lane}/{name}"


def claimed(worker: str, name: str) -> str:
    """A task that a worker owns."""
    return f"{CLAIMED}/{worker}/{name}"


def claimant(path: str) -> str:
    """The worker that owns the task at this path; '' for a task that none owns."""
    directory, _, rest = path.partition("/")
    return rest.partition("/")[0] if directory == CLAIMED else ""


def tmp(writer: str, name: str) -> str:
    """A file that its writer has not published yet."""
    return f"{TMP}/{writer}/{name}"


@lru_cache(maxsize=1024)
def bucket(task_id: str) -> str:
    """The archive directory of an id: two hexadecimal digits of its hash, so that no directory grows huge."""
    import hashlib  # slow to import, and few commands look into the archive

    data = key(task_id).encode(errors="surrogateescape")  # a person who looks for a task may have typed anything
    return f"{ARCHIVE}/{hashlib.blake2b(data, digest_size=1).hexdigest()}"
