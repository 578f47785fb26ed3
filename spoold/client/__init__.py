"""The interface for programs: submit, wait, result, events.

    spool_client       SpoolClient: one object for one spool, everything a program can do with it
    decisions          holds, approvals, questions and messages: what people decide about single tasks
    executor           SpoolExecutor: concurrent.futures over a spool; chunks: many calls of its `map` as one task
    in_task            a client in a task: its parent, and the slot that it lends while it waits
    context_and_steps  what the tasks of a batch share, and the steps of this task
    spool              an open spool as a whole: connection, drops, nodes, settings, limits, waiting
    read               what a client can find out about tasks, and whether something can be done with them
    view               one picture of everything, kept up to date, which all faces share

Of these packages read imports spool, view imports both, and none imports a module beside it.

Law: a client owns nothing but its tmp directory. It drops tasks, posts requests and looks; it moves no token.
"""
