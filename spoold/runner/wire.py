"""runner/wire: messages, both ways between two processes: dictionaries of plain values, each behind its length.

Marshalled, which costs a third of JSON: both ends are the same interpreter on the same machine and trust each other.
A process that runs a user's code is not trusted, so a host's answers are lines of JSON (`Answers`).

Law: neither side ever blocks on the other; data that cannot be written now is kept and written when there is room.
This room may touch the descriptors that it is given and nothing else. The supervisor loads it: kept small.

Touches: files.
"""

from __future__ import annotations

import json
import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# More than most messages have, and so little that no read has to map its own memory.
_READ, _WRITE = 1 << 15, 1 << 18
# The size of the length before each message, in bytes; little-endian.
HEAD = 4
# The last version of marshal that does not look for repeated values, which takes longer than it saves.
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
        """Whether data waits for room; then call `flush` when the sink is writable."""
        return bool(self._unsent)

    def send(self, message: dict[str, Any]) -> None:
        """Send the message, or keep the rest for `flush`."""
        self.put(message)
        self.flush()

    def put(self, message: dict[str, Any]) -> None:
        """Keep the message for `flush`, to be sent together with others. Errors: ValueError for no plain value."""
        data = marshal.dumps(message, _VERSION)
        self._unsent += len(data).to_bytes(HEAD, "little")
        self._unsent += data

    def flush(self) -> None:
        """Write as much as fits. A peer that is gone is no error here: `receive` reports it as `closed`."""
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
        """Return the messages that have arrived completely, from at most one read."""
        try:
            chunk = os.read(self.source, _READ)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            self.closed = True
            return []
        # Parsed only when a message is complete: parsing after every piece of a long one takes quadratic time.
        self._data += chunk
        if not self._completes(chunk):
            return []
        messages, self._data = self._read(self._data)
        return messages

    def _completes(self, chunk: bytes) -> bool:
        """Return whether a message ends in this piece."""
        self._missing -= len(chunk)
        return self._missing <= 0

    def _read(self, data: bytearray) -> tuple[list[dict[str, Any]], bytearray]:
        """Return the messages that are complete, and the rest."""
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
        """Close both descriptors, which the peer sees as the end."""
        for descriptor in {self.source, self.sink}:
            os.close(descriptor)


# The fields of a host's answer. A line without them was written by the function, which found our descriptor: the call
# counts as failed, and its process is not used again.
ANSWER = frozenset(("exit", "message", "value", "began", "clean", "alone", "cpu_s"))
# Bytes of an answer: the largest value with every character escaped, and the other fields.
ANSWER_MAX = (32 << 20) + (1 << 16)
_CPU_MAX_S = 1e9  # thirty years
_GARBLED = {
    "exit": 1,
    "message": "it wrote into a descriptor that is not its own, so its return value is unknown",
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
            # No answer, whatever follows; its writer is killed, so no more comes.
            return [*map(_answer, lines), _GARBLED], bytearray()
        return [_answer(line) for line in lines], rest


def _answer(line: bytearray) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return _GARBLED
    if not isinstance(answer, dict) or not _is_sound(answer):
        return _GARBLED
    # Only these: other fields have a meaning between supervisor and launcher.
    return {name: answer[name] for name in (*ANSWER, "kind") if name in answer}


def _is_sound(answer: dict[str, Any]) -> bool:
    """Return whether it has all fields of an answer, with no value that would stop the supervisor or the worker."""
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
