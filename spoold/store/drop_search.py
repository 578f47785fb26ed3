"""Drops as people look for them: the files in pending/ and rejected/, and the ids that they name.

Law: the file of a stranger is read up to a bound and never trusted; one that cannot be read is known by its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.admission_names import BatchName, parse_batch
from spoold.protocol.errors import BadFile
from spoold.protocol.names import id_in, is_id, key
from spoold.store import absence
from spoold.store.door_files import list_standing
from spoold.system.filesystem import FileSystem

SMALL_BYTES = 256 << 10
IDS_MAX = 1000
BATCH_BYTES = 64 << 20
READS_MAX = 2000


def list_drops(fs: FileSystem) -> Iterator[tuple[str, str | None]]:
    """Every drop in pending/, oldest name first, with the id that it names. Errors: OSError from listing.

    Files not named by spoold are opened for their id, READS_MAX at most: with more drops, the spool needs a leader.
    """
    reads = 0
    for drop in sorted(fs.list(layout.PENDING)):
        if drop.startswith(".") or not drop.lower().endswith((".json", ".jsonl")):
            continue
        found = id_in(drop)
        if found is None and drop.lower().endswith(".json") and reads < READS_MAX:
            reads += 1
            found = id_inside(fs, layout.join(layout.PENDING, drop))
        yield drop, found


def find_lines(fs: FileSystem, wanted: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """Those of the wanted keys that are lines of a .jsonl in pending/ or in a leader's door: path, line from 1, id.

    Errors: OSError from listing. Files are read up to BATCH_BYTES each, and only if there is a key to look for.
    """
    if wanted:
        for path, number, task_id, _ in list_lines(fs):
            if key(task_id) in wanted:
                yield path, number, task_id


def list_lines(fs: FileSystem) -> Iterator[tuple[str, int, str, bytes]]:
    """The lines with an id of every .jsonl in pending/ or in a leader's door: path, line from 1, id, the line.

    A line of a batch in a door may be a task already. Errors: OSError from listing.
    """
    pending = [
        layout.join(layout.PENDING, name) for name in fs.list(layout.PENDING) if name.lower().endswith(".jsonl")
    ]
    batches = [found.path for found in list_standing(fs) if isinstance(found.name, BatchName)]
    for path in sorted(pending) + sorted(batches):
        batch = parse_batch(path.rpartition("/")[2])
        prefix = batch.prefix if batch is not None else None
        for number, raw in enumerate(_read(fs, path, BATCH_BYTES).split(b"\n"), 1):
            task_id = _id_of_line(raw, f"{prefix}-{number}" if prefix else None)
            if task_id is not None:
                yield path, number, task_id, raw


def list_reasons(fs: FileSystem, known: Collection[str] = ()) -> Iterator[tuple[str, str, str]]:
    """Every rejection: the path of the reason, the id that the drop had (or its name), the drop's name.

    Paths in `known` are passed over. A reason is only opened if the drop's name does not show the id. A reason whose
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


def list_unexplained(fs: FileSystem) -> Iterator[tuple[str, str, str]]:
    """Every file in rejected/ without a reason beside it: its path, the id in its name (or its name), its name.

    It is counted as rejected, so a search must find it. Errors: OSError from listing.
    """
    names: set[str] = set()
    for look in range(2):  # a listing may show a drop that came during the listing, and not the reason before it
        now = set(fs.list(layout.REJECTED))
        alone = {n for n in now if not n.endswith(layout.REASON) and f"{n}{layout.REASON}" not in now}
        names = alone & names if look else alone
        if not names:
            return
    for drop in sorted(names):
        yield layout.join(layout.REJECTED, drop), id_in(drop) or drop, drop


def read_reason(fs: FileSystem, path: str) -> dict[str, Any]:
    """The leader's reason beside a rejected drop; empty if that cannot be read, or if path is the drop itself."""
    if not path.endswith(layout.REASON):
        return {}
    try:
        return reason_in(fs, path)
    except OSError:
        return {}


def reason_in(fs: FileSystem, path: str) -> dict[str, Any]:
    """As `read_reason`; empty if it is gone or not a reason. Errors: OSError if it is there and cannot be read."""
    try:
        return codec.load_object(absence.read(fs, path, SMALL_BYTES) or b"", path)
    except BadFile:
        return {}


def ids_in(batch: bytes) -> list[str]:
    """The ids that the lines of a batch name, as far as a search of the text shows them; the first thousand."""
    found = dict.fromkeys(match[1].decode(errors="replace") for match in _ID_FIELD.finditer(batch))
    return [task_id for task_id in found if is_id(task_id)][:IDS_MAX]


def rejected_lines(fs: FileSystem, wanted: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Those of the wanted keys that rejected batches name: the path of the reason, the id, the drop's name.

    Errors: OSError from listing.
    """
    names = set(fs.list(layout.REJECTED)) if wanted else set()
    for name in sorted(names):
        if not name.lower().endswith(f".jsonl{layout.REASON}") or name.removesuffix(layout.REASON) not in names:
            continue
        path = layout.join(layout.REJECTED, name)
        reason = read_reason(fs, path)
        for task_id in lines_in(reason):
            if key(task_id) in wanted:
                yield path, task_id, str(reason.get("drop") or name.removesuffix(layout.REASON))


def lines_in(reason: dict[str, Any]) -> list[str]:
    """The ids of its lines that the reason of a rejected batch names."""
    ids = reason.get("ids")
    return [task_id for task_id in ids if isinstance(task_id, str)] if isinstance(ids, list) else []


def problem_in(reason: dict[str, Any]) -> BadFile | None:
    """The error for which a drop was rejected, from its reason; None if the reason has none."""
    if not reason.get("problem"):
        return None
    file, field, problem, mend = (str(reason.get(name) or "") for name in ("file", "field", "problem", "mend"))
    return BadFile(file, field, problem, mend)


_ID_FIELD = re.compile(rb'"id"\s*:\s*"([^"\\]{1,120})"')


def _id_of_line(raw: bytes, made: str | None) -> str | None:
    """The id of a line. A line without the word `id` is not parsed, since a batch may have a million lines."""
    if not raw.strip():
        return None
    if _ID_FIELD.search(raw) is None:
        return made
    return _id_field(raw) or made


def id_inside(fs: FileSystem, path: str) -> str | None:
    """The id that a single drop names; None if it names none, is large or cannot be read."""
    data = _read(fs, path, SMALL_BYTES)
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
