"""`spool master` and `spool worker` as processes: a loop on its thread, and a main thread that keeps time.

The main thread handles signals, pings the watchdog while the loop makes progress, and sets the status. A loop that
hangs inside the share is the server's fault, and a restart would not help.

Law: the watchdog ends only a loop that makes no progress and has, by its pulse, no call to the share under way. While
such a call hangs, the watchdog is pinged, and the status names the call. A share that has answered for LOST_S that it
is lost for good ends the process, also while it leaves: the service manager starts a new one, which may find a new
mount.

Touches: processes, threads, the network, the environment.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from spoold.daemon.daemon_log import configure
from spoold.daemon.loop import Actor, Loop, hinted, open_spool
from spoold.daemon.node_ids import node_id
from spoold.daemon.progress_watch import Freezing, Pause, Pulse
from spoold.daemon.signals import Nap, Signals, at_eof
from spoold.protocol.amount import precise
from spoold.protocol.errors import BadFile
from spoold.rules.cluster.liveness import LEAST_S, Spent, judge_silence
from spoold.runner.process_tree import conceal
from spoold.system import mounts
from spoold.system.clock import SystemClock

if TYPE_CHECKING:
    from spoold.worker.handlers.worker_config import WorkerConfig


log = logging.getLogger("spoold")

LOOK_S = 5.0
# The machine waits for this process before it sleeps.
NAP_LOOK_S = 0.1
# No step takes SILENT_S unless the share is silent; the status says so after STUCK_S.
SILENT_S, STUCK_S = 5.0, 30.0
HANG_S = 60.0
# A mount that comes back within a minute ends no node. A step is tried again once in a second.
LOST_S = 59.0
WORKERS_IDLE = 0.7
EXIT_OURS = 70
EXIT_UNAVAILABLE = 69


def master_main(root: str, name: str | None = None, *, until_eof: bool = False) -> int:
    """Run a master until a signal; returns the exit status. Errors: Unavailable at the start, BadFile."""
    from spoold.daemon.master_actor import MasterActor  # a worker need not load a master

    configure()
    conceal()
    pulse = Pulse()
    settings = open_spool(root, node_id(name, "m"), pulse).settings
    nap, fuse = Nap(SystemClock()), mounts.on_fuse(root)
    loop = Loop(lambda: MasterActor(root, name, pulse), settings.poll, pulse, lambda: False, nap, fuse)
    freezing = Freezing(lambda: None, 0.0, pulse)
    return _run(loop, freezing, settings.heartbeat.interval_s, leave_within_s=10.0, until_eof=until_eof)


def worker_main(root: str, config: WorkerConfig, *, until_eof: bool = False) -> int:
    """Run a worker until it is drained; returns the exit status. Errors: Unavailable at the start, BadFile."""
    from spoold.daemon.worker_actor import WorkerActor
    from spoold.runner.job_runner import Runner, become_subreaper

    configure()
    conceal()
    pulse = Pulse()
    settings = open_spool(root, node_id(config.name), pulse).settings
    become_subreaper()
    # A new task waits for the leader's look and then for a worker's; a worker's look costs the server half as much.
    poll = settings.poll.model_copy(update={"idle_s": WORKERS_IDLE * settings.poll.idle_s})
    outlived, nap, fuse = list[str](), Nap(SystemClock()), mounts.on_fuse(root)
    loop = Loop(lambda: WorkerActor(root, config, pulse, outlived), poll, pulse, lambda: False, nap, fuse)

    def runner() -> Runner | None:
        return loop.actor.runner if isinstance(loop.actor, WorkerActor) else None

    freezing = Freezing(runner, settings.heartbeat.lease_s, pulse)
    leave_within_s = config.drain_grace_s + config.kill_grace_s + 10.0
    return _run(loop, freezing, settings.heartbeat.interval_s, leave_within_s=leave_within_s, until_eof=until_eof)


def _run(loop: Loop, freezing: Freezing, interval_s: float, *, leave_within_s: float, until_eof: bool) -> int:
    """Drive the loop on its thread and do everything else here. interval_s: of the node's beats. Errors: BadFile, as
    at the start.
    """
    loop.hinted = hinted(lambda: loop.actor)
    notifier = Notifier()
    signals = Signals()
    signals.catch()

    def drive() -> None:
        loop.run()
        signals.wake()

    thread = threading.Thread(target=drive, name="loop", daemon=True)
    thread.start()
    if until_eof:
        at_eof(lambda: signals.receive(signal.SIGTERM))
    notifier.ready()
    leaving_since: float | None = None
    heard, rested = 0, False
    look_s = min(LOOK_S, notifier.watchdog_interval_s() or LOOK_S)
    while thread.is_alive():
        pause = loop.pulse.tick(signals.wait, _pause_s(loop, min(look_s, freezing.due_s), rested=rested))
        tell(pause, interval_s, _described(loop))
        while heard < len(signals.naps):
            loop.hear(signals.naps[heard])
            heard += 1
        rested = loop.resting  # read before the status is sent, so that the status surely says so
        _tell(loop, notifier, freezing.look(_trouble(loop)), by_share=freezing.by_share)
        if signals.numbers and leaving_since is None:
            leaving_since = loop.pulse.ran_s
            notifier.stopping()
        if signals.numbers:
            loop.leave(hurry=len(signals.numbers) > 1)
        if (loop.lost_s or 0.0) >= LOST_S:
            log.error(
                "the share is lost: %s for %.0f s; this node ends, so that it can be started anew with a new mount"
                "; its running tasks are killed, and run again",
                loop.trouble,
                loop.lost_s,
            )
            os._exit(EXIT_UNAVAILABLE)
        if leaving_since is not None and (
            len(signals.numbers) > 2 or loop.pulse.ran_s - leaving_since > leave_within_s
        ):
            why = _unfinished(loop)
            log.error("leaving unfinished: %s; running tasks are killed, and run again if not committed", why)
            os._exit(EXIT_UNAVAILABLE)
        if loop.over:
            thread.join()
    if isinstance(loop.error, BadFile) and loop.actor is None:
        raise loop.error  # it was to begin again, and a file has become invalid: the same as at the start
    if loop.error is not None:
        log.critical("this is a bug in spoold; please report it", exc_info=loop.error)
        return EXIT_OURS
    return 0


def _described(loop: Loop) -> str:
    """Return one line on the node and its work."""
    actor: Actor | None = loop.actor
    return "it has not begun yet" if actor is None else actor.describe()


def _pause_s(loop: Loop, longest_s: float, *, rested: bool) -> float:
    """Return for how long (s) the main thread may wait before it looks again."""
    if loop.nap.due and not rested:
        return NAP_LOOK_S
    lost_s = loop.lost_s
    return longest_s if lost_s is None else max(0.0, min(longest_s, LOST_S - lost_s))


def _trouble(loop: Loop) -> str | None:
    """Return the last failure: of a whole step, or of a part that is tried again."""
    actor: Actor | None = loop.actor
    return loop.trouble or (actor.trouble if actor is not None else None)


def _unfinished(loop: Loop) -> str:
    """Return the reason why a loop does not end. A share that refuses, such as a full one, is not silent."""
    inside, age_s, trouble = loop.pulse.inside, loop.pulse.age_s, _trouble(loop)
    if inside is not None and age_s > SILENT_S:
        before = f", and before that: {trouble}" if trouble is not None else ""
        return f"the share has not answered for {age_s:.0f} s ({inside}){before}"
    return trouble or "the tasks here have not ended yet"


def _tell(loop: Loop, notifier: Notifier, frozen: str, *, by_share: bool = True) -> None:
    """Set the status, and ping the watchdog while the loop makes progress or hangs where a restart would not help.

    frozen: the status text on frozen tasks, '' for none; by_share: whether they wait for the share.
    """
    inside, age_s, trouble = loop.pulse.inside, loop.pulse.age_s, _trouble(loop)
    actor: Actor | None = loop.actor
    if inside is not None and age_s > STUCK_S:
        notifier.status(f"waiting for the share for {age_s:.0f} s ({inside}){frozen and f'; {frozen}'}")
    elif trouble is not None:
        notifier.status(f"trouble: {frozen and f'{frozen}; '}{trouble}")
    elif frozen:
        notifier.status(f"waiting for the share: {frozen}" if by_share else f"waiting: {frozen}")
    elif actor is not None:
        notifier.status(actor.describe())
    if inside is not None or age_s < HANG_S:
        notifier.watchdog()


# Says in the log of a node that it was stopped, starved or suspended, as soon as it goes on.


# Beats are published when two thirds of their interval are over (`store.own_heartbeat`).
MARGIN = 1 / 3
_WHO = "this node"


def tell(pause: Pause | None, interval_s: float, node: str) -> None:
    """Log a pause that is long enough to matter. interval_s: of its beats; node: itself and its work, for people."""
    if pause is None or pause.stopped_s + pause.asleep_s < max(LEAST_S, MARGIN * interval_s):
        return
    spent = Spent(stopped_s=pause.stopped_s, asleep_s=pause.asleep_s)
    text = judge_silence(spent, pause.stopped_s, _WHO).text
    if pause.asleep_s > pause.stopped_s:  # a laptop does that every day
        log.info("%s; %s", text, node)
        return
    where = "in a call to the share" if pause.calling else "in a step" if pause.stepping else "between two steps"
    log.warning("%s, %s; it used %s of processor time meanwhile; %s", text, where, precise(pause.used_s), node)


# Messages of a daemon to its service manager: ready, status, alive, stopping.


STATUS_LIMIT = 300  # characters; one line of `systemctl status`


class Notifier:
    """The readiness protocol of systemd. Without a manager every call is a no-op that returns False.

    Make one per process: it removes its variables from the environment, so that no task can inherit them and send
    messages, or be waited for, in the daemon's name. Calls return whether the message was sent; none raises.
    """

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        timeout_us = environ.pop("WATCHDOG_USEC", "")
        guarded = environ.pop("WATCHDOG_PID", "")
        # A leading @ stands for the zero byte of Linux's abstract socket names.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._interval_s = _interval_s(timeout_us) if guarded in ("", str(os.getpid())) else None

    def ready(self) -> bool:
        """Report that the daemon has opened its spool and begins to loop."""
        return self._send("READY=1")

    def status(self, text: str) -> bool:
        """Show text in `systemctl status`; as one line, since a second line would be read as a command."""
        return self._send("STATUS=" + " ".join(text.split())[:STATUS_LIMIT])

    def watchdog(self) -> bool:
        """Report that the loop has made progress. Call it only then: mere existence is no progress."""
        return self._send("WATCHDOG=1")

    def stopping(self) -> bool:
        """Report that the daemon drains and will exit by itself."""
        return self._send("STOPPING=1")

    def watchdog_interval_s(self) -> float | None:
        """Return the seconds that may pass between two calls of watchdog(); None without a watchdog.

        Half of the manager's limit, so that one late step does not get the daemon killed.
        """
        return self._interval_s

    def _send(self, message: str) -> bool:
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                manager.setblocking(False)
                manager.connect(self._address)
                manager.send(message.encode(errors="replace"))
        except (OSError, ValueError):  # ValueError: an address that cannot be a socket name
            return False
        return True


def _interval_s(timeout_us: str) -> float | None:
    """Return half of a time in microseconds, in seconds; None for text that is no such time."""
    if not re.fullmatch(r"[0-9]{1,18}", timeout_us):
        return None
    return int(timeout_us) / 2_000_000 or None
