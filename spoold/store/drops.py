"""Drops as people look for them: what lies in pending/ and rejected/, and which id each names.

Law: the file of a stranger is read up to a bound and never trusted; one that cannot be read is known by its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.drop import id_in
from spoold.protocol.errors import BadFile
from spoold.protocol.names import BatchName, is_id, key, parse_batch
from spoold.store.doors import list_standing
from spoold.system.filesystem import FileSystem

SMALL_BYTES = 256 << 10
BATCH_BYTES = 64 << 20
READS_MAX = 2000


def list_drops(fs: FileSystem) -> Iterator[tuple[str, str | None]]:
    """Every drop in pending/, oldest name first, with the id that it names. Errors: OSError from listing.

    Strangers' files are opened for their id, READS_MAX of them at most: behind so many a leader is needed, not an id.
    """
    reads = 0
    for drop in sorted(fs.list(layout.PENDING)):
        if drop.startswith(".") or not drop.lower().endswith((".json", ".jsonl")):
            continue
        found = id_in(drop)
        if found is None and drop.lower().endswith(".json") and reads < READS_MAX:
            reads += 1
            found = _id_inside(fs, drop)
        yield drop, found


def find_lines(fs: FileSystem, wanted: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """Which of the wanted keys are lines of a .jsonl in pending/ or in a leader's door: path, line from 1, id.

    Errors: OSError from listing. Files are read up to BATCH_BYTES each, and only if there is a key to look for.
    """
    if not wanted:
        return
    pending = [
        layout.join(layout.PENDING, name) for name in fs.list(layout.PENDING) if name.lower().endswith(".jsonl")
    ]
    batches = [found.path for found in list_standing(fs) if isinstance(found.name, BatchName)]
    for path in sorted(pending) + sorted(batches):
        batch = parse_batch(path.rpartition("/")[2])
        prefix = batch.prefix if batch is not None else None
        for number, raw in enumerate(_read(fs, path, BATCH_BYTES).split(b"\n"), 1):
            task_id = _id_of_line(raw, f"{prefix}-{number}" if prefix else None)
            if task_id is not None and key(task_id) in wanted:
                yield path, number, task_id


def list_reasons(fs: FileSystem, known: Collection[str] = ()) -> Iterator[tuple[str, str, str]]:
    """What was rejected: the path of the reason, the id that it had (or the drop's name), the drop's name.

    Paths in `known` are passed over. A reason is only opened where the drop's name does not tell the id; one whose
    drop has not followed it into rejected/ is not a rejection yet. Errors: OSError from listing.
    """
    names = set(fs.list(layout.REJECTED))
    for name in sorted(names):
        path, drop = layout.join(layout.REJECTED, name), name.removesuffix(layout.REASON)
        if not name.endswith(layout.REASON) or drop not in names or path in known:
            continue
        found = id_in(drop)
        if found is not None:
            yield path, found, drop
            continue
        reason = read_reason(fs, path)
        yield path, str(reason.get("id") or reason.get("drop") or drop), str(reason.get("drop") or drop)


def read_reason(fs: FileSystem, path: str) -> dict[str, Any]:
    """What the leader wrote beside a rejected drop; empty when that cannot be read."""
    try:
        return codec.load_object(_read(fs, path, SMALL_BYTES), path)
    except BadFile:
        return {}


def problem_in(reason: dict[str, Any]) -> BadFile | None:
    """The error for which a drop was rejected, out of its reason; None when that does not say."""
    if not reason.get("problem"):
        return None
    file, field, problem, mend = (str(reason.get(name) or "") for name in ("file", "field", "problem", "mend"))
    return BadFile(file, field, problem, mend)


_ID_FIELD = re.compile(rb'"id"\s*:\s*"([^"\\]{1,120})"')


def _id_of_line(raw: bytes, made: str | None) -> str | None:
    """The id of a line; only one in which the word occurs is parsed, since a batch may have a million lines."""
    if not raw.strip():
        return None
    if _ID_FIELD.search(raw) is None:
        return made
    return _id_field(raw) or made


def _id_inside(fs: FileSystem, drop: str) -> str | None:
    data = _read(fs, layout.join(layout.PENDING, drop), SMALL_BYTES)
    return _id_field(data) if _ID_FIELD.search(data) else None


def _id_field(data: bytes) -> str | None:
    try:
        found = codec.load_object(data, "").get("id")
    except BadFile:
        return None
    return found if isinstance(found, str) and is_id(found) else None


def _read(fs: FileSystem, path: str, limit: int) -> bytes:
    try:
        return fs.read(path, limit)
    except OSError:
        return b""
