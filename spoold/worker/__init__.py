"""A worker: claims tasks, runs them, commits their results. One process per machine, several slots.

    worker      Worker.step, which a daemon loops on and a simulator drives
    config      what this worker serves and how: a file on the machine, never on the share
    redact      what is masked in the output of attempts
    readiness/  may it take tasks now? drain, halt, battery, load, and lacks of its machine
    intake/     which task it takes next, and which claims are its own
    handlers/   what a task may say about how it is run; a task becomes a job
    attempts/   one claimed attempt, from the start to the commit

`spoold.runner` decides how a job runs.

Law: nothing is committed whose claim is gone.
"""
