"""May this worker take tasks now?

    standing    requests of people, the battery, the lid: may it take tasks, and keep those it has?
    pressure    reasons why a worker with free slots takes no more
    fitness     can this machine start tasks at all? While it cannot, none is claimed
    lookup      which handlers' programs and modules are on this machine
    offering    what it offers just now

Law: decides what this worker may take, and moves no token.
"""
