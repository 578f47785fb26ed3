"""The finder of the secrets that an attempt was given, in all their spellings.

Law: a spelling that begins in the text is either found whole, or held until it cannot become whole any more.
"""

from __future__ import annotations

from collections.abc import Mapping

from spoold.rules.redaction.spellings import spellings
from spoold.rules.redaction.sweep import Found, mask_of

# So much of a secret's beginning counts as the secret where the rest is lost.
_BEGINNING = 4


class Exact:
    """Finds all spellings of these secrets: values by name."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._masks: dict[bytes, bytes] = {}
        for name, value in secrets.items():
            for spelled in spellings(value):
                self._masks.setdefault(spelled, mask_of(name))
        self.longest = max(map(len, self._masks), default=0)
        # Looked for are spellings that begin with no other; each leads to all that begin with it, longest first.
        self._roots: dict[bytes, list[bytes]] = {}
        for spelled in sorted(self._masks):
            last = next(reversed(self._roots), None)
            self._roots.setdefault(last if last is not None and spelled.startswith(last) else spelled, []).append(
                spelled
            )
        for longer in self._roots.values():
            longer.sort(key=len, reverse=True)
        self._by_first: dict[int, list[bytes]] = {}
        for spelled in self._masks:
            self._by_first.setdefault(spelled[0], []).append(spelled)

    def find(self, text: bytes, start: int) -> list[Found]:
        """Return at each place the longest spelling that begins there."""
        found = []
        for root, longer in self._roots.items():
            at = text.find(root)
            while at >= 0:
                spelled = next(one for one in longer if text.startswith(one, at))
                found.append(Found(at, at + len(spelled), self._masks[spelled]))
                at = text.find(root, at + 1)
        return sorted(found)

    def held(self, text: bytes) -> int:
        """Return where the longest end of the text begins that a spelling begins with."""
        for at in range(max(0, len(text) - self.longest + 1), len(text)):
            for spelled in self._by_first.get(text[at], ()):
                if len(spelled) > len(text) - at and spelled.startswith(text[at:]):
                    return at
        return len(text)

    def begun(self, rest: bytes) -> bytes | None:
        """Return the mask of a secret whose end is lost."""
        if len(rest) < _BEGINNING:
            return None
        return next((mask for spelled, mask in self._masks.items() if spelled.startswith(rest)), None)
