"""What a program uses: submit, wait, result, events.

    spool_client SpoolClient: one object for one spool, everything a program can do with it
    reading      what a program sees: status, explain, tasks in pages, events, changes
    connection   an open spool: publishing, posting requests, leaving it clean
    location     which directory is meant when none is said
    awaited      which batch a drop waits for
    submission   from what a caller wrote to what is dropped: ids, validation, batches
    by_name      what names alone say, for a shell that completes a word
    selecting    tasks by their ids, or by what they have in common
    asking       whether a task can be cancelled or tried again
    listing      the long form of a list of tasks
    info         all that can be said of one task
    inquiry      why a task is not running
    pauses       who paused what, why and until when
    rejections   which drop was rejected since a task has its id
    origins      with which tasks a failure by dependency began
    status       the picture of the cluster, also without a leader
    counted     that picture where nobody leads, made by listing
    batches      how far one batch is
    living       which nodes live, by their process or by a beat that comes
    hearing      how long a worker has been silent
    fsck         audits a spool, and has it mended
    waiting      results as they come in, found by listing
    pace         how often to look
    logs         what attempts wrote, read and followed
    executor     SpoolExecutor: concurrent.futures over a spool; chunks: many calls of its `map` as one task
    arguments    callables and JSON arguments, checked before they travel
    failures     what goes wrong for a caller: TaskFailed, NotFinished

Law: a client owns nothing but its tmp directory. It drops tasks, posts requests and looks; it moves no token.
"""
