"""What a worker may take.

    matching    may this worker run what is in this lane, and who else could?
    slots       what a worker keeps for a task that it has no room for; whose slot is lent; how many it claims ahead
    passing     in which order it takes what is ready, so that nobody is passed over for ever
    readiness   what keeps it from taking any: a drain, its battery, a machine that can start nothing

Law: pure; workers, leader and `spool explain` ask the same functions.
"""
