"""The leader: admits, orders, retries, reaps, reports.

One `step()` = list → view → plan (in `rules`) → move → report.

    master      Master.step: what a daemon loops on and a simulator drives
    leadership  the one token in master/: take, renew, resign
    desk        what a leader works with: view, backlog, journal; failing a task
    view        what the last listings showed
    archived    which ids stand in the archive, in few bytes
    takeover    what a new leader reads before it plans
    drops       pending/ → a task, a rejection, or not yet
    doors       admitting/: what shuts out the leaders before
    rejecting   what is no task → rejected/ with its reason
    batches     a .jsonl drop → many tasks
    placing     returned/ → waiting/ → ready/, and back when a gate closes
    reaping     the claims of dead workers
    requests    cancel, retry, pause, resume, drain, halt, gc
    retaining   completed/ and failed/ → archive/
    clearing    what is taken away for good
    reporting   heartbeat and status snapshot

Law: nothing is remembered between steps that cannot be listed again. Two leaders at once are safe, because every
move is one rename; leadership only keeps policy exact.
"""
