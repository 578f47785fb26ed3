"""The finders of what is secret by its shape alone: well-known shapes of tokens, and private keys in PEM blocks.

Only `masking` puts them to use, beside `known_secrets`.

Law: the finder of tokens first looks for long runs of letters and digits, and for the beginnings of tokens in these
only. A text without them costs little, and the patterns are not even compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from spoold.rules.redaction.stream_masking import Found, before_escape, mask_of

# The well-known shapes of tokens.
# Law: a shape begins with one of its starts, has at most MOST bytes, and holds nothing but WORD: so the end of a
# text that may still become a token can be told. It holds a run of at least RUN characters of A-Z a-z 0-9 _ - that
# are not all hexadecimal. In that run, or in the BEHIND bytes before it, stands one of its starts, or of its marks
# if it has any: so plain text is passed over quickly.


MOST, RUN, BEHIND = 4096, 20, 40
WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+="
# Not all of a run is hexadecimal: else a shape could hide in what is passed over.
_MIXED = r"(?=[0-9a-f_-]{0,200}[A-Zg-z])"


class Shape(NamedTuple):
    """A shape: its name, what it may begin with, and its pattern."""

    name: str
    starts: tuple[str, ...]
    pattern: str
    marks: tuple[str, ...] = ()


SHAPES = (
    Shape("anthropic-key", ("sk-ant-",), r"sk-ant-[a-z]{2,10}[0-9]{2}-[A-Za-z0-9_-]{20,200}"),
    Shape("openrouter-key", ("sk-or-",), r"sk-or-v[0-9]-[0-9a-f]{48,80}"),
    Shape(
        "openai-key",
        ("sk-",),
        r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,250}|[A-Za-z0-9_-]{16,150}T3BlbkFJ[A-Za-z0-9_-]{16,150})",
        ("T3BlbkFJ", "sk-proj-", "sk-svcacct-", "sk-admin-"),
    ),
    Shape("aws-access-key", ("AKIA", "ASIA"), r"A[KS]IA[A-Z2-7]{16}(?![A-Z0-9])"),
    Shape(
        "aws-secret-key", ("AWS_SECRET_ACCESS_KEY=",), r"AWS_SECRET_ACCESS_KEY=[A-Za-z0-9/+]{40}", ("AWS_SECRET_ACC",)
    ),
    Shape(
        "aws-secret-key", ("aws_secret_access_key=",), r"aws_secret_access_key=[A-Za-z0-9/+]{40}", ("aws_secret_acc",)
    ),
    Shape("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,250}"),
    Shape("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,250}"),
    Shape(
        "gitlab-token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,250}(?:\.[A-Za-z0-9_.-]{2,60})?",
    ),
    Shape(
        "slack-token",
        ("xox",),
        r"xox[abeoprs]-[A-Za-z0-9-]{15,250}",
        ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
    ),
    Shape("slack-token", ("xapp-",), r"xapp-[0-9]-[A-Za-z0-9-]{15,250}"),
    Shape(
        "slack-webhook",
        ("hooks.slack.com/services/",),
        rf"hooks\.slack\.com/services/T\w{{6,12}}/B\w{{6,12}}/{_MIXED}[A-Za-z0-9]{{20,40}}",
        ("services/T",),
    ),
    Shape("google-api-key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    Shape("google-token", ("ya29.",), rf"ya29\.{_MIXED}[A-Za-z0-9_-]{{20,1000}}"),
    Shape("google-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{28}"),
    Shape("npm-token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    Shape("pypi-token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,1000}"),
    Shape("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}"),
    Shape("jwt", ("eyJ",), r"eyJ[A-Za-z0-9_-]{17,1200}\.eyJ[A-Za-z0-9_-]{8,1800}\.[A-Za-z0-9_-]{20,800}"),
    Shape("huggingface-token", ("hf_",), r"hf_[A-Za-z]{34}"),
    Shape("vault-token", ("hvs.",), rf"hvs\.{_MIXED}[A-Za-z0-9_-]{{80,300}}"),
    Shape("docker-token", ("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{27}"),
    Shape("groq-key", ("gsk_",), r"gsk_[A-Za-z0-9]{52}"),
    Shape("xai-key", ("xai-",), r"xai-[A-Za-z0-9]{80}"),
    Shape("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[por]_v1_[0-9a-f]{64}"),
    Shape("age-key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
)


_STARTS = tuple(sorted({start.encode() for shape in SHAPES for start in shape.starts}, key=len, reverse=True))
# Most marks hold one of these signs: a text without it, such as base64, need not be searched for them.
_SIGNS = frozenset(b"_-.=")
_MARKS = tuple(
    tuple((mark.encode(), _SIGNS & frozenset(mark.encode())) for mark in shape.marks or shape.starts)
    for shape in SHAPES
)
_PARTS = frozenset(start[:count] for start in _STARTS for count in range(1, len(start)))
_LONGEST = max(map(len, _STARTS))
_IN_RUN = frozenset(WORD) - frozenset(b"./+=")
_RUNS = bytes(0x61 if byte in _IN_RUN else 0x20 for byte in range(256))
_RUN = b"a" * RUN
# If more words than that are long, at less than so many bytes each, taking them out costs more than it saves.
_FEW, _APART = 100, 1000
# What a run of these only holds is a number, a hash, a UUID or a line, and no token.
_DULL = b"0123456789abcdef_-"


class Tokens:
    """Finds the tokens of all known shapes."""

    def find(self, text: bytes, start: int) -> list[Found]:
        """Return all tokens from there on, one after the other."""
        found = []
        for at, number in sorted(_places(text, start)):
            one = _pattern(number).match(text, at) if at >= start else None
            if one is not None:
                found.append(Found(at, one.end(), mask_of(SHAPES[number].name)))
                start = one.end()
        return found

    def held(self, text: bytes) -> int:
        """Return where in the last word a token may begin."""
        word = text[-MOST - 1 :]
        first = len(text) - len(word) + len(word.rstrip(WORD))
        if first == len(text):
            return first
        began = _first_start(text, first)
        if began is not None:
            return began
        for at in range(max(first, len(text) - _LONGEST + 1), len(text)):
            if text[at:] in _PARTS:
                return at
        return len(text)

    def begun(self, rest: bytes) -> bytes | None:
        """Return the mask of a token whose end is lost."""
        for start in _STARTS:
            if rest.startswith(start):
                return next(mask_of(shape.name) for shape in SHAPES if start.decode() in shape.starts)
        return None


def _first_start(text: bytes, first: int) -> int | None:
    places = [at for at in (text.find(start, first) for start in _STARTS) if at >= 0]
    return min(places, default=None)


def _places(text: bytes, first: int) -> Iterator[tuple[int, int]]:
    """Return where tokens may begin, and the numbers of their shapes."""
    words = _long_words(text)
    signs = frozenset(sign for sign in _SIGNS if sign in words)
    for number, marks in enumerate(_MARKS if words else ()):
        if any(needed <= signs and mark in words for mark, needed in marks):
            for start in SHAPES[number].starts:
                at = text.find(start.encode(), first)
                while at >= 0:
                    yield at, number
                    at = text.find(start.encode(), at + 1)


def _long_words(text: bytes) -> bytes:
    """Return what in a text is long enough for a token, with what stands before it; or all, if that is most of it."""
    runs = text.translate(_RUNS)
    words = []
    at = runs.find(_RUN)
    while at >= 0:
        end = runs.find(b" ", at + RUN)
        end = len(text) if end < 0 else end
        if text[at:end].strip(_DULL):
            words.append(text[max(0, at - BEHIND) : end])
            if len(words) > _FEW + len(text) // _APART:
                return text
        at = runs.find(_RUN, end)
    return b" ".join(words)


@cache
def _pattern(number: int) -> re.Pattern[bytes]:
    return re.compile(SHAPES[number].pattern.encode())


# Private keys in PEM blocks, over many lines or in a string of JSON: all of one becomes a single mask.
# Law: from the first line of a private key on nothing leaves, up to its last line, a sign that no key holds, or
# MOST bytes. So a text that only names such a line loses a part of itself, and a key that has no last line leaves
# nothing.


# More than a key of 16,384 bits takes.
KEY_MOST = 16 << 10
MASK = mask_of("private-key")
FIRST = b"-----BEGIN"
_BEGIN = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BEGUN = re.compile(rb"-----BEGIN[A-Z0-9 ]{0,90}-{0,4}")
_END = re.compile(rb"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
# A key, and not only the name of one: what follows the first line, also after the headers of an old key.
_KEY = re.compile(_BEGIN.pattern + rb"[\s\S]{0,300}?[A-Za-z0-9+/]{40}")
# No line that ends or begins a key is longer; and more than the context of an escape.
_FRAME = 100
_FOREIGN = re.compile(rb"[^A-Za-z0-9+/=\s\\:,|#*._()@<>-]")


class Keys:
    """A stream in which each private key is one mask."""

    def __init__(self) -> None:
        self._text = b""
        self._inside: int | None = None  # so many bytes of a key are gone

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; return what may leave."""
        text = self._text + data
        out: list[bytes] = []
        at = 0
        while True:
            if self._inside is None:
                began = _BEGIN.search(text, at) if FIRST in text else None
                if began is None:
                    held = _held(text, at)
                    out.append(text[at:held])
                    self._text = text[held:]
                    break
                out += [text[at : began.start()], MASK]
                at, self._inside = began.end(), 0
            at, over = _key_end(text, at, KEY_MOST - self._inside)
            if not over:
                held = max(at, len(text) - _FRAME)
                self._inside += held - at
                self._text = text[held:]
                break
            self._inside = None
        return b"".join(out)

    def end(self, *, cut: bool = False) -> bytes:
        """Return the rest; of a key that has no end there is none."""
        rest, inside = self._text, self._inside
        self._text, self._inside = b"", None
        return rest if inside is None else b""


def keys_in(text: bytes) -> list[int]:
    """Return where private keys begin in a text."""
    return [found.start() for found in _KEY.finditer(text)] if FIRST in text else []


def _held(text: bytes, at: int) -> int:
    """Return where the first line of a key may begin that is not there as a whole."""
    if b"-" not in text[-_FRAME:]:
        return len(text)
    began = text.find(FIRST, max(at, len(text) - _FRAME))
    while began >= 0:
        if _BEGUN.fullmatch(text, began):
            return began
        began = text.find(FIRST, began + 1)
    for place in range(max(at, len(text) - len(FIRST) + 1), len(text)):
        if FIRST.startswith(text[place:]):
            return place
    return len(text)


def _key_end(text: bytes, at: int, room: int) -> tuple[int, bool]:
    """Return where a key ends, and True; or where it goes on, and False: more bytes decide."""
    most = at + room
    foreign = _FOREIGN.search(text, at, most)
    stop = min(len(text), most) if foreign is None else foreign.start()
    ended = _END.search(text, at, stop)
    if ended is not None:
        return ended.end(), True
    if foreign is not None:
        # What a backslash escapes stays with it: a string of JSON stays one.
        return before_escape(text, stop, at), True
    return (stop, True) if stop == most else (at, False)
