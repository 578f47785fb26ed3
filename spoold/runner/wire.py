"""runner/wire: messages, both ways between two processes: dictionaries of plain values, each behind its length.

Marshalled, which costs a third of what JSON does: both ends are the same interpreter on the same machine and trust
each other. Whoever runs other people's code is not trusted, so a host's answers are lines of JSON (`Answers`).

Law: neither side ever blocks on the other; what cannot be written now is kept and written when there is room.
This room may touch the descriptors that it is given and nothing else. The supervisor loads it, so it is small.
"""

from __future__ import annotations

import json
import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# More than a message has, as a rule, and so little that no read has to map memory of its own.
_READ, _WRITE = 1 << 15, 1 << 18
# Of the length that goes before each message, in bytes, the lowest first.
HEAD = 4
# Of marshal's versions the last that does not look for values that occur twice, which takes longer than it saves.
_VERSION = 2


class Wire:
    """Two descriptors (the same one twice for a socket), made non-blocking; `closed` once the peer is gone."""

    __slots__ = ("_data", "_missing", "_unsent", "closed", "sink", "source")

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.closed = False
        self._data = bytearray()
        self._missing = 0  # how many bytes at least until the next message is complete
        self._unsent = bytearray()
        os.set_blocking(source, False)
        os.set_blocking(sink, False)

    @property
    def unsent(self) -> bool:
        """Whether something waits for room; then `flush` wants to be called when the sink is writable."""
        return bool(self._unsent)

    def send(self, message: dict[str, Any]) -> None:
        """Sends the message, or keeps what does not fit for `flush`."""
        self.put(message)
        self.flush()

    def put(self, message: dict[str, Any]) -> None:
        """Keeps the message for `flush`, to be sent together with others. Errors: ValueError for no plain value."""
        data = marshal.dumps(message, _VERSION)
        self._unsent += len(data).to_bytes(HEAD, "little")
        self._unsent += data

    def flush(self) -> None:
        """Writes as much as fits. A peer that is gone is no error here: `receive` reports it as `closed`."""
        try:
            while self._unsent:
                with memoryview(self._unsent) as view:
                    written = os.write(self.sink, view[:_WRITE])
                del self._unsent[:written]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()

    def receive(self) -> list[dict[str, Any]]:
        """The messages that have arrived completely, from at most one read."""
        try:
            chunk = os.read(self.source, _READ)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            self.closed = True
            return []
        # Only looked at when a message is complete: to do so for every piece of a long one would cost quadratic time.
        self._data += chunk
        if not self._completes(chunk):
            return []
        messages, self._data = self._read(self._data)
        return messages

    def _completes(self, chunk: bytes) -> bool:
        """Whether a message ends in this piece."""
        self._missing -= len(chunk)
        return self._missing <= 0

    def _read(self, data: bytearray) -> tuple[list[dict[str, Any]], bytearray]:
        """The messages that are complete, and what is left."""
        messages: list[dict[str, Any]] = []
        begin, end = HEAD, HEAD
        while len(data) >= begin:
            end = begin + int.from_bytes(data[begin - HEAD : begin], "little")
            if len(data) < end:
                break
            messages.append(marshal.loads(data[begin:end]))
            begin = end = end + HEAD
        self._missing = end - len(data)
        return messages, data[begin - HEAD :]

    def close(self) -> None:
        """Closes both descriptors, which the peer sees as the end."""
        for descriptor in {self.source, self.sink}:
            os.close(descriptor)


# What a host says of each call. A line that does not is the function's own writing, which found our descriptor: the
# call counts as failed, and its process is not used again.
ANSWER = frozenset(("exit", "message", "value", "began", "clean", "alone", "cpu_s"))
# Bytes of an answer: the value that a host lets through, every character of it escaped, and all that is beside it.
ANSWER_MAX = (32 << 20) + (1 << 16)
_CPU_MAX_S = 1e9  # thirty years
_GARBLED = {
    "exit": 1,
    "message": "it wrote into a descriptor that is not its own, so what it returned cannot be told",
    "value": None,
    "began": True,
    "clean": False,
    "alone": False,
    "cpu_s": 0.0,
}


class Answers(Wire):
    """A wire whose other end answers with lines of JSON, of at most ANSWER_MAX bytes each: it may be the function."""

    __slots__ = ()

    def _completes(self, chunk: bytes) -> bool:
        return b"\n" in chunk or len(self._data) > ANSWER_MAX

    def _read(self, data: bytearray) -> tuple[list[dict[str, Any]], bytearray]:
        *lines, rest = data.split(b"\n")
        if len(rest) > ANSWER_MAX:
            # No answer, whatever follows; who wrote it is killed, so there is no more to come.
            return [*map(_answer, lines), _GARBLED], bytearray()
        return [_answer(line) for line in lines], rest


def _answer(line: bytearray) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return _GARBLED
    return answer if isinstance(answer, dict) and _is_sound(answer) else _GARBLED


def _is_sound(answer: dict[str, Any]) -> bool:
    """Whether it has all that an answer has, and nothing that would stop the supervisor or the worker."""
    return (
        answer.keys() >= ANSWER
        and (answer["exit"] is None or (type(answer["exit"]) is int and 0 <= answer["exit"] <= 255))
        and isinstance(answer["message"], str)
        and isinstance(answer["value"], str | None)
        and all(isinstance(answer[name], bool) for name in ("began", "clean", "alone"))
        and type(answer["cpu_s"]) is float
        and 0 <= answer["cpu_s"] < _CPU_MAX_S
        and answer.get("kind", "refused") == "refused"
    )
