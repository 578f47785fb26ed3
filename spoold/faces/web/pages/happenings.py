"""Events, alerts, open questions.

Law: an event's detail is text of its writer; it is shown as JSON, and cut where it is long.
"""

from __future__ import annotations

import json
from typing import Any

from spoold.faces.web.address import Address
from spoold.faces.web.site import Shown, Site
from spoold.pictures.wording import clip

EVENTS, LOOKED_AT = 200, 2000
DETAIL, DETAIL_READ = 240, 4000


def events(site: Site, asked: Address) -> Shown:
    """Return the page of the last events, the newest first."""
    task, kinds, text = asked.one("task"), asked.all("event"), asked.one("q").casefold()
    noted = site.view.events(task=task, most=LOOKED_AT)
    names = sorted({one.event for one in noted})
    fitting = [one for one in noted if not kinds or one.event in kinds]
    rows = [(one, _detail(one.detail)) for one in fitting]
    if text:
        rows = [
            (one, detail)
            for one, detail in rows
            if any(text in said.casefold() for said in (one.task, one.writer, one.event, detail))
        ]
    values: dict[str, Any] = {
        "rows": [(one, clip(detail, DETAIL)) for one, detail in rows[: -EVENTS - 1 : -1]],
        "matches": len(rows),
        "total": len(noted),
        "names": names,
        "kinds": kinds,
        "task": task,
        "text": asked.one("q"),
    }
    return Shown("events", "Events", values)


def _detail(detail: dict[str, Any]) -> str:
    try:
        return json.dumps(detail, ensure_ascii=False, default=str)[:DETAIL_READ] if detail else ""
    except RecursionError:
        return "…"


def alerts(site: Site, _: Address) -> Shown:
    """Return the page of the alerts that stand, and the warnings."""
    picture = site.view.picture
    values = {
        "alerts": picture.alerts if picture is not None else (),
        "warnings": picture.warnings if picture is not None else (),
    }
    return Shown("alerts", "Alerts", values)


def asks(site: Site, asked: Address) -> Shown:
    """Return the page of the questions that nobody has answered."""
    values = {"questions": site.view.questions(), "done": asked.one("done")}
    return Shown("asks", "Questions", values)
