"""worker: claims tasks, runs them, and commits what they ended with; nothing it starts outlives it.

Law: this room never imports master or client, and what runs a job knows nothing of the shared directory.
Who calls whom when something is run, from the worker's loop downwards:

    job          Job, Command, Call, Ending: what to run and how it ended; RunnerPort, the port the loop sees
    runner       the port for real: one supervisor process per slot, leases, waiting
    wire         JSON lines between worker, supervisor and Python host; nobody blocks on anybody
    supervisor   the process of one slot: adopts all that its job starts, keeps its time, kills all of it
    run          one job under way in a supervisor, and the warm Python host that calls share
    child        fork, exec, and what the child prints
    pyhost       the Python process that calls functions, with the user's packages and none of ours
    tree         what lives below a process, and how to end all of it
    sweep        what a dead predecessor left behind on this host
"""
