"""worker/wire: JSON objects, one per line, both ways between two processes.

Law: neither side ever blocks on the other; what cannot be written now is kept and written when there is room.
This room may touch the descriptors that it is given and nothing else. The supervisor loads it, so it is small.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# More than a message has, as a rule, and so little that no read has to map memory of its own.
_READ, _WRITE = 1 << 15, 1 << 18


class Wire:
    """Two descriptors (the same one twice for a socket), made non-blocking; `closed` once the peer is gone."""

    __slots__ = ("_parts", "_unsent", "closed", "sink", "source")

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.closed = False
        self._parts: list[bytes] = []
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
        """Keeps the message for `flush`, to be sent together with others."""
        self._unsent += self._encode(message) + b"\n"

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
        if b"\n" not in chunk:
            # Kept in pieces: joining a long line anew for every piece would cost quadratic time.
            self._parts.append(chunk)
            return []
        *lines, rest = b"".join([*self._parts, chunk]).split(b"\n")
        self._parts = [rest] if rest else []
        return [self._decode(line) for line in lines]

    def _encode(self, message: dict[str, Any]) -> bytes:
        return json.dumps(message).encode()

    def _decode(self, line: bytes) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """Closes both descriptors, which the peer sees as the end."""
        for descriptor in {self.source, self.sink}:
            os.close(descriptor)
