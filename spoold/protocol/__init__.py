"""What is on disk: the twin of `spool_layout.md`, kept equal to it by a test.

    layout      the tree: which directories there are, what each is for, how a path is spelled
    names       the grammar of every file name (names carry the state that changes)
    door        the grammar of what stands in admitting/
    misnamed    why a file that looks like a task, a request or a change of settings is none
    drop        the names of files in pending/, other people's and ours
    name_parts  parts of a name, cut out without parsing the rest
    order       urgency and age as text that sorts
    lifecycle   the table of moves: from, to, who may make it
    patterns    what a lock covers
    task        a task file, as people write it
    errand      a task for an agent, as people write it: its short form, and what it may say
    approval    the question that a task puts to people before it starts
    result      what an attempt ended with, and the error codes
    ended_attempt what a result says of an attempt, for those that decide by it
    checkpoint  how far the leader has read the results
    heartbeat   what a node says of itself
    request     what people ask of the cluster: cancel, retry, pause, drain, halt
    request_body who asked, when and why
    told        what people tell the agent of a task, as its attempts find it and say that they have it
    snapshot    the leader's picture of the cluster
    report      what the doctor found
    change      settings that change while the spool runs
    entry       what the tasks of a batch share
    step        how far a task has come
    overlay     tables of settings: one laid over another, and each setting with its key
    settings    spool.toml and the marker spool.json
    alert_settings when people are told of something
    plain       fast checks that a value fits a model, without the model
    codec       bytes to values and back: the one reader of JSON, with errors that name file, field and fix
    toml_file   a settings file to values
    complaint   a validation error in the words of the person who wrote the file: field, problem, fix
    lanes       the grammar of lanes: a worker's requirements, as the name of a directory
    fields      field types that several files share
    event       one line of a journal
    stamps      time stamps: text to seconds
    trace       the ids of traces and spans, and the variables that carry them
    amount      numbers in words: 1 worker, 2 workers
    quantity    how large an amount may be, and how amounts are added
    version     of spoold itself
    errors      whose fault it is: ours, the file's, the environment's

Law: pure; nothing here touches a file, a clock or a process, and a test holds it so.
"""
