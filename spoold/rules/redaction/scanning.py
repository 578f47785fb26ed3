"""Finds what would be masked, and says where it begins: for what is no output, such as the files of a commit.

Law: it finds what `masking` masks in a text, but for the first line of a private key without a key below it: code
that looks for such lines holds no secret. It returns places and names, never what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from spoold.rules.redaction.exact import Exact
from spoold.rules.redaction.keys import keys_in
from spoold.rules.redaction.sweep import Found, mask_of
from spoold.rules.redaction.tokens import Tokens

_TOKENS = Tokens()
_BEFORE, _AFTER = mask_of("|").split(b"|")
Places = list[tuple[int, str]]


class Scanner:
    """Finds secrets (values by name), tokens of known shapes, private keys, and what the patterns find."""

    def __init__(self, secrets: Mapping[str, str], *, tokens: bool = True, patterns: Sequence[str] = ()) -> None:
        self._exact = Exact(secrets) if secrets else None
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
