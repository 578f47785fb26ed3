"""Attempts at one task: their settings, how they end, and the next step.

policy         a task's own wishes over the type's settings over the spool's
outcome        how an attempt ended, as one of a few classes
figures        an attempt's own report of its cost
memory         the memory that an attempt asks for, after some that ran out of it
accounts       the sum of the costs of one task's attempts
retry          outcome → another attempt, or the end
elsewhere      the other workers that could run a task, and how long this one leaves it alone
start_backoff  how long a worker claims nothing when its machine can start nothing
"""
