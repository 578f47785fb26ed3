"""A spool in memory, and hands that put tokens where a leader or a worker would."""

import threading
from typing import Any

import orjson

from spoold.client.spool_client import SpoolClient
from spoold.protocol import codec, layout
from spoold.protocol.names import EndedName, TaskName, encode_order
from spoold.protocol.result import Code, Error, Result, Status
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.memory_filesystem import MemoryFileSystem

LANE = "type=t"
WORKER = "w1-aaaaa"
SETTINGS = b"[poll]\nbusy_s = 0.002\nidle_s = 0.01\n"


class Tree:
    """The spool, what is in it, and the moves of everybody who is not the client."""

    def __init__(self, settings: bytes = SETTINGS) -> None:
        self.fs = MemoryFileSystem(SystemClock())
        initialise(self.fs, SystemClock(), "test", "spool")
        self.fs.write(layout.SETTINGS, settings, durable=False)
        self._orders = 0

    def spool(self) -> SpoolClient:
        return SpoolClient("spool", filesystem=self.fs)

    def put(self, path: str, value: Any = None) -> str:
        """A file, with the directories above it."""
        parts = path.split("/")[:-1]
        for end in range(1, len(parts) + 1):
            if parts[end - 1] not in self.fs.list("/".join(parts[: end - 1])):
                self.fs.mkdir("/".join(parts[:end]))
        data = value if isinstance(value, bytes) else orjson.dumps({"type": "t"} if value is None else value)
        self.fs.write(path, data, durable=False)
        return path

    def name(self, task_id: str, attempt: int = 1, **more: Any) -> TaskName:
        self._orders += 1
        return TaskName(5000, encode_order(1_760_000_000_000_000 + self._orders, 1), task_id, attempt, **more)

    def waits(self, task_id: str, **more: Any) -> str:
        return self.put(layout.waiting(LANE, self.name(task_id, **more).encode()))

    def ready(self, task_id: str, **more: Any) -> str:
        return self.put(layout.ready(LANE, self.name(task_id, **more).encode()))

    def claimed(self, task_id: str, **more: Any) -> str:
        return self.put(layout.claimed(WORKER, self.name(task_id, **more).encode()))

    def returned(self, task_id: str, **more: Any) -> str:
        return self.put(layout.join(layout.RETURNED, self.name(task_id, **more).encode_returned(WORKER)))

    def result(self, task_id: str, attempt: int = 1, *, code: Code | None = None, **more: Any) -> Result:
        """The record of an attempt, successful unless a code says why not."""
        fields = {
            "task_id": task_id,
            "attempt": attempt,
            "worker_id": WORKER,
            "status": Status.SUCCESS if code is None else Status.FAILURE,
            "completed_at": "2026-01-01T00:00:00Z",
            "error": None if code is None else Error(code=code, message="it broke"),
        }
        found = Result.model_validate({**fields, **more})
        self.put(layout.join(layout.RESULTS, EndedName(task_id, attempt, WORKER).encode()), codec.dump(found))
        return found

    def ends(self, task_id: str, attempt: int = 1, *, code: Code | None = None, **more: Any) -> Result:
        """A whole end: result, then token."""
        result = self.result(task_id, attempt, code=code, **more)
        state = layout.COMPLETED if code is None else layout.FAILED
        self.put(layout.join(state, EndedName(task_id, attempt, WORKER).encode()))
        return result

    def archives(self, task_id: str, attempt: int = 1, state: str = layout.COMPLETED) -> None:
        name = EndedName(task_id, attempt, WORKER)
        bucket = layout.bucket(task_id)
        data = self.fs.read(layout.join(layout.RESULTS, name.encode()))
        self.put(layout.join(bucket, name.archived("result")), data)
        self.put(layout.join(bucket, name.archived(state)))
        self.fs.unlink(layout.join(state, name.encode()))
        self.fs.unlink(layout.join(layout.RESULTS, name.encode()))

    def ends_archived(self, task_id: str, *, code: Code | None = None, **more: Any) -> None:
        self.ends(task_id, code=code, **more)
        self.archives(task_id, state=layout.COMPLETED if code is None else layout.FAILED)

    def rejects(self, drop: str, task_id: str | None = None) -> None:
        """As the leader does it: the reason first, then the drop."""
        reason = {
            "drop": drop,
            "id": task_id,
            "file": drop,
            "field": "tpye",
            "problem": "unknown field.",
            "mend": "type?",
        }
        self.put(layout.join(layout.REJECTED, f"{drop}.reason.json"), reason)
        if drop in self.fs.list(layout.PENDING):
            self.fs.rename(layout.join(layout.PENDING, drop), layout.join(layout.REJECTED, drop))
        else:
            self.put(layout.join(layout.REJECTED, drop))

    def log(self, task_id: str, text: bytes, attempt: int = 1) -> None:
        self.put(layout.join(layout.LOGS, EndedName(task_id, attempt, WORKER).log()), text)

    def drops(self) -> list[Any]:
        """What lies in pending/, oldest first, as values; a batch as a list of them."""
        found: list[Any] = []
        for name in sorted(self.fs.list(layout.PENDING)):
            data = self.fs.read(layout.join(layout.PENDING, name))
            lines = [orjson.loads(line) for line in data.splitlines()]
            found.append(lines if name.endswith(".jsonl") else lines[0])
        return found


def soon(action: Any, *args: Any, **kwargs: Any) -> threading.Thread:
    """Do something on another thread, as another machine would."""
    thread = threading.Thread(target=action, args=args, kwargs=kwargs)
    thread.start()
    return thread
