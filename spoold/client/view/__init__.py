"""One view of a spool, kept up to date, which all faces share: `spool top`, `spool web`.

    view       View: what faces ask, answered from memory
    watch      Watch: a thread that looks
    following  how a view is kept up to date, look by look
    journals   the events, read from where the last look ended
    table      the cards of all tasks, and how listings and events change them
    card       one task, in few bytes
    moves      what an event of a journal says about the place of its task
    query      which tasks are meant, in which order, and how many there are of each kind
    counting   ages by type, batches, failures, what runs
    reasons    why tasks wait, counted
    answers    answers that are kept for a while, and worked out once for all who ask
    details    what only a file tells: one task, its log, its batch; read once for all who ask
    metered    a mount that counts round trips, and how many a second the view allows itself

The truth about a task is its place. So a view begins with a listing of everything, and then follows the journals,
which are cheap to follow and may miss a move. Whatever they miss shows as a difference between the counts of the view
and those of the leader's snapshot, and the directories that differ are listed again. Exact numbers are therefore
exact once the view and the snapshot agree, which `View.complete` and `View.settled` say.

A look costs one listing of status/ while nothing happens. On a share the view allows itself LOOKS_PER_S round trips
for itself, and ANSWERS_PER_S for all who ask it, however many they are. The first listing, and one that is made
again, are not spread over time, since a directory is listed in one piece.

Law: looks and never touches. Its mount refuses every verb that writes.
"""

from spoold.client.view.card import Card, Row
from spoold.client.view.counting import AGES, AgeRow, BatchRow, Run
from spoold.client.view.details import LogPart
from spoold.client.view.journals import Noted
from spoold.client.view.query import Found, Query
from spoold.client.view.reasons import Reason
from spoold.client.view.view import View
from spoold.client.view.watch import Watch

__all__ = [
    "AGES",
    "AgeRow",
    "BatchRow",
    "Card",
    "Found",
    "LogPart",
    "Noted",
    "Query",
    "Reason",
    "Row",
    "Run",
    "View",
    "Watch",
]
