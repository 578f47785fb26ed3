"""Coding agents as tasks: a program on top of the handler contract, which the rest of the house knows nothing of.

    profiles     [agents.NAME] of a worker's configuration, and the handler that each becomes
    __main__     `python -m spoold.agents`, the command of that handler
    trial        a profile, tried out: its program, its sandbox; checking: the same for the worker, when it starts
    foreseeing   what of a worker's file will fail its tasks or their merges, seen before they run
    running      one attempt of an agent's task, from prompt to result
    contract     the files and variables of SPOOL_*, as an attempt uses them
    prompting    the prompt: the task's, the results it comes after, why earlier attempts did not do
    choosing     model, tokens and temperature: of the task, the profile, or the type in the spool's settings
    turns        one turn: the program runs and is read, and is ended when it falls silent
    program      a program, started, read line by line, and ended with all its processes
    living       whether a silent one is at work or hangs
    heard        all that an agent has said: its words, what it used, what stands in its way
    scanning     what the worker masks: for texts, and to look for it in work
    telling      what people tell an agent: when it is given, and what it has had
    asking       a question of an agent becomes one for people
    ending       what an attempt ended with: outcome, exit code, result
    handoff      the note that an attempt leaves for the next one
    following    what follows work that was accepted: the task that merges it
    places       the seams to a workspace and a sandbox, and what stands there without one
    repository   the workspace of an attempt: a repository, where one is named
    reaching     whether that sandbox lets the agent ask its model, and what would
    confined     the sandbox of an attempt, where its profile asks for one
    homes        files of ours in an agent's home, where no link is followed
    adapters/    how each agent's command line is started and read: one small file each
    telemetry/   spans that an agent tells of its own attempt, which come into the result
    accepting    what was reported is not accepted: the conditions that we check ourselves
    workspace/   a repository on this machine's own disk for each attempt; its work is pushed before it ends
    merge/       the merge lane: lands only the commit that was tested
    sandbox/     what the agent's processes may see and reach
    context/     entries that the tasks of a batch share
    plan/        a planner's answer becomes tasks: asked for, judged, drawn, and approved

Law: it uses what every handler may use: the files and variables of SPOOL_*, exit codes, the result file, and
`spoold.client`. The master and the runner learn nothing about agents. Reported is not accepted, and nothing that has
not landed is deleted.
"""
