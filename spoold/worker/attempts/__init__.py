"""One claimed attempt, from the start to the commit.

    attempt     all that this worker knows of one
    own_lease   until when what is mine may begin, and may move
    starting    a claimed token → a running job
    resuming    what was frozen while the share was silent, and may go on
    settling    an ended attempt → its result → its commit
    recording   the record of it, with the sum over all attempts
    output      what it hands over: returned, written as its result, or printed
    logs        what attempts print → logs/, and what of it was lost
    writers     the threads in which it waits for a disk or a server
    reporting   what the heartbeat says of running tasks
    losses      what was lost lately, to warn of

Law: the result is durable before the commit, and nothing is committed whose claim is gone.
"""
