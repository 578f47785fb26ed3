"""How a secret may be written in some output: its value, and the value as common encodings write it.

Law: each spelling stands for the whole value, or for a whole line of it that is long enough to tell nothing else.
Of base64 these are the characters that the value alone determines, for each place in a group of three bytes.
"""

from __future__ import annotations

import base64
import json
import re

# A value, or a line of it, below so many bytes is too likely to be a part of plain text.
SHORTEST, SHORTEST_LINE = 6, 16
# Where programs break lines of base64: `base64`, and PEM.
_WIDTHS = (76, 64)
_BREAKS = (b"\n", b"\r\n", b"\\n", b"\\r\\n")
_PLAIN = re.compile(rb"[A-Za-z0-9_.~-]")
_PLAIN_IN_PATH = re.compile(rb"[A-Za-z0-9_.~/-]")
_HTML = {b"<": b"&lt;", b">": b"&gt;", b'"': b"&quot;", b"'": b"&#x27;"}


def spellings(value: str) -> frozenset[bytes]:
    """Return all spellings of a value."""
    raw = value.encode()
    found = {raw, raw.strip(), raw.hex().encode(), raw.hex().upper().encode()}
    found |= _base64(raw) | _urls(raw) | _escaped(value) | _quoted(raw)
    for line in raw.splitlines() if b"\n" in raw.strip() else ():
        # The frame of a key in PEM is the same for all of them.
        if len(line.strip()) >= SHORTEST_LINE and not line.startswith(b"-----"):
            found |= {line.strip()} | _escaped(line.strip().decode())
    return frozenset(spelled for spelled in found if len(spelled) >= SHORTEST)


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


def _urls(raw: bytes) -> set[bytes]:
    found = set()
    for plain in (_PLAIN, _PLAIN_IN_PATH):
        for form in ("%%%02X", "%%%02x"):
            signs = (bytes([byte]) for byte in raw)
            code = b"".join(sign if plain.match(sign) else (form % ord(sign)).encode() for sign in signs)
            found |= {code, code.replace(b"%20", b"+")}
    return found


def _escaped(value: str) -> set[bytes]:
    """As JSON writes it, also inside a string of JSON in a string of JSON; and as Python does."""
    found = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    found |= {text.replace("/", "\\/") for text in found}
    found |= {text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") for text in found}
    found |= {json.dumps(text)[1:-1] for text in found}
    found |= {repr(value)[1:-1], repr(value.encode())[2:-1]}
    return {text.encode() for text in found}


def _quoted(raw: bytes) -> set[bytes]:
    """As a shell writes it in quotes, and as HTML does."""
    html = raw.replace(b"&", b"&amp;")
    for sign, code in _HTML.items():
        html = html.replace(sign, code)
    return {raw.replace(b"'", b"'\\''"), raw.replace(b"'", b"'\"'\"'"), html, html.replace(b"&#x27;", b"&#39;")}
