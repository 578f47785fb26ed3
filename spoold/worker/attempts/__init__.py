"""One claimed attempt, from the start to the commit.

    attempt         all that this worker knows of one, before it starts and while it runs; what it says, masked
    claims          this worker's claims, as the share shows them
    worker_limits   the limits as this worker keeps them: closed ones, and those that count per worker
    starting        a claimed token → a running job
    lease           until when tasks may begin and move; which frozen attempts may go on after a silence
    settling        an ended attempt → its result → its commit
    attempt_output  its output: returned, written as its result, or printed; logs/, and which of it was lost
    reporting       running tasks in the heartbeat; the stop of one that reports more than its task's own budget
    lent_slots      the slots, and the units of limits, that tasks have lent while they wait
    agent_messages  what people tell the agent of one

Law: the result is durable before the commit, and nothing is committed whose claim is gone.
"""
