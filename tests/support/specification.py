"""The specification as one text: `spool_layout.md`, then every page of `docs/spec/`."""

from __future__ import annotations

from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]
CORE = _CHECKOUT / "spool_layout.md"
PAGES = sorted((_CHECKOUT / "docs/spec").glob("*.md"))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in (CORE, *PAGES))
