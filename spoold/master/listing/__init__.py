"""What the leader reads from the tree.

    refresh        what has changed since the last listings, how often each directory is listed, waiting/ listed anew
    task_metadata  the type of task of a claim, its deadline, its budgets and locks
    batch_members  which batches are over, while a task waits for one
    unread_shares  of which shares inherited tasks are, while several take turns

Law: what cannot be read just now is read again, and counts until then for everything that it may be.
"""
