"""Heartbeats and the leader's snapshots, as a running release of this format writes them.

Law: the values made here are shown, and never written to a spool: they are not models. If a field is missing, the
model is asked.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import BeatName
from spoold.protocol.plain_fields import (
    Plain,
    Reader,
    Shape,
    Unsure,
    anything,
    by_name,
    flag,
    listed,
    maybe,
    part,
    real,
    text,
    whole,
)

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat
    from spoold.protocol.snapshot import Snapshot

_AMOUNT_MAX, _ROOM_MAX_MB, _PID_MAX, _CLOCK_MAX_S, _MOST = 10**9, 10**15, (1 << 31) - 1, 10**11, 10**12
_amount, _figure = whole(0, _AMOUNT_MAX), real(0, _AMOUNT_MAX)
_texts, _texts_by_name = listed(text), by_name(text)


def _count(value: Any) -> Any:
    """As `fields.Count`: a whole number stays one."""
    if type(value) is float:
        return real(0, _MOST)(value)
    return whole(0, _MOST)(value)


_seconds = real(0, _MOST)
_total = part(
    {
        "attempts": whole(0, _MOST),
        "duration_s": _seconds,
        "cpu_s": maybe(_seconds),
        "tokens_used": maybe(_count),
        "cost_usd": maybe(_count),
    }
)


HEARTBEAT: Shape = {
    "node": text,
    "role": text,
    "beat": whole(),
    "at": text,
    "host": part(dict.fromkeys(("hostname", "machine_id", "boot_id", "pid_namespace", "time_namespace"), text)),
    "pid": whole(0, _PID_MAX),
    "process_start": real(),
    "version": text,
    "status": text,
    "slots": _amount,
    "running": listed(
        part(
            {
                "id": text,
                "attempt": _amount,
                "type": text,
                "since": text,
                "mem_mb": _figure,
                "progress": anything,
                "progress_problem": text,
                "frozen_s": _figure,
                "lent": flag,
                "back": flag,
                "served": flag,
                "instead_of": text,
            }
        )
    ),
    "capabilities": maybe(
        part(
            {
                "cpus": _figure,
                "mem_mb": _amount,
                "gpus": _amount,
                "labels": _texts,
                "types": _texts,
                "handlers": _texts,
                "pools": _texts,
                "allow_command": flag,
                "python": _texts,
                "lacks": _texts_by_name,
                "shuns": _texts_by_name,
                "about": by_name(_texts_by_name),
                "instead": by_name(_texts),
            }
        )
    ),
    "load": _figure,
    "mem_available_mb": maybe(_amount),
    "disk_free_mb": whole(0, _ROOM_MAX_MB),
    "interval_s": _figure,
    "notes": _texts,
    "left": _texts,
    "clock_ahead_s": maybe(real(-_CLOCK_MAX_S, _CLOCK_MAX_S)),
    "avoids": _texts_by_name,
    "keeps": maybe(part({"task": text, "spare": by_name(_figure)})),
    "endings": by_name(whole(0, _MOST)),
    "spent": maybe(_total),
    "durations": by_name(part({"n": whole(0, _MOST), "last": listed(_figure)})),
    "mount": maybe(part({"fstype": text, "version": text, "options": _texts, "network": flag})),
    "settings": text,
    "outlived": _texts,
    "started": text,
}

_STATES = ("pending", "waiting", "ready", "claimed", "completed", "failed", "skipped", "rejected")
SNAPSHOT: Shape = {
    "generated_at": text,
    "spool_id": text,
    "source": text,
    "master": part({"leader": maybe(text), "epoch": whole(), "standbys": _texts}),
    "tasks": part(dict.fromkeys(_STATES, whole())),
    "workers": part(dict.fromkeys(("alive", "idle", "working", "draining", "asleep", "dead"), whole())),
    "nodes": listed(
        part(
            {
                "worker": text,
                "host": text,
                "state": text,
                "slots": whole(),
                "running": whole(),
                "cpus": real(),
                "mem_mb": whole(),
                "mem_available_mb": whole(),
                "load": real(),
                "labels": _texts,
                "types": _texts,
                "tasks": listed(anything),
                "since": text,
                "notes": _texts,
                "endings": by_name(whole()),
                "spent": maybe(_total),
            }
        )
    ),
    "rates": part(
        {"completed_per_min": real(), "failed_per_min": real(), "eta_s": maybe(real()), "eta_unknown": text}
    ),
    "recent": part({"over_s": real(), "failed_attempts": by_name(whole()), "rejections": by_name(whole())}),
    "history": part(
        {
            "since": text,
            "until": text,
            "minutes": listed(
                part(
                    {
                        "at": text,
                        "completed": whole(),
                        "failed": whole(),
                        "rejected": whole(),
                        "attempts": by_name(whole()),
                        "drops": by_name(whole()),
                        "tokens_used": real(),
                        "cost_usd": real(),
                    }
                )
            ),
        }
    ),
    "spent": maybe(_total),
    "types": by_name(by_name(whole())),
    "durations": by_name(part({"n": whole(), "mean_s": real(), "p95_s": real()})),
    "gates": by_name(by_name(anything)),
    "paused": _texts,
    "halted": flag,
    "settings": text,
    "alerts": listed(
        part(
            {
                "name": text,
                "subject": text,
                "since": text,
                "value": real(),
                "threshold": real(),
                "text": text,
                "task": text,
            }
        )
    ),
    "warnings": _texts,
}
_READ_HEARTBEAT, _READ_SNAPSHOT = part(HEARTBEAT), part(SNAPSHOT)


def heartbeat(value: Any) -> Heartbeat | None:
    """A value that surely is a beat, to be read and not to be written; None if the caller must ask the model."""
    return cast("Heartbeat | None", _read(_READ_HEARTBEAT, value))


def snapshot(value: Any) -> Snapshot | None:
    """A value that surely is a snapshot, to be read and not to be written; None if the caller must ask the model."""
    return cast("Snapshot | None", _read(_READ_SNAPSHOT, value))


def load_beat(data: bytes, name: BeatName) -> Heartbeat:
    """As `codec.load_beat`, without the model if the beat surely fits it."""
    with contextlib.suppress(BadFile):
        found = heartbeat(codec.load_object(data, name.encode()) | {"node": name.node, "beat": name.content})
        if found is not None:
            return found
    return codec.load_beat(data, name)


def load_snapshot(data: bytes, file: str) -> Snapshot:
    """As `codec.load_model`, without the model if the snapshot surely fits it. Errors: BadFile."""
    found = snapshot(codec.load_object(data, file))
    if found is not None:
        return found
    from spoold.protocol.snapshot import Snapshot

    return codec.load_model(Snapshot, data, file)


def _read(reader: Reader, value: Any) -> Plain | None:
    try:
        found: Plain = reader(value)
    except Unsure:
        return None
    return found
