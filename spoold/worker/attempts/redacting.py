"""What an attempt says, masked before it leaves this machine.

Law: nothing that an attempt wrote, printed or returned comes to the share but through here. The rules of redaction
are imported when an attempt first says something: a task that says nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spoold.runner.job import Ending
from spoold.worker.redact import Redact

if TYPE_CHECKING:
    from spoold.rules.redaction.masking import Mask, Stream

# So much more of its end is kept than is shown: what stands there is masked only with what came before it.
MARGIN = 8 << 10
# A runner cuts a message at so many characters.
_CUT = 4000


class Redacting:
    """The masks of one attempt: its secrets (values by name), and what the owner of the machine has masked."""

    def __init__(self, secrets: Mapping[str, str], redact: Redact, tail_bytes: int) -> None:
        self._secrets, self._redact, self._tail = secrets, redact, tail_bytes
        self._made: Mask | None = None
        self._stream: Stream | None = None

    @property
    def kept(self) -> int:
        """How many bytes of the end of its output the runner has to keep."""
        if not self._tail or not self._masks:
            return self._tail
        longest = self._mask().longest if self._secrets else 0
        return self._tail + max(MARGIN, longest)

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece of its log; return what may leave."""
        if not self._masks:
            return data
        if self._stream is None:
            self._stream = self._mask().stream()
        return self._stream.feed(data)

    def end(self, *, cut: bool) -> bytes:
        """Return the rest of its log. cut: more was printed, and is lost."""
        stream, self._stream = self._stream, None
        return b"" if stream is None else stream.end(cut=cut)

    def restart(self) -> None:
        """Begin its log anew."""
        self._stream = None

    def ending(self, ending: Ending) -> Ending:
        """Return how it ended, masked, with as much of its end as is shown."""
        says = ending.message or ending.stdout or ending.value is not None or ending.output_dropped
        if not says or not self._masks:
            return ending
        mask, killed = self._mask(), ending.signal is not None  # while it wrote, perhaps
        return replace(
            ending,
            message=mask.text(ending.message, cut=len(ending.message) >= _CUT),
            stdout=mask.last(ending.stdout, self._tail, cut=killed),
            tail=mask.last(ending.tail, self._tail) if ending.output_dropped else "",
            value=mask.value(ending.value),
        )

    def value(self, value: Any) -> Any:
        """Return a value of JSON, masked. The end of a text may be missing."""
        if value is None or not self._masks:
            return value
        return self._mask().text(value, cut=True) if isinstance(value, str) else self._mask().value(value)

    @property
    def _masks(self) -> bool:
        return bool(self._secrets or self._redact.tokens or self._redact.patterns)

    def _mask(self) -> Mask:
        if self._made is None:
            if self._secrets:
                self._made = _masking()(self._secrets, tokens=self._redact.tokens, patterns=self._redact.patterns)
            else:
                self._made = _shared(self._redact.tokens, self._redact.patterns)
        return self._made


def is_cut(ending: Ending) -> bool:
    """Whether a part of what it wanted to say is lost: with the rest, or since it was killed while it wrote."""
    return bool(ending.output_dropped) or ending.signal is not None


NOTHING = Redacting({}, Redact(tokens=False), 0)


@lru_cache(maxsize=8)
def _shared(tokens: bool, patterns: tuple[str, ...]) -> Mask:
    """Return the masks of all attempts without secrets."""
    return _masking()({}, tokens=tokens, patterns=patterns)


def _masking() -> type[Mask]:
    from spoold.rules.redaction.masking import Mask

    return Mask
