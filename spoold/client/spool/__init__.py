"""An open spool as a client has it: how to find and open it, what is dropped into it, its nodes, settings and limits.

    location            which directory is meant when none is said
    connection          an open spool: publishing, posting requests, leaving it clean
    submission          from what a caller wrote to what is dropped: ids, validation, batches, callables, arguments
    waiting             results as they come in, the pauses between two looks, errors: TaskFailed, NotFinished
    spool_status        the picture of the pool, also without a leader
    offline_status      the picture without a leader, made by listing; how long a worker has been silent
    living_nodes        the nodes that are alive, by their process or by a new beat
    capabilities        what live workers offer: agents, types, commands
    metrics_source      what monitoring measures: the last snapshot, heartbeats, the oldest ready tasks, room
    configuration       the settings that hold, where each comes from, how one is changed, and whether all are right
    limits_and_budgets  limits and budgets with their figures: what is used, spent, closed, left; raises
    standing_requests   pauses, closed limits, halts and reservations: made, lifted, who asked, why, and until when
    fsck_and_repair     audits a spool, and has it repaired

Law: nothing here needs a task but its id. `spool_status` and `connection` load no model of a file at their start.
"""
