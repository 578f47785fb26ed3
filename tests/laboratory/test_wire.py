"""Requests of an SMB client, read off the wire."""

import struct

import pytest

from tools.laboratory.wire import COMMANDS, Requests, commands_of


def message(*commands: str) -> bytes:
    """The commands chained in one message, each with a body."""
    parts = []
    for number, command in enumerate(commands):
        step = 0 if number == len(commands) - 1 else 72
        header = b"\xfeSMB" + struct.pack("<HHIHHII", 64, 0, 0, COMMANDS.index(command), 1, 0, step) + bytes(40)
        parts.append(header + b"contents")
    return b"".join(parts)


def framed(*commands: str) -> bytes:
    data = message(*commands)
    return b"\0" + len(data).to_bytes(3, "big") + data


def test_what_is_chained_is_one_request() -> None:
    assert commands_of(message("CREATE", "QUERY_INFO", "CLOSE")) == ["CREATE", "QUERY_INFO", "CLOSE"]
    assert commands_of(b"\xfdSMB" + bytes(60)) == ["ENCRYPTED"]


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_requests_are_put_together_from_segments_of_any_size(size: int) -> None:
    stream = framed("CREATE", "CLOSE") + framed("WRITE") + framed("CREATE", "CLOSE")
    requests, begin = Requests(), 0xFFFFFFF0  # sequence numbers begin anew within it
    for offset in range(0, len(stream), size):
        requests.take((begin + offset) % (1 << 32), stream[offset : offset + size])
    assert requests.seen == {"CREATE+CLOSE": 2, "WRITE": 1}


def test_what_is_sent_once_more_counts_once_and_what_was_missed_is_an_error() -> None:
    requests, frame = Requests(), framed("READ")
    requests.take(1000, frame)
    requests.take(1000, frame)
    assert requests.seen == {"READ": 1}
    with pytest.raises(ValueError, match="5 bytes"):
        requests.take(1000 + len(frame) + 5, frame)
