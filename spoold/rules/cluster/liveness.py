"""Which nodes are dead, and why one was silent. Beats are compared, never clocks.

Law: a node is dead when its beat has not changed for `dead_after_s`, counted on the observer's monotonic clock and
only over looks that the observer could trust. Each look counts for at most one interval: an observer that was itself
suspended or disconnected must not count that time. A beat may have come just before the end of the look that first
showed it; the count runs from there to the start of the last look. After a silence of the share that the observer
noticed, the others have as long again to come back: a client retries a lost connection at doubling intervals. A node
that was dead before that silence stays dead: one call on a file that a dead SMB client held can take seconds.

A node's own host may say that its process is gone. That shortens the silence to one interval, and replaces none of
it: two machines that were resumed from one image of memory have equal identities, and each finds only its own
processes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.amount import length, precise

# Linux retries a lost NFS connection after 3, 6, 12 … s, at most this long apart: net/sunrpc/xprtsock.c,
# XS_TCP_INIT_REEST_TO and XS_TCP_MAX_REEST_TO. Seen: a client that came back 38 s after the others, from 184 s.
LONGEST_PAUSE_S = 300.0


class Absence:
    """The times when an observer saw nothing of the share. Times in seconds, monotonic.

    away_s: the length of the last of them; 0 if none was longer than the time between looks.
    """

    def __init__(self, interval_s: float, dead_after_s: float) -> None:
        self.away_s = 0.0
        self._longest_s = max(2 * interval_s, dead_after_s - interval_s)
        self._patience_s = dead_after_s
        self._waits: list[tuple[float, float]] = []  # the end of the silence, and until when the others may come back
        self._looked_at: float | None = None

    def look(self, now: float) -> None:
        """The observer has seen something of the share, with a look that began at `now`."""
        away_s = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        self._waits = [(back_at, until) for back_at, until in self._waits if now < until]
        if away_s > self._longest_s:
            self.away_s = away_s
            self._waits.append((now, now + min(away_s, LONGEST_PAUSE_S) + self._patience_s))

    def returning(self, begun: float) -> bool:
        """Whether a node whose last beat came after `begun` may still be on the way back."""
        return any(begun < back_at for back_at, _ in self._waits)


@dataclass(slots=True)
class _Silence:
    """beat: the last one; seen: it came earlier than this; begun: it came later than this, 0 if it was there at the
    first look; dead: at some look it was silent for long enough, without a sign of being on the way back; reported:
    its own host has said meanwhile that it is gone.
    """

    beat: int
    seen: float
    begun: float = 0.0
    seconds: float = 0.0
    dead: bool = False
    reported: bool = False


class Watch:
    """Counts, for every node seen, how long its beat has stood still. Times in seconds.

    absence: of the same observer, which may look at other things as well.
    """

    def __init__(self, interval_s: float, dead_after_s: float, absence: Absence | None = None) -> None:
        self.absence = absence or Absence(interval_s, dead_after_s)
        self._interval_s = interval_s
        self._dead_after_s = dead_after_s
        self._silent: dict[str, _Silence] = {}
        self._refuted: set[str] = set()
        self._last_look: float | None = None
        self._looked_at = 0.0

    def look(
        self, beats: Mapping[str, int], present: Iterable[str], began: float, ended: float | None = None
    ) -> None:
        """A trusted look (monotonic; ended: at once, if None). beats: the beat of each node; present: nodes known by
        other signs.

        A node that left a claim directory but has no heartbeat is watched too, as one whose beat stands still.
        """
        last, self._last_look = self._last_look, began
        self.absence.look(began)
        seen: dict[str, int] = {**dict.fromkeys(present, -1), **beats}
        for node in [n for n in self._silent if n not in seen]:
            del self._silent[node]
            self._refuted.discard(node)
        for node, beat in seen.items():
            known = self._silent.get(node)
            if known is None or known.beat != beat:
                if known is not None and known.reported:
                    self._refuted.add(node)
                moment = began if ended is None else ended
                self._silent[node] = _Silence(beat, moment, self._looked_at if known else 0.0)
            elif last is not None:
                known.seconds += min(max(began - max(last, known.seen), 0.0), self._interval_s)
            silence = self._silent[node]
            silence.dead = silence.dead or (self._long(silence) and not self.absence.returning(silence.begun))
        self._looked_at = began

    def untrusted(self) -> None:
        """Note a failed look: the time since the last one proves nothing."""
        self._last_look = None

    def silent_s(self, node: str) -> float:
        """Seconds of trusted looking since the node's beat last changed; 0 for a node never seen."""
        known = self._silent.get(node)
        return known.seconds if known else 0.0

    def gone(self, reported: Collection[str]) -> list[str]:
        """Return the nodes to reap of those of which their own host says that they are gone: an interval of silence
        confirms that, and a beat that moves refutes it. A node of which no other sign is left needs no silence.
        """
        for node in self._silent.keys() & {*reported}:
            self._silent[node].reported = True
        confirmed = {node for node, silence in self._silent.items() if silence.seconds >= self._interval_s}
        return [n for n in reported if n not in self._silent or n in confirmed - self._refuted]

    @property
    def refuted(self) -> Set[str]:
        """The nodes that have beaten after their own host was heard to say that they are gone."""
        return self._refuted

    def dead(self) -> list[str]:
        """The nodes to reap."""
        return sorted(node for node, silence in self._silent.items() if silence.dead)

    def returning(self) -> list[str]:
        """The nodes that would be dead, had the share not been silent: they may still be on the way back."""
        return sorted(node for node, silence in self._silent.items() if self._long(silence) and not silence.dead)

    def _long(self, silence: _Silence) -> bool:
        return silence.seconds >= self._dead_after_s


