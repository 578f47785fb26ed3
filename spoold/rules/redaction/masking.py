"""Everything that is masked in what an attempt says, in one place: for streams, for texts and for values of JSON.

Law: the secrets come first, since another mask could hide their beginning. A text is masked as a stream is. In a
value each text is masked by itself, so that it stays a value; a number is masked as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spoold.protocol import codec
from spoold.rules.redaction.known_secrets import Exact
from spoold.rules.redaction.stream_masking import Found, Stage, Sweep, mask_of
from spoold.rules.redaction.token_shapes import FIRST, RUN, Keys, Tokens, keys_in

_TOKENS = Tokens()


class Stream:
    """A stream of bytes that is masked."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; return what may leave."""
        for stage in self._stages:
            if data:
                data = stage.feed(data)
        return data

    def end(self, *, cut: bool = False) -> bytes:
        """Return the rest. cut: the stream went on, but the rest is lost."""
        data = b""
        for stage in self._stages:
            data = (stage.feed(data) if data else b"") + stage.end(cut=cut)
        return data


class Mask:
    """Masks secrets (values by name), tokens of known shapes, and what the patterns find."""

    def __init__(self, secrets: Mapping[str, str], *, tokens: bool, patterns: Sequence[str] = ()) -> None:
        self._exact = Exact(secrets) if secrets else None
        self._values = tuple(secrets.values())
        self.longest = 0 if self._exact is None else self._exact.longest  # bytes of the longest spelling of a secret
        self._tokens = tokens
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def stream(self) -> Stream:
        """Return a new stream."""
        stages: list[Stage] = []
        if self._exact is not None:
            stages.append(Sweep(self._exact))
        if self._tokens:
            stages += [Keys(), Sweep(_TOKENS)]
        if self._patterns:
            stages.append(Lines(self._patterns))
        return Stream(stages)

    def text(self, text: str, *, cut: bool = False) -> str:
        """Return a text, masked. cut: its end is lost."""
        data = text.encode("utf-8", "surrogatepass")
        if not cut and self._harmless(data):
            return text
        stream = self.stream()
        return _decoded(stream.feed(data) + stream.end(cut=cut))

    def last(self, text: str, most: int, *, cut: bool = False) -> str:
        """Return the end of a text, masked: what became of its last `most` bytes. Those before are only looked at.
        cut: its end is lost.
        """
        data = text.encode("utf-8", "surrogatepass")
        stream, border = self.stream(), max(0, len(data) - most)
        if not border and not cut and self._harmless(data):
            return text
        while border < len(data) and data[border] & 0xC0 == 0x80:
            border += 1  # no character is cut in two
        stream.feed(data[:border])
        return _decoded(stream.feed(data[border:]) + stream.end(cut=cut))

    def value(self, value: Any) -> Any:
        """Return a value of JSON, masked: the same one, if nothing in it is to be masked or escaped."""
        data = codec.dump(value)
        # A backslash stands for another character, so what is masked may be written otherwise here than in a text.
        if b"\\" not in data and self._harmless(data):
            return value
        holder = [value]
        todo: list[tuple[Any, Any]] = [(holder, 0)]
        while todo:
            place, key = todo.pop()
            place[key] = made = self._one(place[key])
            if isinstance(made, list):
                todo += [(made, index) for index in range(len(made))]
            elif isinstance(made, dict):
                todo += [(made, name) for name in made]
        return holder[0]

    def _harmless(self, data: bytes) -> bool:
        """Whether there surely is nothing to mask: most of what tasks say is short, and a stream costs more."""
        if self._patterns or (self._exact is not None and self._exact.find(data, 0)):
            return False
        return not self._tokens or len(data) < RUN or (FIRST not in data and not _TOKENS.find(data, 0))

    def _one(self, value: Any) -> Any:
        """Return one value, with values inside it as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name) if isinstance(name, str) else name: inner for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return list(value)
        if isinstance(value, int | float) and any(secret in repr(value) for secret in self._values):
            return self.text(repr(value))
        return value


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


# The patterns that the owner of a machine adds: regular expressions, each within a line.


MOST = 64 << 10
_LINE = re.compile(rb"[^\n]{1,%d}\n?|\n" % MOST)


class Lines:
    """A stream in which everything is masked that the patterns find."""

    def __init__(self, patterns: Iterable[re.Pattern[str]]) -> None:
        self._patterns = [(pattern, f"[redacted:pattern-{count}]") for count, pattern in enumerate(patterns, 1)]
        self._text = b""

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; return the lines that are whole."""
        lines = _LINE.findall(self._text + data)
        whole = not lines or lines[-1].endswith(b"\n")
        self._text = b"" if whole else lines.pop()
        return b"".join(map(self._masked, lines))

    def end(self, *, cut: bool = False) -> bytes:
        """Return the rest."""
        rest, self._text = self._text, b""
        return self._masked(rest)

    def _masked(self, line: bytes) -> bytes:
        body = line.rstrip(b"\n")
        text = body.decode("utf-8", "surrogateescape")
        for pattern, mask in self._patterns:
            text = _put(pattern, mask, text)
        return text.encode("utf-8", "surrogateescape") + line[len(body) :]


def _put(pattern: re.Pattern[str], mask: str, text: str) -> str:
    """Return the text with the mask in the place of all that the pattern finds; an empty place stays one."""
    return pattern.sub(lambda one: mask if one[0] else "", text)


# Finds what would be masked, and says where it begins: for what is no output, such as the files of a commit.
# Law: it finds what `Mask` masks in a text, but for the first line of a private key without a key below it: code
# that looks for such lines holds no secret. It returns places and names, never what stands there.


_BEFORE, _AFTER = mask_of("|").split(b"|")
Places = list[tuple[int, str]]


class Scanner:
    """Finds secrets (values by name), tokens of known shapes, private keys, and what the patterns find."""

    def __init__(self, secrets: Mapping[str, str], *, tokens: bool = True, patterns: Sequence[str] = ()) -> None:
        self._exact = Exact(secrets) if secrets else None
        self.names = frozenset(secrets)
        self._tokens = tokens
        # What anybody may know of what it finds: whether tokens, and which patterns.
        self.open = {"tokens": tokens, "patterns": list(patterns)}
        self._patterns = [re.compile(pattern) for pattern in patterns]
        # Bytes of the longest spelling of a secret: pieces of a stream have to overlap by so many.
        self.longest = 0 if self._exact is None else self._exact.longest

    @property
    def knows_secrets(self) -> bool:
        """Whether there are secrets to look for."""
        return self._exact is not None

    def secrets(self, text: bytes) -> Places:
        """Return where secrets begin, with their names."""
        return [] if self._exact is None else _places(self._exact.find(text, 0))

    def tokens(self, text: bytes) -> Places:
        """Return where tokens, private keys and what the patterns find begin, with what they are."""
        found = _places(_TOKENS.find(text, 0)) + [(at, "private-key") for at in keys_in(text)] if self._tokens else []
        return sorted([*found, *self._by_pattern(text)])

    def _by_pattern(self, text: bytes) -> Iterator[tuple[int, str]]:
        for number, pattern in enumerate(self._patterns, 1):
            at = 0
            for line in text.split(b"\n"):
                found = pattern.search(line.decode("utf-8", "surrogateescape"))
                if found is not None and found[0]:
                    yield at, f"pattern-{number}"
                at += len(line) + 1


def _places(found: Sequence[Found]) -> Places:
    return [(one.start, one.mask.removeprefix(_BEFORE).removesuffix(_AFTER).decode()) for one in found]
