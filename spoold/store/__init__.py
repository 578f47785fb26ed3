"""Protocol × system: the effects that every actor of a spool shares.

    store       an open spool: marker, settings, this writer's tmp directory, reading and publishing
    revisions   the settings that a node goes by: spool.toml and what was changed since
    changing    publishes a change of settings
    absence     whether a file is really gone
    obstacles   links and files in the place of a directory
    regular     a file that is not regular is a bad one
    refusals    why a move was refused, and how to fix it
    mover       one rename, and its true outcome
    leader_token the tokens of leadership
    locked      the same renames inside the spool's lock, for mounts that need it
    door_files  the files in the doors of leaders
    lane_moves  the lane directories under waiting/ and ready/
    drop_search the files in pending/ and rejected/, and the ids that they name
    dependencies the results of a task's dependencies
    outcomes    how the tasks of a batch ended
    archive     old tasks with their results and logs
    beats       heartbeats: publish mine, list all
    presence    a node's own heartbeat
    predecessors   which nodes of this host are gone, and which run on a twin
    ledger      the records of earlier attempts
    records     results as files: read as far as possible, written even if something stands in their place
    faults      inputs that a node could not handle: each is set aside, and the node goes on
    clocks      the time that decides about deadlines
    polling     when each look at the share is due
    own_time    what each part of a step takes besides its calls to the share, and the slices of its time
    mount_facts how nodes mount a spool, and the problems with that
    reports     the doctor's findings, for readers
    control     requests: post, list, remove
    answers     the answers to the questions of a task, for its worker
    shelf       a directory for each batch or task, with files that never change
    context     what the tasks of a batch share
    steps       how far tasks have come
    owners      whether the owner of an answer may give it
    journal     events: append mine, read and follow all
    snapshots   status snapshots: publish, read the latest
    checkpoints how far the leader has read the results: publish, read the latest
    locate      where in the tree a task is
    misnamed    files among tasks and requests whose names are of neither
    census      how many tasks are where, for status without a leader
    survey      the whole tree as values, for audit
    initialise  makes a spool
    repair      the repairs of `spool fsck`

Law: only `mover` judges a rename, only `layout` spells a path, files are discovered only by listing.
"""
