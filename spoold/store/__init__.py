"""Protocol × system: the effects that every actor of a spool shares.

    store       an open spool: marker, settings, this writer's tmp directory, reading and publishing
    revisions   the settings that a node goes by: spool.toml and what was changed since
    changing    publishes a change of settings
    root_files  the marker and the settings, from their bytes
    absence     what is really not there
    obstacles   what stands in the place of a directory and is none
    regular     what is no regular file is a bad one
    refusals    why a move was refused, and how to fix it
    mover       one rename, and the truth about it afterwards
    leader_token the tokens of leadership
    locked      the same renames inside the spool's lock, where the mount needs that
    door_files  what stands in the doors of leaders
    lane_moves  the lane directories under waiting/ and ready/
    drop_search what lies in pending/ and rejected/, and which id each names
    dependencies what a task's dependencies ended with
    archive     old tasks with their results and logs
    beats       heartbeats: publish mine, list all
    presence    a node's own heartbeat
    ledger      what earlier attempts left on record
    records     results as files: read as far as they can be, written whatever stands in their place
    clocks      the time by which deadlines are judged
    polling     which look at the share is due
    mount_facts how nodes mount a spool, and what is wrong with that
    reports     what the doctor found, as others read it
    control     requests: post, list, remove
    journal     events: append mine, read and follow all
    snapshots   status snapshots: publish, read the latest
    checkpoints how far the leader has read the results: publish, read the latest
    locate      where in the tree a task is
    census      how many tasks are where, for status without a leader
    survey      the whole tree as values, for audit
    initialise  makes a spool
    repair      what `spool fsck` mends

Law: only `mover` judges a rename, only `layout` spells a path, nobody discovers a file except by listing.
"""
