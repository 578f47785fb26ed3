"""What waits, and what of it runs next.

    waiting_task    one waiting task, and the index of those that wait for a request
    backlog         all that is waiting, and when the gates are asked again
    batch_members   which open tasks are of which batch, and which batches are over
    fair_shares     whose turn it is: batches or users share what starts
    queues          the order of what may run, and which ready tasks make way for a more urgent one
    fallback_types  as which other types tasks run while a limit of their own is closed
    promotion       which of it goes to ready/ next, which goes back, and what is kept for a task that lacks the rest

Law: pure; leader, workers and `spool explain` ask the same functions.
"""
