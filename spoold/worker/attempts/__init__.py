"""One claimed attempt, from the start to the commit.

    attempt     all that this worker knows of one
    own_lease   until when its tasks may begin, and may move
    own_budget  the stop of one that reports more than its task's own budget
    starting    a claimed token → a running job
    preparation what a claimed task gets before it starts, piece by piece
    resuming    attempts that were frozen while their worker had no lease, and may go on
    settling    an ended attempt → its result → its commit
    output      its output: returned, written as its result, or printed
    redacting   what it says, masked: secrets, tokens, and what the owner of the machine names
    logs        output of attempts → logs/, and which of it was lost
    writers     the threads in which it waits for a disk or a server
    reporting   running tasks in the heartbeat
    lending     the slots that tasks have lent while they wait
    units       the units of limits that they have lent with them
    telling     what people tell the agent of one
    losses      attempts lost lately, to warn of

Law: the result is durable before the commit, and nothing is committed whose claim is gone.
"""
