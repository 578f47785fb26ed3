"""What a worker's file says of agents and of merges, and whether it holds on this machine.

    profiles        [agents.NAME]: a profile, and the handler that it becomes
    merge_settings  [merge]: who merges here, what judges the work, and what must not land
    redactor        what the worker masks, by the variables of such a handler: for texts, and to look for it in work
    trial           a profile, tried out: its program, its sandbox; also by the worker, when it starts

Law: all of it is the word of this machine's owner, and no task can add to it. What is wrong in it is an error that
names the field and the fix.
"""
