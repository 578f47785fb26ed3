"""The handoff note: what an attempt leaves for the next one, in a few lines.

    attempt 1 of edit-1 by coder: not_accepted
    session: 0199-ab
    work: refs/spool/edit-1/1
    files: a.py, b.py
    done: I moved the parser into a file of its own.
    open:
    - make test: exit code 2

It is in the attempt's result, from which the next attempt has it in its prompt, and an entry of the batch's context,
for other agents and people.

Law: at most NOTE_MAX bytes. What a worker masks in an output is masked here, too, before any of it comes to the
share. A note that cannot be put stops nothing.
"""

from __future__ import annotations

import hashlib

from spoold.agents.ending import End
from spoold.agents.heard import Heard
from spoold.agents.places import Saved
from spoold.agents.prompting import NOTE_MAX, OPEN
from spoold.agents.scanning import Clean
from spoold.client.context_and_steps import SharedContext
from spoold.client.spool_client import SpoolClient
from spoold.protocol.context_entry import ENTRIES_MAX, NAME_MAX
from spoold.protocol.errors import SpoolError

# How much (characters) of its words, of one reason and of one path; and how many reasons and paths.
_WORDS, _REASON, _PATH, _REASONS, _PATHS = 1200, 300, 120, 5, 20
# A batch whose tasks are tried again and again keeps room for what its tasks share by themselves.
_ROOM = ENTRIES_MAX // 2


def note(attempt: str, task_id: str, agent: str, end: End, heard: Heard, saved: Saved, clean: Clean) -> str:
    """Return the note of an attempt. attempt: its number; clean: masks a text, before any of it is cut off."""
    paths = [clean(one)[-_PATH:] for one in saved.changed[:_PATHS]]
    more = len(saved.changed) - len(paths)
    lines = [f"attempt {attempt} of {task_id} by {agent}: {end.outcome}"]
    lines += [f"session: {clean(heard.session)[:200]}"] if heard.session else []
    lines += [f"work: {saved.place['ref']}"] if saved.place.get("ref") else []
    lines += [f"files: {', '.join(paths)}{f' and {more} more' if more > 0 else ''}"] if paths else []
    words = _one_line(clean(heard.text))
    lines += [f"done: {'…' if len(words) > _WORDS else ''}{words[-_WORDS:]}"] if words else []
    text = "\n".join(lines)
    if end.reasons:
        text += OPEN + "\n".join(f"- {_one_line(clean(one))[:_REASON]}" for one in end.reasons[:_REASONS])
    return text.encode("utf-8", "replace")[:NOTE_MAX].decode("utf-8", "ignore")


def leaves_one(end: End, heard: Heard, saved: Saved) -> bool:
    """Whether another attempt may follow, for which there is something to tell."""
    if end.outcome in ("done", "no_change", "refused"):
        return False
    return end.outcome != "later" or bool(heard.text.strip() or saved.changed)


def name_of(task_id: str) -> str:
    """Return the name of a task's entry; a long id is cut, with a hash in place of its end."""
    name, digest = f"handoff-{task_id}", hashlib.blake2b(task_id.lower().encode(), digest_size=5).hexdigest()
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 11]}-{digest}"


def put(root: str, batch: str, task_id: str, text: str) -> str:
    """Put a note into the context of a batch; returns why it is not there, '' where it is."""
    try:
        with SpoolClient(root) as spool:
            shared = SharedContext(spool, batch)
            if len(shared.log()) >= _ROOM:
                return f"its handoff note is only in its result: batch {batch} has {_ROOM} entries"
            shared.put(name_of(task_id), text.encode())
    except (SpoolError, OSError) as error:
        return f"its handoff note is only in its result: {error}"
    return ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
