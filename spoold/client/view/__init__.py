"""One view of a spool, kept up to date, which all faces share: `spool top`, `spool web`.

    live_view   View: what faces ask, answered from memory or from files; Watch: a thread that looks
    refresh     how a view is kept up to date, look by look; the events since the last look
    cards       one task in few bytes, the table of all, and how listings and events change them
    queries     which tasks are meant, in which order, how many there are of each kind, and why they wait
    rate_limit  a mount that counts round trips, how many a second the view allows itself, and answers that are kept

The truth about a task is its place. So a view begins with a listing of everything, and then follows the journals,
which are cheap to follow and may miss a move. Whatever they miss shows as a difference between the counts of the view
and those of the leader's snapshot, and the directories that differ are listed again. Exact numbers are therefore
exact once the view and the snapshot agree, which `View.complete` and `View.settled` say.

A look costs one listing of status/ while nothing happens. On a share the view allows itself LOOKS_PER_S round trips
for itself, and ANSWERS_PER_S for all who ask it, however many they are. The first listing, and one that is made
again, are not spread over time, since a directory is listed in one piece.

Law: looks and never touches. Its mount refuses every verb that writes.
"""

from spoold.client.view.cards import Card, Row
from spoold.client.view.live_view import LogPart, View, Watch
from spoold.client.view.queries import AGES, AgeRow, BatchRow, Found, Query, Reason, Run
from spoold.client.view.refresh import Noted

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
