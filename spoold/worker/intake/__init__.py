"""Which task this worker takes next, and which are its own.

    vacancies   for how many more tasks there is a place
    claiming    ready/ → claimed/<me>/: which task is taken next
    claims      this worker's claims, as the share shows them
    allowance   the limits as this worker keeps them: closed ones, and those that count per worker
    cooldown    which tasks and types it leaves to others for a while
    company     the other workers: which of them could run a task that this one cannot

Law: a claim is a rename into the worker's own directory; no other node moves there but the leader, to reap.
"""
