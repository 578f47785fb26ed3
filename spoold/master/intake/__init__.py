"""The drop box: pending/ → tasks, rejections, or not yet.

    drops                  each drop, and the originals of copies
    deferred_drops         drops that wait: incomplete, impossible to move for now, or not durable yet
    batch_admission        a .jsonl drop → many tasks, and batches whose writer may go on
    batch_validation       a .jsonl drop read in pieces, and judged as a whole
    requeue_changed        a file whose content has changed goes back to pending/
    admission_directories  admitting/: shuts out earlier leaders

Law: nothing that a member wrote is lost, and no line or drop becomes a task twice.
"""
