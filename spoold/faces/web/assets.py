"""The files that a page loads: its styles and scripts, and the colours, which come from the palette.

Law: only files of this package are served, by a list that is made when the server starts. Their addresses change with
their content, so a browser may keep them.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from spoold.faces.web.page_cache import Copy, copy_of
from spoold.faces.web.site import respond
from spoold.pictures import svg
from spoold.pictures.palette import DARK, LIGHT, Scheme

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
COLOURS = "colours.css"


@cache
def known() -> dict[str, Copy]:
    """Return all files, by name."""
    found = {COLOURS: copy_of(colours(), 0, 0.0, kind=KINDS["css"])}
    found["icon.svg"] = copy_of(_icon(), 0, 0.0, kind=KINDS["svg"])
    for file in files("spoold.faces.web").joinpath("static").iterdir():
        ending = file.name.rpartition(".")[2]
        if ending in KINDS:
            found[file.name] = copy_of(file.read_bytes(), 0, 0.0, kind=KINDS[ending])
    return found


@cache
def edition() -> str:
    """Return a word that changes with any of the files."""
    return hashlib.sha256("".join(copy.tag for _, copy in sorted(known().items())).encode()).hexdigest()[:12]


def mount() -> Mount:
    """Return the route of all files, below an address that has the edition in it."""

    def answer(request: Request) -> Response:
        copy = known().get(request.path_params["name"])
        if copy is None:
            return Response("there is no such file.\n", 404, media_type="text/plain")
        sent = respond(request, copy)
        sent.headers["Cache-Control"] = "private, max-age=31536000, immutable"
        return sent

    return Mount("/static", routes=[Route(f"/{edition()}/{{name}}", answer, methods=["GET"])])


def colours() -> str:
    """Return the colours of both schemes: dark where the system or the switch of the page says so."""
    light, dark = _scheme(LIGHT, "light"), _scheme(DARK, "dark")
    return (
        f":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark],.log{{{dark}}}\n{_drawing()}\n{_log()}"
    )


def _scheme(scheme: Scheme, name: str) -> str:
    parts = [f"color-scheme:{name}"]
    parts += [f"--{part}:{getattr(scheme, part)}" for part in ("paper", "card", "ink", "mute", "line", "link")]
    for state, colour in scheme.states.items():
        parts += [f"--{state}:{colour.fill}", f"--{state}-ink:{colour.ink}"]
    return ";".join(parts)


def _icon() -> str:
    """The sign of a task that runs."""
    colour = LIGHT.states["claimed"]
    ground = f'<rect width="16" height="16" rx="4" fill="{colour.fill}"/>'
    sign = f'<path d="M5 4l7 4-7 4z" fill="{LIGHT.paper}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{ground}{sign}</svg>'


# The colours of a terminal, from those of the palette; what is missing there is ink, or mixed.
_TERMINAL = ("paper", "failed", "completed", "lost", "claimed", "rejected", "ready", "ink")


def _log() -> str:
    """The 16 colours of a log, which is dark in both schemes: programs choose their colours for that."""
    made = []
    for number, name in enumerate((*_TERMINAL, *_TERMINAL)):
        bright = number >= len(_TERMINAL)
        shade = f"color-mix(in srgb,var(--{name}) {60 if bright else 80}%,var(--ink))"
        ink = "var(--mute)" if name == "paper" else shade
        other = "var(--ink)" if name == "paper" else "var(--paper)"
        made.append(f".a-ink-{number}{{color:{ink}}}")
        made.append(f".a-ground-{number}{{background:{'var(--card)' if name == 'paper' else shade};color:{other}}}")
    # A ground without an ink has one that can be read; an ink of its own goes before it.
    return "".join(sorted(made))


def _drawing() -> str:
    """The sheet of all pictures, whose colours follow the switch of the page, too."""
    plain = svg.drawing().partition("@media (prefers-color-scheme:dark){")[0]
    plain += "".join(f".s-{state}>i{{background:var(--{state});color:var(--{state}-ink)}}" for state in LIGHT.states)
    dark = svg.rules(DARK)
    media = f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    return f"{plain}\n{media}\n:root[data-theme=dark]{{{dark}}}\n"
