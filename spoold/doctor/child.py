"""The process that touches the share. It reports its work in lines of JSON, so that its parent can distinguish a
slow share from a hung one.

Law: SIGTERM, or the death of its parent, ends it in order: it removes its files. Lines: {"begin": trial},
{"figures": [trial, figures]}, {"alive": calls}, {"say": text}, and as the last one {"report": …} or {"failed": text}.

Touches: processes, threads, the terminal, the environment.
"""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any, NoReturn

import orjson

from spoold.doctor import alone, place, together
from spoold.doctor.meeting import Group, NobodyCame, gather
from spoold.doctor.records import compose, keep, with_remark
from spoold.doctor.share import Share
from spoold.protocol.errors import BadFile
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
    """Make all trials that were ordered, and write the report. Errors: NobodyCame, OSError."""
    measured: dict[str, dict[str, Any]] = {}
    common: dict[str, dict[str, Any]] = {}
    with place.opened(share, order.node, host) as room:
        _carry_out(alone.trials(share, room, order.node, quick=order.quick), measured, teller)
        me = {"host": asdict(host.identity()), "measured": measured}
        people = {order.node: me}
        if order.peers > 1:
            teller.tell(begin="peers")
            teller.tell(
                say=f"waiting up to {order.wait_s:.0f} s for {order.peers - 1} more to start the same command"
            )
            group = gather(share, order.node, order.peers, order.wait_s)
            people = _meet(group, me, common, order.files, teller)
        at = stamp(SystemClock().wall())
        report = compose(order.node, order.directory, measured, common, people, at=at, quick=order.quick)
        if measured.get("marker", {}).get("present"):
            teller.tell(begin="record")
            try:
                keep(share, report, room)
            except BadFile as error:
                report = with_remark(
                    report, warning("record", f"this report is not kept: {error.told()}", error.mend)
                )
    teller.tell(report=report.model_dump(mode="json"))


def _meet(
    group: Group, me: dict[str, Any], common: dict[str, dict[str, Any]], files: int, teller: Teller
) -> dict[str, dict[str, Any]]:
    try:
        people = together.introduce(group, me)
        hosts = [said["host"]["hostname"] for said in people.values()]
        teller.tell(say=f"together with {', '.join(hosts)}")
        common["peers"] = {"machines": len(people), "hostnames": hosts}
        trials = together.trials(group, files)
        for name, trial in trials.items():
            _carry_out({name: trial}, common, teller)
            if "error" in common[name]:
                break  # the others will not come to the next one
        return people
    finally:
        group.leave()


def _carry_out(trials: dict[str, alone.Trial], figures: dict[str, dict[str, Any]], teller: Teller) -> None:
    for name, found in alone.carry_out(trials):
        if found is None:
            teller.tell(begin=name)
        else:
            figures[name] = found
            teller.tell(figures=[name, found])


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
            place.make(order.directory)
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
