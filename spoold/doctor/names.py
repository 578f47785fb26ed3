"""Trials of names: those that spoold makes must be listed as they were written.

Law: a name survives only if a listing shows it exactly as it was written. Makes files in its room only.
"""

from __future__ import annotations

import contextlib
from typing import Any

from spoold.doctor.share import Share
from spoold.protocol import layout
from spoold.protocol.lanes import Lane
from spoold.protocol.names import COUNT_MAX, DELAY_MAX_MS, ID_MAX, TaskName

# As many bytes as a name may have.
LONGEST = "5000.hff58yhhc0-3." + "n" * 224 + ".a1f0c0.json"
# Every character of the grammar of tasks and of lanes, and the longest name.
MADE = (
    "4990.hff58yhhc0-3.Build_=+,.-x.a2f1c0r1500d.json",
    "type=build,run=command,cpu=1.5,mem=4096,need=docker+node",
    LONGEST,
)
# The longest lane that there may be, and in it the longest task: some servers limit the whole path.
LANE = Lane("t" * 48, run="command", need=("a" * 48, "b" * 48, "c" * 31)).encode()
TASK = TaskName(
    5000, "hff58yhhc0-zzzzzz", "n" * ID_MAX, COUNT_MAX, COUNT_MAX, COUNT_MAX, DELAY_MAX_MS, conditional=True
).encode()


def try_names(share: Share, room: str) -> dict[str, Any]:
    """Figures of `names`. Errors: OSError."""
    place = layout.join(room, "names")
    share.mkdir(place)
    lost = [_short(name) for name in MADE if not _survives(share, place, name)]
    if not _holds_lane(share, place):
        lost.append(f"{_short(LANE)}/{_short(TASK)}")
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


def _holds_lane(share: Share, place: str) -> bool:
    lane = layout.join(place, LANE)
    with contextlib.suppress(OSError):
        share.mkdir(lane)
        return LANE in share.list(place) and _survives(share, lane, TASK)
    return False


def _short(name: str) -> str:
    return name if len(name) < 80 else f"{name[:24]}… ({len(name)} bytes)"
