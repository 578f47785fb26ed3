"""What is on disk: the twin of `spool_layout.md`, kept equal to it by a test.

The tree, and names:

    layout            the tree: which directories there are, what each is for, how a path is spelled
    names             the grammar of every file name (names carry the state that changes)
    admission_names   the grammar of what stands in admitting/
    wrong_names       why a file that looks like a task, a request or a change of settings is none
    lanes             the grammar of lanes: a worker's requirements, as the name of a directory
    request           what people ask of the cluster: cancel, retry, pause, drain, halt
    lifecycle         the table of moves: from, to, who may make it

What people write:

    task              a task file
    agent_fields      a task for an agent: its short form, and what it may say
    approval          the question that a task puts to people before it starts
    lock_patterns     what a lock covers
    fields            field types that several files share
    settings          spool.toml and the marker spool.json
    settings_change   settings that change while the spool runs, and tables of settings laid over one another
    request_body      who asked, when and why
    agent_messages    what people tell the agent of a task, as its attempts find it and say that they have it

What nodes write:

    result            what an attempt ended with, the error codes, and what is handed to those that decide by it
    heartbeat         what a node says of itself
    snapshot          the leader's picture of the cluster
    feed_checkpoint   how far the leader has read the results
    event             one line of a journal
    context_entry     what the tasks of a batch share
    step              how far a task has come
    doctor_report     what the doctor found
    trace_ids         the ids of traces and spans, and the variables that carry them
    version           of spoold itself

Bytes, values and words:

    codec             bytes to values and back: the one reader of JSON, with errors that name file, field and fix
    toml_file         a settings file to values
    validation_errors a validation error in the words of the person who wrote the file: field, problem, fix
    plain_fields      fast checks that a value fits a model, without the model: how one field is read
    plain_settings, plain_settings_table, plain_task, plain_status
                      such checks of spool.toml and the marker, of all settings, of a task that is about to be
                      submitted, of heartbeats and snapshots
    amount            numbers in words (1 worker, 2 workers), how large an amount may be, how amounts are added
    timestamps        time stamps: text to seconds
    errors            whose fault it is: ours, the file's, the environment's

Law: pure; nothing here touches a file, a clock or a process, and a test holds it so.
"""
