"""Coding agents as tasks: a program on top of the handler contract, which the rest of the house knows nothing of.

    __main__        `python -m spoold.agents`, the command of a profile's handler
    planning        a planner's answer becomes tasks: asked for, judged, drawn, and approved
    attempt/        one attempt of an agent's task, from prompt to result
    merge/          the merge lane: lands only the commit that was tested
    configuration/  [agents.NAME] and [merge] of a worker's file: read, and tried out
    process/        an agent's program: in its sandbox, turn by turn, what it said and what it ended with
    workspace/      a repository on this machine's own disk for each attempt; its work is pushed before it ends
    sandbox/        what the agent's processes may see and reach
    adapters/       how each agent's command line is started and read: one small file each

Law: it uses what every handler may use: the files and variables of SPOOL_*, exit codes, the result file, and
`spoold.client`. The master and the runner learn nothing about agents. Reported is not accepted, and nothing that has
not landed is deleted. A package uses only those below it in this list, and `attempt` only the request of `merge`.
"""
