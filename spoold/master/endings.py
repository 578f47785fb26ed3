"""When pauses and closed limits end by themselves: the only content of requests that a leader acts on.

Law: a request whose content is not read yet, or cannot be read, stands until it is lifted. So nothing starts too
early. Only a quota that cannot be read ends all the same, after the longest time for which it may close its limit.
May touch: the content of such requests in control/.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spoold.master.desk import Desk
from spoold.protocol.errors import BadFile
from spoold.protocol.request import ENDING, Request, Verb
from spoold.rules.attempts.ends import past
from spoold.rules.scheduling.moment import LOOK_AGAIN_MIN_S, LOOK_AGAIN_S
from spoold.store import control
from spoold.store.regular import readable_again
from spoold.system.errnos import concerns_one_file

# A request that could not be read is read again after this long (s).
READ_AGAIN_S = 10.0
FIX = "it stands until {}; {}"
LIFTED = {Verb.PAUSE: "`spool resume`", Verb.CLOSE: "`spool limits open`", Verb.QUOTA: "`spool limits open`"}


@dataclass(slots=True)
class Endings:
    """Reads each such request once.

    again: when (monotonic, s) to read a failed one again; wrong: the warning about it.
    """

    again: dict[Request, float] = field(default_factory=dict)
    wrong: dict[Request, str] = field(default_factory=dict)
    read: set[Request] = field(default_factory=set)

    def step(self, desk: Desk) -> None:
        """Read new requests. Errors: OSError that concerns more than one file."""
        listed = {request for request in desk.view.requests if request.verb in ENDING}
        self.read &= listed
        for known in (desk.request_ends, self.again, self.wrong):
            for gone in known.keys() - listed:
                del known[gone]
        for request in sorted(listed - self.read, key=Request.encode):
            if desk.step.now.monotonic >= self.again.get(request, 0.0):
                desk.breathe()
                self._read(desk, request)
        desk.report.notice(*self.wrong.values())

    def over(self, desk: Desk, request: Request) -> bool:
        """Whether a request has ended by itself."""
        end = desk.request_ends.get(request)
        return end is not None and past(end, desk.step.now.wall)

    def next_due(self, desk: Desk) -> float | None:
        """When (monotonic, s) the next request ends by itself; None where none does."""
        left_s = [end - desk.step.now.wall for end in desk.request_ends.values() if end > desk.step.now.wall]
        # As for a task's own moment: a clock may be set meanwhile, and a float may not show the last microsecond.
        return desk.step.now.monotonic + min(max(min(left_s), LOOK_AGAIN_MIN_S), LOOK_AGAIN_S) if left_s else None

    def _read(self, desk: Desk, request: Request) -> None:
        path, end = control.path(request), None
        self.again[request] = desk.step.now.monotonic + READ_AGAIN_S
        try:
            try:
                end = control.end_of(desk.store.fs, request)
            except BadFile as error:
                self.wrong[request] = f"{error.told()} It stands until {LIFTED[request.verb]}. {error.mend}"
            except OSError as error:
                if isinstance(error, FileNotFoundError) or not concerns_one_file(error):
                    raise
                self.wrong[request] = (
                    f"{path}: {error.strerror}; {FIX.format(LIFTED[request.verb], readable_again(error))}"
                )
            else:
                self.wrong.pop(request, None)
            if request.verb is Verb.QUOTA:
                end = control.quota_end(desk.store, request, end)
        except FileNotFoundError:
            return  # it was lifted, and is listed a little longer; or the share was away, and it is read again
        if request not in self.wrong:
            self.read.add(request)
        if end is not None:
            desk.request_ends[request] = end
