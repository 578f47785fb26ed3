"""A worker: claims tasks, runs them, commits their results. One process per machine, several slots.

    worker      Worker.step, which a daemon loops on and a simulator drives
    intake/     may it take tasks now, and which one next?
    attempts/   one claimed attempt, from the start to the commit; the claims and limits of this worker
    handlers/   what this worker serves; what a task may say about how it is run; a task becomes a job

`spoold.runner` decides how a job runs.

Law: nothing is committed whose claim is gone. A package here imports only packages further down this map.
"""
