"""What a client can find out about tasks, and whether something can be done with them.

    completion     what names alone say, for a shell that completes a word
    selecting      tasks by their ids, or by what they have in common
    task_info      everything that is known of one task
    task_file      the file of a task that has not ended, or of a drop, and what is wrong with it
    long_listing   the long form of a list of tasks
    explanation    why a task is not running
    gate_facts     why tasks wait: what the gates decide by, and the gates asked about many tasks
    attempt_logs   what attempts wrote, read and followed; how they ended, and their last line
    histories      what happened to a task; the attempts of many tasks, also of those that run
    graph_data     the tasks of a batch, or all, for a picture; the same as spans of OpenTelemetry
    task_groups    a task and all below it; the progress of one batch
    questions      the questions that stand, and whether a task can be held, released or answered
    preconditions  whether a task can be cancelled, retried, told or sent back, or a worker drained

Law: looks and never touches; only `task_groups` can cancel.
"""
