"""The leader: admits, orders, retries, reaps, reports.

One `step()` = list → view → plan (in `rules`) → move → report.

    master      Master.step, which a daemon loops on and a simulator drives
    stages      the step as a table: its stages in order, with the reads and moves of each
    intake/     pending/ → tasks, rejections, or not yet: drops, batches, and what has changed since
    people/     the requests in control/: about the spool, about single tasks, and for locks
    limits/     what limits, budgets and breakers count: usage, starts, and the results of attempts
    report/     heartbeat and status snapshot, with a forecast
    tasks/      placing in ready/, reaping of dead workers' claims, the archive
    listing/    what is read from the tree: places, task metadata, members of batches
    state/      the leader's working state and its parts, the moves that all share, leadership

Law: nothing is remembered between steps that cannot be listed again. Two leaders at once are safe, because every
move is one rename; leadership only keeps policy exact. A package here imports only packages further down this map;
people, limits and report do not know each other.
"""
