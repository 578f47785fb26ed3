"""Attempts at one task: what holds for them, how they end, and what comes next.

    task_policy       a task's own wishes over the type's settings over the spool's
    end_conditions    how long an attempt may run, which deadlines are past, and what a cancel does
    attempt_outcome   how an attempt ended, as one of a few classes
    reported_figures  what an attempt says of itself: its cost, a quota that is used up, the files that it changed
    retry_rule        outcome → another attempt, perhaps with more memory, or the end
    attempt_costs     what the attempts of one task cost together
    durations         how long attempts take, by type, and what that says of those to come

Law: pure. An attempt is not charged for what was not the task's fault. A task that no worker can read fails all the
same in the end.
"""
