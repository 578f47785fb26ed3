"""An agent's program: where it works, what it may see, its turns, what it said, and what it ended with.

    interfaces   where it works and what it may see: `Workspace`, `Sandbox`, and what stands there without one
    confinement  the sandbox of an attempt, where its profile asks for one, and whether its model can be asked from it
    program      a program, started, read line by line, and ended with all its processes; whether a silent one works
    turns        one turn: the program runs and is read, and is ended when it falls silent
    transcript   all that an agent has said: its words, what it used, what stands in its way
    ending       what an attempt ended with: outcome, exit code, result

Law: each program that is started is ended, with all its processes. What was asked for and cannot be had is an error
before the agent begins.
"""
