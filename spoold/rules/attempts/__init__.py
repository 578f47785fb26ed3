"""Attempts at one task: what holds for them, how they end, and what comes next.

    policy         a task's own wishes over the type's settings over the spool's
    ends           how long an attempt may run, and which deadlines are past
    cancelling     what a cancel does to a task in each state
    outcome        how an attempt ended, as one of a few classes
    figures        what an attempt says that it cost
    quota          what an attempt says about a quota that is used up
    memory         how much an attempt asks for, after some that ran out of it
    accounts       what the attempts of one task cost together
    durations      how long attempts take, by type, and what that says of those to come
    retry          outcome → another attempt, or the end
    elsewhere      which other worker could run what this one cannot, and how long this one leaves it alone
    start_backoff  how long a worker whose machine can start nothing claims nothing

Law: pure. An attempt is not charged for what was not the task's fault. A task that no worker can read fails all the
same in the end.
"""
