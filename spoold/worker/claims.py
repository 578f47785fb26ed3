"""claimed/<me>/: what is mine, as the share shows it.

Law: what is listed there is this worker's own, whether or not its rename was seen to succeed; what is no longer there
is not. A directory that is gone from claimed/ means that this worker was taken for dead.
"""

from __future__ import annotations

from collections.abc import Set

from spoold.protocol import layout
from spoold.protocol.names import TaskName, parse_task
from spoold.store.looks import Looks
from spoold.store.store import Store

_LOOK = "claims"
# How often (s) a look is due where it costs a round trip: while tasks run, and while none does; and at least so many
# times per heartbeat interval while tasks run.
EVERY_S, IDLE_S, TIMES = 1.0, 2.0, 5
# Of so many attempts that are over the tokens are known.
REMEMBERED = 10_000


class Claims:
    """Looks at one worker's claim directory, as often as need be."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looks = Looks(store)
        self._every_s = min(EVERY_S, store.settings.heartbeat.interval_s / TIMES)
        self._directory = layout.join(layout.CLAIMED, store.writer)
        self._spent: dict[str, None] = {}

    def take(self, *, working: bool) -> bool:
        """Whether to look in this step; then the look counts as taken."""
        return self._looks.take(_LOOK, self._every_s if working else IDLE_S)

    def doubt(self) -> None:
        """A move into it or out of it ended nobody knows how: look in the next step."""
        self._looks.hasten(_LOOK)

    def spend(self, file: str) -> None:
        """The attempt of this token is over, and the next has another name: what shows by this one must not run."""
        self._spent[file] = None
        if len(self._spent) > REMEMBERED:
            del self._spent[next(iter(self._spent))]

    @property
    def spent(self) -> Set[str]:
        """The tokens whose attempt was here and is over."""
        return self._spent.keys()

    def give_back(self, file: str) -> TaskName | None:
        """Let the leader judge a token that shows though its attempt is over: its name, or None if it stayed.

        Old news of the share cannot be moved; a copy that somebody restored is set aside; and where a server has
        forgotten, with its power, the rename that committed it, the task has to run again.
        """
        name = parse_task(file)
        assert name is not None  # it ran here
        back = layout.join(layout.RETURNED, name.again().encode_returned(self._store.writer))
        return name if self._store.attempt(layout.join(self._directory, file), back) is None else None

    def list(self) -> set[str]:
        """The names of my tokens. Errors: OSError, ShutOut."""
        try:
            return set(self._store.fs.list(self._directory))
        except FileNotFoundError:
            self._store.check_kept(layout.CLAIMED)
            raise
