"""The styles that all pictures share, for light and for dark screens.

Law: a picture has classes and no colours of its own, so that one sheet decides. Values are written out, without CSS
variables: programs that only convert SVG know none. Nothing here comes from a task.
"""

from __future__ import annotations

from spoold.pictures.palette import DARK, LIGHT, Scheme
from spoold.pictures.svg import Markup, number, tag

FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def rules(scheme: Scheme) -> str:
    """Return the colours of a scheme as CSS."""
    made = [
        f".paper{{fill:{scheme.paper}}}.card{{fill:{scheme.card};stroke:{scheme.line}}}.band{{fill:{scheme.card}}}",
        f".ink{{fill:{scheme.ink}}}.mute{{fill:{scheme.mute}}}.rule{{stroke:{scheme.line}}}",
        f".link{{stroke:{scheme.link}}}.tip{{fill:{scheme.link}}}",
    ]
    for state, colour in scheme.states.items():
        made.append(
            f".f-{state}{{fill:{colour.fill}}}.k-{state}{{stroke:{colour.fill}}}.i-{state}{{fill:{colour.ink}}}"
        )
    return "\n".join(made)


def drawing() -> str:
    """Return the CSS of all drawings, in both schemes."""
    return f"""svg text{{font-family:{FONT};font-size:12px}}
svg .small{{font-size:10.5px}}svg .strong{{font-weight:600}}svg .head{{font-size:15px;font-weight:600}}
svg .tiny{{font-size:9px}}svg .over{{pointer-events:none}}.dash{{stroke-dasharray:3 3}}
svg .middle{{text-anchor:middle}}svg .end{{text-anchor:end}}
.link{{fill:none;stroke-width:1.3}}.link-after_any{{stroke-dasharray:6 4}}.link-after_failed{{stroke-dasharray:2 3}}
.link-after_batch{{stroke-dasharray:10 4}}.card,.edge{{stroke-width:1}}.edge{{fill:none;stroke-width:1.6}}
.rule{{stroke-width:1}}.faint{{opacity:.55}}
{rules(LIGHT)}
@media (prefers-color-scheme:dark){{
{rules(DARK)}
}}"""


def document(width: float, height: float, title: str, *children: Markup) -> str:
    """Return a whole SVG file, with its own sheet."""
    body = picture(width, height, title, tag("style", Markup(drawing())), *children)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def picture(width: float, height: float, title: str, *children: Markup, links: bool = False) -> Markup:
    """Return the element of a drawing. title: for those who do not see it; links: whether there are links in it."""
    return tag(
        "svg",
        tag("title", title),
        tag("rect", class_="paper", width="100%", height="100%"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        view_Box=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="group" if links else "img",
    )
