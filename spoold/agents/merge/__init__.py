"""The merge lane: takes the pushed work of tasks into a branch, and lands only the commit that was tested.

    config       [merge] of a worker's file
    wanted       a task of type merge: what it says, and how one is made for `spool merge` and `then: "merge"`
    candidate    the work that is to land: found in results, or by its reference
    joining      a dry run: one commit of everything that fits together, and what does not
    testing      a throw-away checkout in which the merger's own commands judge that commit
    shell        runs a line of the merger's for the shell
    walled       runs it in a sandbox
    guarding     what must not land, whatever its tests say
    landing      the push, the races, and what the remote says afterwards
    lane         the order of it all: batches, halves of them, conflicts
    helping      a conflict becomes a task for an agent, and then a question to people
    clearing     references of work that landed long ago go
    outcome      what the result of the task says
    __main__     `python -m spoold.agents.merge`: the handler

Law: the branch on the remote changes by one push of a commit whose tests have passed, onto the very commit that the
tests began with. A kill at any step leaves it as before or as after. Only what the remote shows afterwards has
landed.
"""
