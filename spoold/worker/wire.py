"""worker/wire: messages, both ways between two processes: dictionaries of plain values, each behind its length.

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

    __slots__ = ("_missing", "_parts", "_unsent", "closed", "sink", "source")

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.closed = False
        self._parts: list[bytes] = []
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
        # Kept in pieces: joining a long message anew for every piece would cost quadratic time.
        self._parts.append(chunk)
        if not self._completes(chunk):
            return []
        messages, rest = self._read(b"".join(self._parts))
        self._parts = [rest] if rest else []
        return messages

    def _completes(self, chunk: bytes) -> bool:
        """Whether a message ends in this piece."""
        self._missing -= len(chunk)
        return self._missing <= 0

    def _read(self, data: bytes) -> tuple[list[dict[str, Any]], bytes]:
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


class Answers(Wire):
    """A wire whose other end answers with lines of JSON."""

    __slots__ = ()

    def _completes(self, chunk: bytes) -> bool:
        return b"\n" in chunk

    def _read(self, data: bytes) -> tuple[list[dict[str, Any]], bytes]:
        *lines, rest = data.split(b"\n")
        return [json.loads(line) for line in lines], rest
