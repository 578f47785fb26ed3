"""What a leader knows and remembers, and the moves that all its duties share.

    leader_state  the working state, made of the parts below; its step, its sequence numbers, its admission directory
    tree_view     the spool in the last listings: where each token is, what has changed, which ids are archived
    known_tasks   what was learned of tasks: lanes and metadata, lost tokens, ended attempts
    limit_usage   how much of each limit is in use and lent, when tasks started, and which task tries a limit again
    pool_health   the available workers, the room on the share, how attempts ended
    fingerprints  the content of a file when it was judged, and whether it has changed
    rejecting     an entry that is no task, or whose id is taken → rejected/ with its reason
    leadership    the one token in master/: take, renew, resign

Law: all of it can be rebuilt from the tree.
"""
