"""The finder of the secrets that an attempt was given, in all their spellings.

Only `masking` puts it to use, beside `token_shapes`.

Law: a spelling that begins in the text is either found whole, or held until it cannot become whole any more. What is
escaped is read as often as DEPTH, and looked through each time: an escape may stand within another, as in a string
of JSON within one, and a secret may itself look like one.
"""

from __future__ import annotations

import base64
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html.entities import html5

from spoold.rules.redaction.stream_masking import Found, mask_of

DEPTH = 3
# What is left of a short secret of many backslashes may be shorter, and counts only with an escape within.
_SHORTEST = 2
# So much of a secret's beginning counts as the secret where the rest is lost.
_BEGINNING = 4


class Exact:
    """Finds all spellings of these secrets: values by name. longest: bytes that one may take, with its escapes."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        masks: dict[bytes, bytes] = {}
        for name, value in secrets.items():
            for spelled in spellings(value):
                masks.setdefault(spelled, mask_of(name))
        self._plain = _Table(masks)
        # A spelling may itself look escaped. What is left of one whose backslashes are taken for those of escapes:
        self._escapes = Escapes(spelled.decode() for spelled in masks)
        for spelled, mask in list(masks.items()):
            for reading in self._readings(spelled):
                masks.setdefault(reading.text, mask)
        self._meant = _Table({spelled: mask for spelled, mask in masks.items() if len(spelled) >= _SHORTEST})
        if len(self._meant) > len(self._plain):
            self._escapes = Escapes(spelled.decode() for spelled in masks)
        self.longest = LONGEST * self._meant.longest

    def find(self, text: bytes, start: int) -> list[Found]:
        """Return at each place the longest spelling that begins there."""
        found = list(self._plain.found(text, 0, len(text)))
        read: list[Reading] = []
        for reading in self._readings(text):
            read.append(reading)
            for low, high in reading.around(self._meant.longest):
                inside = (
                    one for one in self._meant.found(reading.text, low, high) if reading.within(one.start, one.end)
                )
                found += [Found(_origin(read, one.start), _origin(read, one.end), one.mask) for one in inside]
        return sorted(found)

    def held(self, text: bytes) -> int:
        """Return where the longest end of the text begins that a spelling begins with, however it is escaped."""
        first = max(0, len(text) - self.longest)
        whole, read, place, table = text[first:], list[Reading](), len(text), self._plain
        for _ in range(DEPTH + 1):
            cut = begun(whole)
            ends = {table.beginning(whole), table.beginning(whole[:cut]) if cut < len(whole) else len(whole)}
            place = min(place, first + _origin(read, min(ends)))
            reading = self._escapes.read(whole[:cut])
            if reading is None:
                break
            read.append(reading)
            whole, table = reading.text, self._meant
        return place

    def begun(self, rest: bytes) -> bytes | None:
        """Return the mask of a secret whose end is lost."""
        for _ in range(DEPTH + 1):
            cut = begun(rest)
            mask = self._meant.begun(rest) or self._meant.begun(rest[:cut])
            reading = self._escapes.read(rest[:cut])
            if mask is not None or reading is None:
                return mask
            rest = reading.text
        return None

    def _readings(self, text: bytes) -> Iterator[Reading]:
        """The text with its escapes read, once, twice and so on."""
        for _ in range(DEPTH):
            reading = self._escapes.read(text)
            if reading is None:
                return
            yield reading
            text = reading.text


class _Table:
    """Spellings and their masks. longest: bytes of the longest one."""

    def __init__(self, masks: Mapping[bytes, bytes]) -> None:
        self._masks = dict(masks)
        self.longest = max(map(len, masks), default=0)
        # Looked for are spellings that begin with no other; each leads to all that begin with it, longest first.
        self._roots: dict[bytes, list[bytes]] = {}
        for spelled in sorted(masks):
            last = next(reversed(self._roots), None)
            self._roots.setdefault(last if last is not None and spelled.startswith(last) else spelled, []).append(
                spelled
            )
        for longer in self._roots.values():
            longer.sort(key=len, reverse=True)
        self._by_first: dict[int, list[bytes]] = {}
        for spelled in masks:
            self._by_first.setdefault(spelled[0], []).append(spelled)

    def __len__(self) -> int:
        return len(self._masks)

    def found(self, text: bytes, low: int, high: int) -> Iterator[Found]:
        """Return at each place of a part of the text the longest spelling that begins there."""
        for root, longer in self._roots.items():
            at = text.find(root, low, high)
            while at >= 0:
                spelled = next(one for one in longer if text.startswith(one, at))
                yield Found(at, at + len(spelled), self._masks[spelled])
                at = text.find(root, at + 1, high)

    def beginning(self, text: bytes) -> int:
        """Return where the longest end of a text begins that a longer spelling begins with; its length for none."""
        for at in range(max(0, len(text) - self.longest + 1), len(text)):
            for spelled in self._by_first.get(text[at], ()):
                if len(spelled) > len(text) - at and spelled.startswith(text[at:]):
                    return at
        return len(text)

    def begun(self, rest: bytes) -> bytes | None:
        """Return the mask of a spelling that begins with this, if it is enough of one."""
        if len(rest) < _BEGINNING:
            return None
        return next((mask for spelled, mask in self._masks.items() if spelled.startswith(rest)), None)


def _origin(read: list[Reading], at: int) -> int:
    """Where a place of the last of these readings is in the text that was read first."""
    for reading in reversed(read):
        at = reading.place(at)
    return at


# Reads escaped text: which character each escape stands for, and where in the text it stood.


BEFORE = 8
# To look through so many bytes more costs less than to begin anew.
_NEAR = 4096
# Of so many escapes it is remembered what they stand for.
_KNOWN = 4096
# The longest escape of one character: all its backslashes, and zeros in front of its number.
LONGEST = 24
_BEGINS, _FIRST = "\\%&#;", (b"\\", b"%", b"&")
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# All backslashes of a row, if these are no more than BEFORE. A literal first, so that the search is one for a byte.
_SLASHES = rf"\\(?<!\\\\)\\{{0,{BEFORE - 1}}}+"
# The end of a text in which an escape has begun that more bytes decide: parts of one that is written byte by byte, or
# as a pair, and a part of the last one.
_BEGUN = re.compile(
    r"(?:(?:SL(?:x[C-Fc-f][0-9A-Fa-f]|3[0-7]{2})|%[C-Fc-f][0-9A-Fa-f])"
    r"(?:SL(?:x[89ABab][0-9A-Fa-f]|2[0-7]{2})|%[89ABab][0-9A-Fa-f]){0,3}|(?:SL|%)u[Dd][89ABab][0-9A-Fa-f]{2})?"
    r"(?:SL(?:u[0-9A-Fa-f]{0,3}|u\{[0-9A-Fa-f]{0,6}|U[0-9A-Fa-f]{0,7}|x[0-9A-Fa-f]?|[0-7]{0,2})"
    r"|(?:SL)?%(?:[0-9A-Fa-f]?|u[0-9A-Fa-f]{0,3})"
    r"|(?:SL)?&(?:#[0-9]{0,7}|#[xX][0-9A-Fa-f]{0,6}|[A-Za-z0-9]{0,31}))?\Z".replace("SL", _SLASHES).encode()
)
_BEGUN_MOST = 96


class Reading:
    """A text with its escapes read. text: what it means; starts, ends: of what escapes stand for, in there."""

    def __init__(self, text: bytes, starts: list[int], ends: list[int], behind: list[int]) -> None:
        self.text, self._starts, self._ends, self._behind = text, starts, ends, behind

    def place(self, at: int) -> int:
        """Return where a place of this text is in the one that was read: in front of what counts as nothing there."""
        number = bisect_left(self._starts, at) - 1
        return at if number < 0 else self._behind[number] + at - self._ends[number]

    def within(self, start: int, end: int) -> bool:
        """Whether an escape stands in this part of the text."""
        number = bisect_left(self._starts, start)
        return number < len(self._starts) and self._starts[number] < end

    def around(self, most: int) -> Iterator[tuple[int, int]]:
        """Return the parts of this text that lie within so many bytes of an escape, in their order."""
        low = high = max(0, self._starts[0] - most)
        for start, end in zip(self._starts, self._ends, strict=True):
            if start - most > high + _NEAR:
                yield low, high
                low = start - most
            high = end + most
        yield low, high


class Escapes:
    """Reads the escapes of the characters of some texts, where one of the texts may go on behind them."""

    def __init__(self, texts: Iterable[str]) -> None:
        behind: dict[str, set[str]] = {sign: {""} for sign in _BEGINS}
        for text in texts:
            for one, following in zip(text, [*text[1:], ""], strict=True):
                behind.setdefault(one, set()).add(following)
        self._meant: dict[bytes, bytes] = {}
        # One pattern for each first byte: so the next one is looked for as fast as a byte is.
        made = (_slashed(behind), _percent(behind), _ampersand(behind))
        self._patterns = [(first, re.compile(one.encode("latin-1"))) for first, one in zip(_FIRST, made, strict=True)]

    def read(self, text: bytes) -> Reading | None:
        """Return a text with its escapes read, once; None if it has none."""
        there = (pattern for first, pattern in self._patterns if first in text)
        kinds = [found for pattern in there if (found := list(pattern.finditer(text)))]
        if not kinds:
            return None
        escapes = kinds[0] if len(kinds) == 1 else sorted(itertools.chain(*kinds), key=re.Match.start)
        parts: list[bytes] = []
        starts: list[int] = []
        ends: list[int] = []
        behind: list[int] = []
        at = length = 0
        for escape in escapes:
            start, end = escape.span()
            if start >= at:
                meant = self._meant.get(escape[0])
                if meant is None:
                    meant = self._read(escape)
                parts += (text[at:start], meant)
                starts.append(length := length + start - at)
                ends.append(length := length + len(meant))
                behind.append(at := end)
        return Reading(b"".join([*parts, text[at:]]), starts, ends, behind)

    def _read(self, found: re.Match[bytes]) -> bytes:
        """What an escape stands for: the group of its pattern that fits says how it is written."""
        kind, said = found.lastgroup or "", found[found.lastgroup or 0]
        if kind.startswith("x"):
            meant = chr(int(said, 16))
        elif kind.startswith("d"):
            meant = chr(int(said))
        elif kind.startswith("o"):
            meant = chr(int(said, 8))
        elif kind.startswith("c"):  # its own number is the name of the group
            meant = chr(int(kind.split("_")[1]))
        elif kind == "name":
            meant = html5[f"{said.decode()};"]
        else:
            meant = _LETTERS[said.decode()] if kind == "letter" else "" if kind == "run" else said.decode()
        if len(self._meant) >= _KNOWN:
            self._meant.clear()
        return self._meant.setdefault(found[0], meant.encode())


def _slashed(behind: Mapping[str, set[str]]) -> str:
    """The pattern of what begins with a backslash."""
    signs = "".join(sorted(one for one in behind if " " <= one < "\x7f" and not one.isalnum() and one != "\\"))
    letters = "".join(letter for letter, sign in _LETTERS.items() if sign in behind)
    # The longest first, as C reads them.
    octal = sorted((f"{ord(one):o}" for one in behind if one.isascii()), key=len, reverse=True)
    far, near = [], []
    for one in behind:
        if not one.isascii():
            number, octets = ord(one), one.encode()
            bytewise = "".join(f"{_SLASHES}(?:x{_hex(value)}|{value:03o})" for value in octets)
            units = "".join(f"{_SLASHES}u{_hex(unit, 4)}" for unit in _units(one))
            long = rf"{_SLASHES}(?:u\{{0{{0,4}}{_hex(number)}\}}|U{_hex(number, 8)})"
            far.append(f"(?P<c_{number}>{bytewise}|{units}|{long})")
            near += [f"(?P<c_{number}_>{_SLASHES}(?:x{_hex(number)}|{number:03o}))"] if number <= 0xFF else []
    of_ascii = [
        f"(?:u00|U000000|x)(?P<x>{_codes(behind)})",
        rf"u\{{0{{0,4}}(?P<xs>{_plain_codes(behind)})\}}",
        f"(?P<letter>{'|'.join(f'{one}{_look(behind[_LETTERS[one]])}' for one in letters) or '(?!)'})",
        f"(?P<sign>{'|'.join(re.escape(one) + _look(behind[one]) for one in signs)})",
        f"(?=[0-7])(?P<o>{'|'.join(f'0{{0,{3 - len(code)}}}{code}' for code in octal)})",
    ]
    first = f"(?=[uUx0-7{letters}{re.escape(signs)}])"
    run = rf"(?P<run>{_SLASHES}(?!\\))"
    return "|".join(
        [*far, *near, f"{_SLASHES}{first}(?:{'|'.join(of_ascii)})", *([run] if len(behind["\\"]) > 1 else [])]
    )


def _percent(behind: Mapping[str, set[str]]) -> str:
    """The pattern of what begins with a percent sign."""
    far = []
    for one in behind:
        if not one.isascii():
            octets = "".join(f"%{_hex(value)}" for value in one.encode())
            far.append(f"(?P<c_{ord(one)}>{octets}|{''.join(f'%u{_hex(unit, 4)}' for unit in _units(one))})")
    return "|".join([*far, f"%(?:u00)?(?P<x>{_codes(behind)})"])


def _ampersand(behind: Mapping[str, set[str]]) -> str:
    """The pattern of what begins with an ampersand."""
    numbers = "|".join(str(ord(one)) for one in sorted(behind, reverse=True))
    names = "|".join(name for one in behind for name in _names().get(one, ())) or "(?!)"
    return f"&(?:#[xX]0{{0,5}}(?P<x>{_plain_codes(behind)});|#0{{0,5}}(?P<d>{numbers});|(?P<name>{names});)"


@cache
def _names() -> dict[str, list[str]]:
    """The names that HTML has for a character."""
    found: dict[str, list[str]] = {}
    for name, sign in html5.items():
        if name.endswith(";") and len(sign) == 1:
            found.setdefault(sign, []).append(name[:-1])
    return found


def _plain_codes(behind: Mapping[str, set[str]]) -> str:
    """A pattern for the shortest hexadecimal numbers of these characters."""
    found: dict[str, str] = {}
    for one in sorted(behind):
        code = f"{ord(one):x}"
        found[code[:-1]] = found.get(code[:-1], "") + code[-1] + (code[-1].upper() if code[-1].isalpha() else "")
    return "|".join(f"{_cased(first)}[{lasts}]" for first, lasts in found.items())


def _look(following: set[str]) -> str:
    """What has to stand behind an escape: a byte with which a text goes on, the begin of an escape, or the end. So
    the escapes of most texts are passed over; rare kinds do without."""
    if "" in following:
        return ""
    plain = "".join(re.escape(one) for one in sorted(following) if one.isascii())
    return rf"(?=[{plain}\\%&\x80-\xff]|\Z)"


def _codes(behind: Mapping[str, set[str]]) -> str:
    """A pattern for the hexadecimal numbers of the characters below 0x80, by their first digits."""
    found: dict[str, list[str]] = {}
    for one in sorted(behind):
        if one.isascii():
            code = f"{ord(one):02x}"
            found.setdefault(code[0], []).append(_cased(code[1]) + _look(behind[one]))
    return "|".join(f"{_cased(first)}(?:{'|'.join(lasts)})" for first, lasts in found.items())


def _units(one: str) -> list[int]:
    """A character in the units of UTF-16."""
    code = one.encode("utf-16-be")
    return [int.from_bytes(code[at : at + 2]) for at in range(0, len(code), 2)]


def begun(text: bytes) -> int:
    """Return where at the end of a text an escape has begun that more bytes decide; its length if there is none."""
    first = max(0, len(text) - _BEGUN_MOST)
    places = [place for sign in _FIRST if (place := text.find(sign, first)) >= 0]
    found = _BEGUN.search(text, min(places)) if places else None
    return len(text) if found is None else found.start()


def _hex(value: int, width: int = 0) -> str:
    return _cased(f"{value:0{width}x}")


def _cased(code: str) -> str:
    return "".join(f"[{one}{one.upper()}]" if one.isalpha() else one for one in code)


# How a secret may be written in some output: its value, and the value as common encodings write it.


# A value, or a line of it, below so many bytes is too likely to be a part of plain text.
SHORTEST, SHORTEST_LINE = 6, 16
# Where programs break lines of base64 (`base64`, and PEM), and `xxd -p` those of hex.
_WIDTHS, _HEX_WIDTH = (76, 64), 60
_BREAKS = (b"\n", b"\r\n")


def spellings(value: str) -> frozenset[bytes]:
    """Return all spellings of a value."""
    raw = value.encode()
    found = {raw.strip()} | _hex_digits(raw) | _base64(raw) | _texts(value)
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


def _hex_digits(raw: bytes) -> set[bytes]:
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
