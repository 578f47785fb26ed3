"""What an SMB client asks of its server, as it goes over the laptop's cable: requests, and the commands in them.

A request is one message to the server and one wait for its answer, however many commands are chained in it; that is
what a round trip of NFS is, too. (`/proc/fs/cifs/Stats` counts the commands, three for each look at a name.)

Law: only headers are read. What was not seen is never counted as nothing: a lost packet is an error.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter

# By their numbers.
COMMANDS = [
    *("NEGOTIATE", "SESSION_SETUP", "LOGOFF", "TREE_CONNECT", "TREE_DISCONNECT", "CREATE", "CLOSE", "FLUSH", "READ"),
    *("WRITE", "LOCK", "IOCTL", "CANCEL", "ECHO", "QUERY_DIRECTORY", "CHANGE_NOTIFY", "QUERY_INFO", "SET_INFO"),
    "OPLOCK_BREAK",
]
_PORT = 445
_IPV4, _TCP = b"\x08\x00", 6
_MARK, _HEADER = b"\xfeSMB", 64
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_BUFFER = 1 << 24
_SEQUENCES = 1 << 32


class Requests:
    """The requests in one TCP connection to a server, put together from its segments. Pure."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._next: int | None = None
        self._rest = b""

    def take(self, sequence: int, payload: bytes) -> None:
        """One segment, in the order in which it was sent. Errors: ValueError when one before it was missed."""
        if self._next is not None and sequence != self._next:
            if (self._next - sequence) % _SEQUENCES < _SEQUENCES // 2:
                return  # sent once more
            raise ValueError(f"{(sequence - self._next) % _SEQUENCES} bytes of a connection were not seen")
        self._next = (sequence + len(payload)) % _SEQUENCES
        self._rest += payload
        while len(self._rest) >= 4:
            end = 4 + int.from_bytes(self._rest[1:4], "big")
            if len(self._rest) < end:
                return
            self.seen["+".join(commands_of(self._rest[4:end]))] += 1
            self._rest = self._rest[end:]


def commands_of(message: bytes) -> list[str]:
    """The commands that are chained in a message, by name."""
    found, offset = [], 0
    while message[offset : offset + 4] == _MARK:
        command, following = struct.unpack_from("<H", message, offset + 12)[0], offset + 20
        found.append(COMMANDS[command] if command < len(COMMANDS) else f"COMMAND_{command}")
        step = struct.unpack_from("<I", message, following)[0]
        if step < _HEADER:
            return found
        offset += step
    return found or ["ENCRYPTED"]


class Wire:
    """Counts the requests of one laptop from its making until `close`."""

    def __init__(self, tapped: socket.socket) -> None:
        """tapped: a packet socket on the laptop's cable; it is closed here."""
        self._socket = tapped
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.settimeout(0.2)
        self._connections: dict[tuple[bytes, int], Requests] = {}
        self._trouble: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def count(self) -> Counter[str]:
        """Requests so far, by what is chained in each. Errors: RuntimeError when some were missed."""
        dropped = struct.unpack("II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))[1]
        if dropped or self._trouble is not None:
            raise RuntimeError(f"requests were not all seen: {self._trouble or f'{dropped} packets were dropped'}")
        return sum((connection.seen for connection in list(self._connections.values())), Counter[str]())

    def close(self) -> None:
        """Listen no longer."""
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                try:
                    self._take(self._socket.recv(1 << 16))
                except ValueError as error:
                    self._trouble = error

    def _take(self, packet: bytes) -> None:
        if packet[12:14] != _IPV4 or packet[23] != _TCP:
            return
        start = 14 + (packet[14] & 15) * 4
        end = 14 + int.from_bytes(packet[16:18], "big")
        source, target, sequence = struct.unpack_from(">HHI", packet, start)
        payload = packet[start + (packet[start + 12] >> 4) * 4 : end]
        if target == _PORT and payload:
            self._connections.setdefault((packet[26:34], source), Requests()).take(sequence, payload)
