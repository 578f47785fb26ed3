"""The finder of the secrets that an attempt was given, in all their spellings.

Law: a spelling that begins in the text is either found whole, or held until it cannot become whole any more. What is
escaped is read as often as DEPTH, and looked through each time: an escape may stand within another, as in a string
of JSON within one, and a secret may itself look like one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spoold.rules.redaction.escapes import LONGEST, Escapes, Reading, begun
from spoold.rules.redaction.spellings import spellings
from spoold.rules.redaction.sweep import Found, mask_of

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
