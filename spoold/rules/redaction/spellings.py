"""How a secret may be written in some output: its value, and the value as common encodings write it.

Law: each spelling stands for the whole value, or for a whole line of it that is long enough to tell nothing else.
Of base64 these are the characters that the value alone determines, for each place in a group of three bytes. Escapes
are none of its business: any character of a spelling may be escaped (see `escapes`).
"""

from __future__ import annotations

import base64

# A value, or a line of it, below so many bytes is too likely to be a part of plain text.
SHORTEST, SHORTEST_LINE = 6, 16
# Where programs break lines of base64 (`base64`, and PEM), and `xxd -p` those of hex.
_WIDTHS, _HEX_WIDTH = (76, 64), 60
_BREAKS = (b"\n", b"\r\n")


def spellings(value: str) -> frozenset[bytes]:
    """Return all spellings of a value."""
    raw = value.encode()
    found = {raw.strip()} | _hex(raw) | _base64(raw) | _texts(value)
    for line in raw.splitlines() if b"\n" in raw.strip() else ():
        # The frame of a key in PEM is the same for all of them.
        if len(line.strip()) >= SHORTEST_LINE and not line.startswith(b"-----"):
            found |= _texts(line.strip().decode())
    return frozenset(spelled for spelled in found if len(spelled) >= SHORTEST)


def _texts(value: str) -> set[bytes]:
    """As a text that stays readable: plain; in single quotes of a shell; as CSV, SQL and YAML double quotes; as forms
    of browsers write blanks; as Python and JavaScript write characters that could be bytes of UTF-8."""
    found = {value, value.replace("'", "'\\''"), value.replace("'", "'\"'\"'")}
    found |= {value.replace('"', '""'), value.replace("'", "''"), value.replace(" ", "+")}
    found |= {ascii(value)[1:-1]} if any("\x80" <= one <= "\xff" for one in value) else set()
    return {text.encode() for text in found}


def _hex(raw: bytes) -> set[bytes]:
    code = raw.hex().encode()
    found = {code, code.upper()}
    if len(code) > _HEX_WIDTH:
        found.add(b"\n".join(code[at : at + _HEX_WIDTH] for at in range(0, len(code), _HEX_WIDTH)))
    return found


def _base64(raw: bytes) -> set[bytes]:
    found = set()
    for before in range(3):
        code = base64.b64encode(bytes(before) + raw)
        first = (8 * before + 5) // 6  # the first character that the bytes before it have no part in
        whole = (8 * (before + len(raw))) // 6
        found |= {code[first:whole], code[first:], code.rstrip(b"=")[first:]}
    code = base64.b64encode(raw).rstrip(b"=")
    for width in (width for width in _WIDTHS if len(code) > width):
        rows = [code[at : at + width] for at in range(0, len(code), width)]
        found |= {turn.join(rows) for turn in _BREAKS}
    return found | {code.replace(b"+", b"-").replace(b"/", b"_") for code in found}
