"""Protocol × system: the effects that every actor of a spool shares.

    store               an open spool: marker, settings, this writer's tmp directory, reading and publishing
    initialise          makes a spool
    settings_revisions  the settings that a node goes by: spool.toml and what was changed since
    settings_change     publishes a change of settings
    existence           whether a file is really gone, or is none of the spool's
    path_conflicts      links and files in the place of a directory; why a move was refused, and how to fix it
    mover               one rename, and its true outcome
    locked_renames      the same renames inside the spool's lock, for mounts that need it
    leader_files        the tokens of leadership; the files in the doors of leaders
    lanes_and_archive   the lane directories under waiting/ and ready/; old tasks with their results and logs
    task_location       where in the tree a task is, and which ids the files in pending/ and rejected/ name
    state_counts        how many tasks are where, for status without a leader; files whose names are of neither
    dependency_results  the results of a task's dependencies; how the tasks of a batch ended
    attempt_records     results as files, of earlier attempts too; how far the leader has read them
    heartbeats          publish a beat, list all
    own_heartbeat       a node's own beats: its identity, and when the next one is due
    predecessors        which nodes of this host are gone, and which run on a twin
    contained_faults    inputs that a node could not handle: each is set aside, and the node goes on
    pool_clock          the time that decides about deadlines
    step_timing         when each look at the share is due, and what each part of a step takes besides
    doctor_reports      the doctor's findings, for readers; how nodes mount a spool, and the problems with that
    control             requests: post, list, remove
    approval_answers    the answers to the questions of a task, for its worker; who may give one
    versioned_files     what the tasks of a batch share, and the steps of tasks: files that never change
    journal             events: append mine, read and follow all
    snapshots           status snapshots: publish, read the latest
    tree_repair         the whole tree as values, for audit; the repairs of `spool fsck`

Law: only `mover` judges a rename, only `layout` spells a path, files are discovered only by listing.
"""
