"""The merge lane: takes the pushed work of tasks into a branch, and lands only the commit that was tested.

    merge_request  a task of type merge: what it says, and how one is made for `spool merge` and `then: "merge"`
    candidates     the work that is to land, and a dry run: one commit of everything that fits together
    testing        a throw-away checkout in which the merger's own commands judge that commit, in a sandbox or not
    guards         what must not land, whatever its tests say
    branch         the push, the races, what the remote says afterwards, and the clean-up of what landed long ago
    bisection      the order of it all: batches, halves of them, conflicts; and what the result of the task says
    conflicts      a conflict becomes a task for an agent, and then a question to people
    __main__       `python -m spoold.agents.merge`: the handler

Law: the branch on the remote changes by one push of a commit whose tests have passed, onto the very commit that the
tests began with. A kill at any step leaves it as before or as after. Only what the remote shows afterwards has
landed.
"""
