"""The manual as its readers have it: the README and every page of docs/, and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted(CHECKOUT.glob("docs/**/*.md"))]
# Blocks of the specification are not for people to type: tests/protocol reads them.
_SPECIFICATION = CHECKOUT / "docs/spec"
_FENCE = re.compile(r"^```(\w*)(?: \w+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its page, the line that it begins in (from 1), its language, its text."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Every block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in _FENCE.finditer(text)]


def blocks_of(*languages: str) -> list[Block]:
    """Every block in these languages of all pages but those of the specification."""
    pages = [page for page in PAGES if page.parent != _SPECIFICATION]
    return [block for page in pages for block in blocks(page) if block.language in languages]
