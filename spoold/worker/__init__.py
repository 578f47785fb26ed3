"""A worker: claims tasks, runs them, commits what they ended with. One process per machine, several slots.

    worker      Worker.step: what a daemon loops on and a simulator drives
    step        what one of them came to
    config      what this worker serves and how: a file on the machine, never on the share
    readiness/  may it take tasks now? drain, halt, battery, load, and what its machine lacks
    intake/     which task it takes next, and which claims are its own
    handlers/   what a task may say about how it is run; a task becomes a job
    attempts/   one claimed attempt, from the start to the commit

How a job runs is `spoold.runner`'s affair.

Law: nothing is committed whose claim is gone.
"""
