"""The interface for programs: submit, wait, result, events.

    spool_client SpoolClient: one object for one spool, everything a program can do with it
    reading      questions about a spool: status, explain, tasks in pages, events, changes
    connection   an open spool: publishing, posting requests, leaving it clean
    location     which directory is meant when none is said
    inside       a client in a task: its parent, and the slot that it lends while it waits
    ancestors    the same for a program that was started with a filtered environment
    submission   from what a caller wrote to what is dropped: ids, validation, batches
    by_name      what names alone say, for a shell that completes a word
    selecting    tasks by their ids, or by what they have in common
    families     a task and all below it; its end with theirs
    asking       whether a task can be cancelled or tried again
    deciding     holds, approvals, questions and messages: what people decide about single tasks
    telling      whether the agent of a task can be told something
    questions    the questions that stand, and whether a task can be held, released or answered
    sending_back which tasks run again when a person rejects with a redo
    listing      the long form of a list of tasks
    task_file    the file of a task that has not ended, and what is wrong with it
    info         everything that is known of one task
    inquiry      why a task is not running
    story        everything that happened to a task
    scenes       the tasks of a batch, or all, for a picture
    histories    the attempts of many tasks, also of those that run
    traces       the same as spans of OpenTelemetry, with what the journals add
    reservations what a person or a running task reserves, and who holds what
    context      what the tasks of a batch share: put, get, list
    steps        the steps of this task: save how far it has come, and go on from there
    pauses       pauses, closed limits and halts: made, lifted, and who asked, why, and until when
    lent         what a task that has waited wants back
    agents       what live workers offer: agents, types, commands
    limits       the limits with their figures: what is used, started, closed
    stock        what the gates count, as the leader's snapshot shows it
    endings      how attempts ended, and the last line that they wrote
    estimates    when tasks will have ended
    parents      the state of what a task waits for: tasks and batches
    status       the picture of the cluster, also without a leader
    counted      the picture without a leader, made by listing
    measuring    what monitoring measures: the last snapshot, heartbeats, the oldest ready tasks, room
    batches      the progress of one batch
    view         one picture of everything, kept up to date, which all faces share
    budgets      what is spent, reserved and left of each budget, and raises
    living       the nodes that are alive, by their process or by a new beat
    hearing      how long a worker has been silent
    configuring  the settings that hold, where each comes from, and how one is changed
    checking     whether spool.toml and all changes are right
    fsck         audits a spool, and has it repaired
    waiting      results as they come in, found by listing
    pace         how often to look
    logs         what attempts wrote, read and followed
    executor     SpoolExecutor: concurrent.futures over a spool; chunks: many calls of its `map` as one task
    arguments    callables and JSON arguments, checked before they travel
    failures     errors for a caller: TaskFailed, NotFinished

Law: a client owns nothing but its tmp directory. It drops tasks, posts requests and looks; it moves no token.
"""
