"""Text of other people for a picture: harmless, and short enough.

Law: no control character, no mark that turns the direction of text and no lone surrogate is left: each becomes an
escape that can be read. Markup is escaped elsewhere, by each format.
"""

from __future__ import annotations

import re
import unicodedata

# C0 and C1, soft hyphen, marks for the direction of text and for joining, line separators, tags, what XML forbids.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff"
    "\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\U000e0000-\U000e0fff]"
)
# What looks like a blank, or like nothing, and is a letter or a mark: of these `exact` leaves none, too.
_UNLIKE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code)
    for begin, end in ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
    for code in range(begin, end + 1)
}
_UNSEEN = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"))
# Less room than this is for a beginning alone.
SHORT = 14
# What programs write for terminals: CSI, OSC, DCS and its kind, and escapes of two characters. None is longer than a
# line: one without an end hides no line after it.
SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)


def visible(text: str) -> str:
    """Return the text on one line, with every character that cannot be seen as an escape such as \\u202e."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def exact(text: str) -> str:
    """Return the text on one line, in which only a blank looks like one. Every other character that cannot be seen,
    or is taken for a blank, is an escape. For what people confirm.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char.encode("unicode_escape").decode() if is_hidden(char) else char for char in text)


def is_hidden(char: str) -> bool:
    """Whether a character cannot be seen, or is taken for a blank and is none."""
    return char != " " and (unicodedata.category(char) in _UNSEEN or char in _UNLIKE)


def log_text(data: bytes) -> str:
    """Return a piece of a log as it looked on a terminal that knows no colours: in lines, nothing hidden in them."""
    plain = SEQUENCE.sub("", data.decode(errors="replace")).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2].replace("\t", "    ") for line in plain.split("\n"))
    return "\n".join(map(visible, lines)).strip("\n")


def columns(text: str) -> int:
    """Return how many columns of one Latin letter the text takes at most."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def clip(text: str, most: int) -> str:
    """Return the text made visible, cut where it is longer than so many columns: in its middle, since both ends tell;
    where there is little room, at its end.
    """
    shown = visible(text)
    if columns(shown) <= most:
        return shown
    head, tail = "", ""
    for char in shown:
        if columns(head + char) > ((most - 1) * 2 // 3 if most > SHORT else most - 1):
            break
        head += char
    for char in reversed(shown[len(head) :]):
        if columns(head + char + tail) > most - 1:
            break
        tail = char + tail
    return f"{head}…{tail}"
