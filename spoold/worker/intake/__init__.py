"""May this worker take tasks now, and which one next?

    readiness  requests of people, the battery, the lid, the load; what the worker offers just now
    claiming   ready/ → claimed/<me>/: for how many there is a place, which is next, which are left to others

Law: a claim is a rename into the worker's own directory; no other node moves there but the leader, to reap.
"""
