"""The process that touches the share. It reports its work in lines of JSON, so that its parent can distinguish a
slow share from a hung one.

Law: SIGTERM, or the death of its parent, ends it in order: it removes its files. Who takes part is known and judged
before the first trial, and the parent hears all that is found at once, so it can report without this process. Lines:
{"begin": trial}, {"figures": [trial, figures]} with "together" for a trial of several machines, {"people": …},
{"alive": calls}, {"say": text}, and as the last one {"report": …} or {"failed": text}.

Touches: processes, threads, the terminal, the environment.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any, NoReturn

import orjson

from spoold.doctor import alone, together, trial_share
from spoold.doctor.meeting import NobodyCame, gather
from spoold.doctor.report_files import company_of, compose, keep, with_remark
from spoold.doctor.trial_share import Share
from spoold.protocol.doctor_report import Report
from spoold.protocol.errors import BadFile
from spoold.rules.share.machine_identities import clients_of_one_name, judge_company
from spoold.rules.share.remarks import warning
from spoold.store.store import stamp
from spoold.system.clock import SystemClock
from spoold.system.host import Host, SystemHost

ALIVE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Order:
    """One examination: peers counts all machines, with this one; wait_s for them; files to race for; make: first."""

    directory: str
    node: str
    peers: int = 1
    wait_s: float = 60.0
    files: int = 500
    quick: bool = False
    make: bool = False

    def encode(self) -> str:
        """Return the order as one word of a command line."""
        return orjson.dumps(asdict(self)).decode()


class Teller:
    """Writes lines to the parent; the parent's death ends the examination. Used by two threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def tell(self, **line: Any) -> None:
        """Write one line."""
        with self._lock:
            sys.stdout.buffer.write(orjson.dumps(line) + b"\n")
            sys.stdout.buffer.flush()


def examine(order: Order, share: Share, host: Host, teller: Teller) -> None:
    """Make all trials that were ordered, and write the report. Errors: NobodyCame when too few came, OSError."""
    with trial_share.opened(share, order.node, host) as room, ExitStack() as group:
        run = _Run(order, share, host, teller)
        run.carry_out(alone.looks(share))
        trials = alone.trials(share, room, order.node, quick=order.quick)
        if order.peers > 1:
            run.meet(trials, group)
        else:
            run.carry_out(trials)
        report = run.report()
        if run.counts:
            teller.tell(begin="record")
            try:
                keep(share, report, room)
            except BadFile as error:
                report = with_remark(
                    report, warning("record", f"this report is not kept: {error.told()}", error.mend)
                )
        # Before the clean-up, which a slow share may delay for longer than a person should wait.
        teller.tell(report=report.model_dump(mode="json"))


class _Run:
    """The trials so far. people: the members by node; missed: those of a twin of another member's machine."""

    def __init__(self, order: Order, share: Share, host: Host, teller: Teller) -> None:
        self._order, self._share, self._host, self._teller = order, share, host, teller
        self._measured: dict[str, dict[str, Any]] = {}
        self._common: dict[str, dict[str, Any]] = {}
        me = {"host": asdict(host.identity()), "measured": self._measured}
        self._people: dict[str, dict[str, Any]] = {order.node: me}
        self._missed: list[str] = []
        self._begun, self._whole = "start", True

    @property
    def counts(self) -> bool:
        """Whether the report says something of the mount: there is a spool, and no trial was left out."""
        return self._whole and bool(self._measured.get("marker", {}).get("present"))

    def report(self) -> Report:
        """The report on all figures."""
        order, at = self._order, stamp(SystemClock().wall())
        found = self._measured, self._common, self._people
        return compose(order.node, order.directory, *found, at=at, quick=order.quick, missed=self._missed)

    def meet(self, trials: dict[str, alone.Trial], left: ExitStack) -> None:
        """Make these trials and those of several machines, once all are there.

        left: leaves their group when it is closed. Errors: NobodyCame when too few came, OSError.
        """
        order, tell = self._order, self._teller.tell
        self._begin("peers")
        tell(say=f"waiting up to {order.wait_s:.0f} s for {order.peers - 1} more to start the same command")
        group = gather(self._share, order.node, order.peers, order.wait_s)
        left.callback(group.leave)
        try:
            self._begin("introduced")
            self._people, self._missed = together.introduce(group, self._host, self._measured)
            if not self._may_try([*trials, *together.trials(group, order.files)]):
                return
            self.carry_out(trials)
            self._begin("examined")
            for node, measured in together.compare(group, self._measured).items():
                self._people[node]["measured"] = measured
            self._tell_people()
            for name, trial in together.trials(group, order.files).items():
                self.carry_out({name: trial}, together=True)
                if "error" in self._common[name]:
                    break  # the others will not come to the next one
        except NobodyCame as error:
            self._whole = False
            self._common[self._begun] = {"error": str(error), "lost": True}

    def _may_try(self, trials: list[str]) -> bool:
        """Say who takes part, and what is wrong with that. Whether trials can show anything."""
        hosts = [said["host"]["hostname"] for said in self._people.values()]
        company = company_of(self._people, self._missed)
        self._whole = not clients_of_one_name(company)
        peers = {"machines": len(hosts), "hostnames": hosts, "not_tried": [] if self._whole else trials}
        self._common["peers"] = peers
        self._teller.tell(figures=["peers", peers], together=True)
        self._tell_people()
        self._teller.tell(say=f"together with {', '.join(hosts)}")
        for remark in judge_company(company):
            self._teller.tell(say=f"{remark.problem}. Fix: {remark.mend}")
        return self._whole

    def _begin(self, name: str, *, together: bool = True) -> None:
        self._begun = name
        self._teller.tell(begin=name, together=together)

    def _tell_people(self) -> None:
        self._teller.tell(people=self._people, missed=self._missed)

    def carry_out(self, trials: dict[str, alone.Trial], *, together: bool = False) -> None:
        """Make these trials. together: they are of several machines. Errors: NobodyCame."""
        figures = self._common if together else self._measured
        for name, found in alone.carry_out(trials):
            if found is None:
                self._begin(name, together=together)
            else:
                figures[name] = found
                self._teller.tell(figures=[name, found], together=together)


def _interrupt(signum: int, frame: FrameType | None) -> NoReturn:
    del signum, frame
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the clean-up follows
    raise KeyboardInterrupt


def main() -> None:
    """Carry out the order in the first argument."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    order = Order(**orjson.loads(sys.argv[1]))
    teller = Teller()
    try:
        if order.make:
            trial_share.make_places(order.directory)
        share = Share(order.directory)
        threading.Thread(target=_show_life, args=(share, teller), daemon=True).start()
        examine(order, share, SystemHost(), teller)
    except NobodyCame as error:
        teller.tell(failed=str(error), timeout=True)
    except (OSError, ValueError) as error:
        if not isinstance(error, BrokenPipeError):
            teller.tell(failed=f"{order.directory}: {getattr(error, 'strerror', None) or error}", timeout=False)
    except KeyboardInterrupt:
        sys.exit(130)


def _show_life(share: Share, teller: Teller) -> None:
    """Report that calls return, for trials that take long on a slow share."""
    told = -1
    never = threading.Event()
    while not never.wait(ALIVE_EVERY_S):
        if share.calls != told:
            told = share.calls
            try:
                teller.tell(alive=told)
            except OSError:
                return


if __name__ == "__main__":
    main()
