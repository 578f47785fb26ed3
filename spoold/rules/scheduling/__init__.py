"""What waits, and what of it runs next.

    graph       which tasks wait for which, and cycles among them
    resources   what is counted: how much a task uses, how much there is
    shares      the slots of each class, and what it may borrow
    ramp        how tasks follow after one has tried a quota
    windows     the starts of the last seconds
    moment      one moment, on both clocks of the leader
    breakers    failures in a row, and for how long they keep a type back
    breakers_seen   the same in the leader's snapshot
    spending    what attempts came to, by the budgets on which they draw
    budgets     what is reserved, and which budget has too little left
    budgets_seen    the same in the leader's snapshot
    entry       one waiting task
    backlog     what is waiting, and when the gates are asked again
    members     which open tasks are of which batch, and which batches are over
    parked      requests about single tasks, and what waits for one
    queues      the order of what may run
    yielding    which ready tasks make way for a more urgent one
    keeping_back what is kept for a task that has some of what it needs, and lacks the rest
    instead     as which other types tasks run while a limit of their own is closed
    promoting   which of it goes to ready/ next, and which goes back
    matching    may this worker run what is in this lane?
    keeping     what a worker keeps for a task that it has no room for yet
    regaining   who gets back the units of limits that it lent
    lending     whose slot is lent, and who gets one back
    ahead       how many tasks a worker may claim before a slot is free for them

Law: pure; leader, workers and `spool explain` ask the same functions.
"""
