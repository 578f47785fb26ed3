"""Trials of names: those that spoold makes must be listed as they were written.

Law: a name survives only if a listing shows it exactly as it was written. Makes files in its room only.
"""

from __future__ import annotations

import contextlib
from typing import Any

from spoold.doctor.share import Share
from spoold.protocol import layout

# Every character of the grammar, the longest name that it allows, and the longest lane.
MADE = (
    "4990.hff58yhhc0-3.Build_=+,.-x.a2f1c0r1500d.json",
    "type=build,run=command,cpu=1.5,mem=4096,need=docker+node",
    "5000.hff58yhhc0-3." + "n" * 224 + ".a1f0c0.json",
)


def try_names(share: Share, room: str) -> dict[str, Any]:
    """Figures of `names`. Errors: OSError."""
    place = layout.join(room, "names")
    share.mkdir(place)
    lost = [_short(name) for name in MADE if not _survives(share, place, name)]
    share.write(layout.join(place, "case"), b"", durable=False)
    share.write(layout.join(place, "CASE"), b"", durable=False)
    return {
        "lost": lost,
        "case_sensitive": {"case", "CASE"} <= set(share.list(place)),
        "unicode": _survives(share, place, "Grüße ☃.json"),
    }


def _survives(share: Share, place: str, name: str) -> bool:
    with contextlib.suppress(OSError):
        share.write(layout.join(place, name), b"", durable=False)
        return name in share.list(place)
    return False


def _short(name: str) -> str:
    return name if len(name) < 80 else f"{name[:24]}… ({len(name)} bytes)"
