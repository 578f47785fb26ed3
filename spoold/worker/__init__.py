"""A worker: claims tasks, runs them, commits what they ended with. One process per machine, several slots.

    worker      Worker.step: what a daemon loops on and a simulator drives
    config      what this worker serves and how: a file on the machine, never on the share
    standing    may it take tasks, and keep those it has? Drain, halt, sleep, battery
    appetite    what keeps a worker with free slots from taking more
    fitness     can this machine start tasks at all? While it cannot, none is claimed
    vacancies   for how many more tasks there is a place
    shyness     which tasks it leaves to others for a while
    claiming    ready/ → claimed/<me>/: which task is taken next
    claims      what is mine, as the share shows it
    starting    a claimed token → a running job
    preparing   task + handler → program, environment, folder, limits
    attempt     one claimed attempt, from the claim to the commit
    settling    an ended attempt → its result → its commit
    output      what it hands over: returned, written as its result, or printed
    writers     the threads in which it waits for a disk or a server
    reporting   what the heartbeat says of running tasks

    job         what is run and how it ended: values, and the port behind which it runs
    runner      up to N jobs at once, each below a supervisor of its own, in which a few more may wait
    slot        the worker's end of one supervisor
    supervisor  the process above one job: time limits, memory, output, and the end of the whole tree
    run, child, staff, launcher, pyhost, wire, tree    the supervisor's parts
    sweep       the last net: what a dead predecessor left on this host

Law: a job's processes never outlive it, its supervisor or its worker; nothing is committed whose claim is gone.
"""
