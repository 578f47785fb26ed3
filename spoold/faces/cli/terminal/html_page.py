"""A picture for people as one HTML file, which needs nothing else and runs nothing.

Law: the same blocks as on a terminal, so the same figures and words. Any member may write names and messages: each is
shown as text, with its control characters as escapes, and the page's own policy lets nothing run or load.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape

from spoold.faces.cli.terminal.output import within
from spoold.faces.cli.terminal.screen import Block, Line, Table

# The colours of text keep a contrast of at least 4.5 to both backgrounds; no meaning is in a colour alone.
_STYLE = """
:root { color-scheme: light dark; }
:root { --red: #b3261e; --green: #1a6b34; --cyan: #0b5c7a; --yellow: #7a5200; --dim: #5f6368; }
@media (prefers-color-scheme: dark) {
  :root { --red: #ff8a80; --green: #7edc9a; --cyan: #7fd4f2; --yellow: #ffd166; --dim: #a0a4a8; }
}
html { background: Canvas; color: CanvasText; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.25rem; } p { margin: 0; overflow-wrap: anywhere; } p:empty { height: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .1rem 1.25rem .1rem 0; text-align: left; white-space: pre; }
.red { color: var(--red); } .green { color: var(--green); } .cyan { color: var(--cyan); }
.yellow { color: var(--yellow); } .dim { color: var(--dim); } .bold { font-weight: bold; }
"""
_STYLES = frozenset(("red", "green", "cyan", "yellow", "dim", "bold"))


def page(blocks: Sequence[Block], title: str, made: str, every_s: float | None = None) -> str:
    """Return the page. made: when the figures were taken; every_s: how often the file is replaced, None for once."""
    body = "\n".join(line for block in blocks for line in _block(block))
    again = "" if every_s is None else f'<meta http-equiv="refresh" content="{every_s:g}">\n'
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{again}<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f'<body>\n<main>\n<h1>{_text(title)}</h1>\n<p class="dim">as of {_text(made)}</p>\n'
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _policy() -> str:
    """Return the page's policy: nothing but its own style, known by its hash."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        # What can be scrolled can be reached by keys.
        name = _text(", ".join(block.header))
        yield f'<div class="wide" tabindex="0" role="region" aria-label="Table: {name}"><table>'
        head = "".join(f'<th scope="col">{_text(name)}</th>' for name in block.header)
        yield f"<thead><tr>{head}</tr></thead><tbody>"
        for row in block.rows:
            yield f"<tr>{''.join(f'<td{_class(cell)}>{_text(cell.text)}</td>' for cell in row)}</tr>"
        yield "</tbody></table></div>"
    else:
        yield f"<p{_class(block)}>{_text(block.text)}</p>"


def _class(line: Line) -> str:
    return f' class="{line.style}"' if line.style in _STYLES else ""


def _text(text: str) -> str:
    return escape(within(text), quote=True)