# Why a node was silent: by where its time went since its last beat, and not by guess.
# Law: the share is blamed only for time that its calls have taken, or in which it refused steps. The largest part
# of the time is the cause; of equal parts the share is blamed last. A node that cannot account for a second blames
# nobody.


# A part of less than this (s) causes no silence; another part of this fraction of the largest is named, too.
LEAST_S, ALSO = 1.0, 0.5


class Cause(StrEnum):
    """What kept a node from beating. The order decides between equal parts."""

    ASLEEP = "asleep"
    STOPPED = "stopped"
    BUSY = "busy"
    HINDERED = "hindered"
    SHARE = "share"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time (s) of a node went since some moment.

    awake_s: the time that passed without suspend; asleep_s: in suspend. stopped_s: not even the thread that keeps
    time ran; it counts in none of the others. stepping_s: in steps, of which waited_s in calls to the share.
    refused_s: from the first step that the share ended by an error, to one that succeeds; hindered_s: the same for an
    error of this machine.
    """

    awake_s: float = 0.0
    asleep_s: float = 0.0
    stopped_s: float = 0.0
    stepping_s: float = 0.0
    waited_s: float = 0.0
    refused_s: float = 0.0
    hindered_s: float = 0.0

    def since(self, before: Spent) -> Spent:
        """The time spent since an earlier sum."""
        return Spent(*(max(0.0, getattr(self, name) - getattr(before, name)) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Blame:
    """The cause of a silence, and a sentence about it, which a semicolon may follow."""

    cause: Cause
    text: str


def judge_silence(spent: Spent, silent_s: float, who: str, part: str = "", error: str = "") -> Blame:
    """The cause of a silence of silent_s. who: "this worker"; part: what the node does in its step, error: what ended
    its last step; '' if unknown.
    """
    parts = _parts(spent)
    named = [cause for cause in sorted(parts, key=lambda each: -parts[each]) if parts[cause] >= LEAST_S]
    if not named:
        return Blame(Cause.UNKNOWN, f"{who} has not beaten for {length(silent_s)}")
    texts = {
        Cause.ASLEEP: f"this machine was suspended for {length(parts[Cause.ASLEEP])}",
        Cause.STOPPED: f"{who} was stopped, or got no processor, for {precise(parts[Cause.STOPPED])}",
        Cause.BUSY: f"{who} was busy{part and f' with {part}'} for {precise(parts[Cause.BUSY])}",
        Cause.HINDERED: f"{who} could not go on for {precise(parts[Cause.HINDERED])}{error and f' ({error})'}",
        Cause.SHARE: _of_share(spent, parts[Cause.SHARE], error),
    }
    most = parts[named[0]]
    return Blame(named[0], ", and ".join(texts[cause] for cause in named if parts[cause] >= ALSO * most))


def _parts(spent: Spent) -> dict[Cause, float]:
    """The time by cause, in the order that decides between equal parts."""
    return {
        Cause.ASLEEP: spent.asleep_s,
        Cause.STOPPED: spent.stopped_s,
        Cause.BUSY: max(0.0, spent.stepping_s - spent.waited_s),
        Cause.HINDERED: spent.hindered_s,
        Cause.SHARE: max(spent.waited_s, spent.refused_s),
    }


def _of_share(spent: Spent, share_s: float, error: str) -> str:
    if spent.refused_s > spent.waited_s:
        return f"the share has refused for {length(share_s)}{error and f' ({error})'}"
    return f"the share has been silent for {length(share_s)}"
