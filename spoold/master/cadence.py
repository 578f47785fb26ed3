"""How often a leader lists each directory, and how long it rests.

Law: a late look may delay a decision and never makes one wrong. The leader looks first at what people or tasks wait
for. A list that only grows is read more rarely the longer it is.
"""

from __future__ import annotations

from spoold.master.changes import EVERYTHING, Wanted
from spoold.master.desk import Desk

# How often (s) each is listed where looks cost round trips. UNDER_WAY, QUIET: everything, in heartbeat intervals.
UNDER_WAY, QUIET = 0.5, 3.0
PENDING_S, PENDING_IDLE_S = 0.4, 0.9  # with nothing ready: at every step, and this often where looks are dear
READY_S = 0.5
ENDED_S, ENDED_EACH_S = 1.0, 1e-4
# Where looks are free, two of them still grow: the ended tasks with the recent work, and the drops with those not yet
# admitted. So they are not listed at every step, but beyond FEW entries only this often (s) for each entry: ends that
# others wait for take a tenth of the time at most, other ends less, and a thousandth in a quiet spool.
FEW = 256
ENDED_AWAITED_S, ENDED_LOCAL_S, ENDED_QUIET_S = 2e-6, 5e-6, 2e-4
PENDING_LOCAL_S = 1e-5
# How long (s) a leader rests while tasks are under way, and at most while many stand ready.
REST_S, REST_MOST_S = 0.001, 0.02
REQUESTS_S, REQUESTS_QUIET_S = 1.0, 2.0


def wanted_now(desk: Desk) -> Wanted:
    """Return what to list now: all where looks are free, else what may have changed, and all at times."""
    polling, view, interval_s = desk.polling, desk.view, desk.store.settings.heartbeat.interval_s
    under_way = _under_way(desk)
    if under_way or view.pending or desk.step.busy:
        polling.active()
    every_s = interval_s * (UNDER_WAY * polling.dear if under_way else QUIET)
    if desk.step.unsure or desk.missing:
        polling.hasten("everything")
        polling.hasten("ended")
    if polling.take("everything", every_s):
        if polling.rationed:
            return EVERYTHING
        pending_s = PENDING_LOCAL_S * max(0, len(view.pending) - FEW)
        return Wanted(
            pending=polling.take("pending", 0.0, pending_s), ended=polling.take("ended", 0.0, _ended_s(desk))
        )
    # An end that others wait for is looked for at once. The longer the list of ended tasks, the rarer a look.
    each_s = ENDED_EACH_S * (len(view.completed) + len(view.failed))
    ended_s = max(0.0 if desk.backlog.graph else ENDED_S * polling.dear, each_s)
    # With tasks ready, one more would only queue behind them.
    pending_s = (
        PENDING_S * polling.dear if any(view.ready.values()) else PENDING_IDLE_S * (polling.dear - 1) * polling.slow
    )
    return Wanted(
        pending=polling.take("pending", pending_s),
        ready=any(view.ready.values()) and polling.take("ready", 0.0 if _thirsty(desk) else READY_S * polling.dear),
        ended=under_way and polling.take("ended", ended_s),
        requests=polling.take(
            "requests", REQUESTS_S * polling.dear if under_way else REQUESTS_QUIET_S * polling.slow
        ),
        beats=polling.take("beats", interval_s / 2 if under_way else interval_s),
        everything=False,
    )


def _under_way(desk: Desk) -> bool:
    """Whether anything may end soon, or has ended unseen."""
    view = desk.view
    return bool(view.on_the_way) or any(view.ready.values()) or any(view.claimed.values())


def _ended_s(desk: Desk) -> float:
    """How often (s) ended tasks are listed where looks are free."""
    each_s = ENDED_QUIET_S
    if _under_way(desk):
        each_s = ENDED_AWAITED_S if desk.backlog.graph else ENDED_LOCAL_S
    return each_s * max(0, len(desk.view.completed) + len(desk.view.failed) - FEW)


def ends_due(desk: Desk) -> float | None:
    """When (monotonic, s) to look for tokens that have left their place; None while none has."""
    wanted = desk.view.on_the_way and not desk.polling.rationed
    return desk.polling.next_due("ended", _ended_s(desk)) if wanted else None


def _thirsty(desk: Desk) -> bool:
    """Whether a lane may soon run dry though more tasks wait for it."""
    enough = desk.store.settings.ready.window // 2
    return any(len(tasks) <= enough and desk.backlog.best(lane) for lane, tasks in desk.view.ready.items())


def rest_s(desk: Desk, taken: int, since_s: float) -> float:
    """How long (s) a leader may rest without making anyone wait: more work then shares the cost of a look.

    taken: how many tasks it put into ready/ to replace those that workers took since the last step, since_s ago. At
    that pace, workers take a quarter of a full window meanwhile.
    """
    window = desk.store.settings.ready.window
    if sum(map(len, desk.view.ready.values())) <= window // 2 or _thirsty(desk):
        return REST_S if _under_way(desk) else 0.0
    return max(REST_S, min(REST_MOST_S, since_s * window / (4 * taken) if taken else REST_MOST_S))
