"""Bytes of a settings file to values.

Law: every failure is a BadFile that names the file, the fix and, if it can, the line or the field. The size and the
dots are limited before the parser begins, so no file keeps a node busy for long.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from spoold.protocol.codec import BOM, DEPTH_MAX, check_settings, is_exact, no_utf16, too_deep_file
from spoold.protocol.errors import BadFile

if TYPE_CHECKING:
    from spoold.protocol.settings import Settings

# Limits for a settings file; honest ones have less than a hundredth of either.
TOML_BYTES, TOML_DOTS = 256 << 10, 100
# What begins a string or a comment of a TOML file, and what is next in it: its end, or an escaped character. One or
# two quotes may stand before the three that end a multi-line string. No possessive quantifiers: Python 3.11.2 has
# a bug in them.
_BEGINS = re.compile(r"""\"{3}|'{3}|["'#]""")
_NEXT = {
    '"""': re.compile(r'\\.|"{3,5}', re.DOTALL),
    "'''": re.compile(r"'{3,5}"),
    '"': re.compile(r'\\.|["\n]'),
    "'": re.compile(r"['\n]"),
    "#": re.compile(r"(?=\n)"),
}
_KEY_ENDS = re.compile(r"[=,{}\[\]]")
_DIGITS, _OPEN = re.compile(rb"[0-9_]{4300}"), re.compile(rb"(?:\[\s*|\{[^\[\]{}\n]*)+")


def load_settings(data: bytes, file: str) -> Settings:
    """spool.toml. Errors: BadFile that names the key."""
    return check_settings(toml_table(data, file), file)


def toml_table(data: bytes, file: str) -> dict[str, Any]:
    """The contents of a TOML file. Errors: BadFile that names the unreadable line, and the fix."""
    no_utf16(data, file)
    if len(data) > TOML_BYTES:
        line = data.count(b"\n", 0, TOML_BYTES) + 1
        problem = f"is larger than {TOML_BYTES >> 10} KiB (which end in line {line})."
        raise BadFile(file, "", problem, f"cut it from line {line} on; no settings need so much.")
    try:
        text = data.removeprefix(BOM).decode()
        _few_dots(text, file)
        table = tomllib.loads(text)
    except UnicodeDecodeError as why:
        line = data.count(b"\n", 0, why.start) + 1
        raise BadFile(file, "", f"is not UTF-8 (line {line}, byte {why.start}).", "save it as UTF-8.") from why
    except RecursionError as why:
        line = data.count(b"\n", 0, _deepest(data)) + 1
        raise BadFile(
            file, "", f"is nested too deep (line {line}).", "close the brackets; no setting needs so many."
        ) from why
    except tomllib.TOMLDecodeError as why:
        raise BadFile(file, "", f"is not TOML: {why}.", "see https://toml.io for the syntax.") from why
    except ValueError as why:  # Python's own limit on digits
        found = _DIGITS.search(data)
        line = data.count(b"\n", 0, found.start() if found else 0) + 1
        raise BadFile(file, "", f"has a number of too many digits (line {line}).", "write a smaller number.") from why
    _check_values(table, file)
    return table


def _few_dots(text: str, file: str) -> None:
    """Refuse keys and headers with very many parts: the parser's time grows with the square of their number."""
    for number, line in enumerate(_bare(text).split("\n"), 1):
        if line.count(".") > TOML_DOTS and any(part.count(".") > TOML_DOTS for part in _KEY_ENDS.split(line)):
            problem = f"has a key or header with more than {TOML_DOTS} dots (line {number})."
            raise BadFile(file, "", problem, f"remove line {number}; no setting needs so many.")


def _bare(text: str) -> str:
    """The text without its strings and comments, in which dots part no key; it has as many lines."""
    pieces, at = list[str](), 0
    while (begin := _BEGINS.search(text, at)) is not None:
        ends = (found.end() for found in _NEXT[begin[0]].finditer(text, begin.end()) if found[0][:1] != "\\")
        # A string without an end is an error there, so that nothing behind it is parsed.
        end = next(ends, len(text))
        pieces += [text[at : begin.start()], "\n" * text.count("\n", begin.start(), end)]
        at = end
    return "".join((*pieces, text[at:]))


def _check_values(table: dict[str, Any], file: str) -> None:
    """Refuse deep tables, which need no bracket, and long numbers in base 16, which Python would not print."""
    level: list[tuple[str, Any]] = [("", table)]
    for _ in range(DEPTH_MAX):
        level = [
            (f"{field}.{name}".lstrip("."), inner)
            for field, outer in level
            if isinstance(outer, dict | list)
            for name, inner in (outer.items() if isinstance(outer, dict) else enumerate(outer))
        ]
        for field, value in level:
            if isinstance(value, int) and not is_exact(value):
                raise BadFile(file, field, "has a number of more than 64 bits.", "write a smaller number.")
    if level:
        raise too_deep_file(file, "no setting needs so many; remove them.")


def _deepest(data: bytes) -> int:
    """Where the longest run of opening brackets begins."""
    return max(((len(run[0]), run.start()) for run in _OPEN.finditer(data)), default=(0, 0))[1]
