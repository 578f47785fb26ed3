"""Protocol × system: the effects that every actor of a spool shares.

    store       an open spool: marker, settings, this writer's tmp directory, reading and publishing
    mover       one rename, and the truth about it afterwards
    lease       the tokens of leadership
    locked      the same renames inside the spool's lock, where the mount needs that
    doors       what stands in the doors of leaders
    lanes       the lane directories under waiting/ and ready/
    beats       heartbeats: publish mine, list all
    control     requests: post, list, remove
    journal     events: append mine, read and follow all
    snapshots   status snapshots: publish, read the latest
    locate      where in the tree a task is
    survey      the whole tree as values, for audit and for status without a leader
    initialise  makes a spool
    repair      what `spool fsck` mends

Law: only `mover` judges a rename, only `layout` spells a path, nobody discovers a file except by listing.
"""
