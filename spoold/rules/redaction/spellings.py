"""How a secret may be written in some output: its value, and the value as common encodings write it.

Law: each spelling stands for the whole value, or for a whole line of it that is long enough to tell nothing else.
Of base64 these are the characters that the value alone determines, for each place in a group of three bytes.
"""

from __future__ import annotations

import base64
import json
import re
import string
from itertools import product

# A value, or a line of it, below so many bytes is too likely to be a part of plain text.
SHORTEST, SHORTEST_LINE = 6, 16
# Where programs break lines of base64 (`base64`, and PEM), and `xxd -p` those of hex.
_WIDTHS, _HEX_WIDTH = (76, 64), 60
_BREAKS = (b"\n", b"\r\n", b"\\n", b"\\r\\n")
# What stays in a URL as it is, besides letters and digits: nothing; RFC 3986, also in a path; PHP; forms of browsers
# and of Java; encodeURIComponent; encodeURI; escape; a password and a path in the URL of a browser.
_KEPT = ("", "_.~-", "_.~-/", "_.-", "_.-*", "_.~-!*'()", "_.~-!*'();/?:@&=+$,#", "@*_+-./")
_KEPT_IN_URLS = ("%_.~-!*'()&$+,", "%_.~-!*'()&$+,/:;=@[]|^")
# What HTML and XML write for the signs that only some programs escape.
_SIGNS = {
    '"': ("&quot;", "&#34;", '"'),
    "'": ("&#x27;", "&#39;", "&#039;", "&apos;", "'"),
    ">": ("&gt;", ">"),
}
# What some templates escape besides.
_TEMPLATES = (("=", "&#x3D;"), ("`", "&#x60;")), (("=", "&#x3D;"), ("`", "&#x60;"), ("/", "&#x2F;"))
_IN_DOUBLE_QUOTES = re.compile(r'([\\"$`])')
_BARE = (re.compile(r"([^\w\n\x80-\U0010ffff@%+=:./~#-])"), re.compile(r"([^\w\n\x80-\U0010ffff@%+:./-])"))


def spellings(value: str) -> frozenset[bytes]:
    """Return all spellings of a value."""
    raw = value.encode()
    found = {raw, raw.strip()} | _hex(raw) | _base64(raw) | _urls(raw) | _texts(value)
    for line in raw.splitlines() if b"\n" in raw.strip() else ():
        # The frame of a key in PEM is the same for all of them.
        if len(line.strip()) >= SHORTEST_LINE and not line.startswith(b"-----"):
            found |= {line.strip()} | _texts(line.strip().decode())
    return frozenset(spelled for spelled in found if len(spelled) >= SHORTEST)


def _texts(value: str) -> set[bytes]:
    """As a text that stays readable, also inside a string of JSON."""
    found = _escaped(value) | _quoted(value) | _html(value)
    found |= {json.dumps(text, ensure_ascii=False)[1:-1] for text in found}
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


def _urls(raw: bytes) -> set[bytes]:
    found = set()
    for kept, form in product((*_KEPT, *_KEPT_IN_URLS), ("%%%02X", "%%%02x")):
        plain = (string.ascii_letters + string.digits + kept).encode()
        written = {byte: bytes([byte]) if byte in plain else (form % byte).encode() for byte in set(raw)}
        code = b"".join(map(written.__getitem__, raw))
        found |= {code, code.replace(b"%20", b"+")}
    return found


def _escaped(value: str) -> set[str]:
    """As JSON writes it, also inside a string of JSON; and as Python does."""
    found = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    found |= {text.replace("/", "\\/") for text in found}
    # Go, and Jinja, which also escapes a quote.
    found |= {text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") for text in found}
    found |= {text.replace("'", "\\u0027") for text in found}
    # Which quotes Python escapes depends on the text around the value.
    for written in (repr(value), repr(value.encode()).removeprefix("b"), ascii(value)):
        found.add(written[1:-1])
    return found | {repr(value + "'\"")[1:-4], repr(value.encode() + b"'\"")[2:-4]}


def _quoted(value: str) -> set[str]:
    """As a shell writes it: in single or double quotes, after $, and bare; and as CSV, SQL and YAML double quotes."""
    found = {value.replace("'", "'\\''"), value.replace("'", "'\"'\"'"), _IN_DOUBLE_QUOTES.sub(r"\\\1", value)}
    found |= {_in_dollar_quotes(value), value.replace('"', '""'), value.replace("'", "''")}
    for special in _BARE:
        bare = special.sub(r"\\\1", value)
        found.add(f"\\{bare}" if value.startswith(("#", "~")) and not bare.startswith("\\") else bare)
    return found


def _in_dollar_quotes(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("'", "\\'")
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _html(value: str) -> set[str]:
    """As HTML and XML write it, in a text and in an attribute."""
    text = value.replace("&", "&amp;").replace("<", "&lt;")
    found = set()
    for codes in product(*_SIGNS.values()):
        made = text
        for sign, code in zip(_SIGNS, codes, strict=True):
            made = made.replace(sign, code)
        found.add(made)
    for also in _TEMPLATES:
        for quote in ("&#x27;", "&#39;"):
            made = text.replace('"', "&quot;").replace(">", "&gt;")
            for sign, code in also:
                made = made.replace(sign, code)
            found.add(made.replace("'", quote))
    return found
