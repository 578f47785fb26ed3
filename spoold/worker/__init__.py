"""A worker: claims tasks, runs them, commits what they ended with. One process per machine, several slots.

    worker      Worker.step: what a daemon loops on and a simulator drives
    step        what one of them came to
    config      what this worker serves and how: a file on the machine, never on the share
    standing    may it take tasks, and keep those it has? Drain, halt, sleep, battery
    pressure    what keeps a worker with free slots from taking more
    fitness     can this machine start tasks at all? While it cannot, none is claimed
    vacancies   for how many more tasks there is a place
    cooldown    which tasks and types it leaves to others for a while
    lookup      which handlers' programs are on this machine; offering: what it offers just now
    company     the other workers: which of them could run what this one cannot
    claiming    ready/ → claimed/<me>/: which task is taken next
    claims      what is mine, as the share shows it
    starting    a claimed token → a running job
    preparing   task + handler → program, environment, folder, limits
    handler     how the tasks of one type are run, and what they may say about it
    permits     what a task may say about how it is run: directory, variables, standard input
    filling     a handler's command with a task's fields filled in
    hazards     words that programs take for more than an operand
    attempt     one claimed attempt, from the claim to the commit
    resuming    what was frozen while the share was silent, and may go on
    settling    an ended attempt → its result → its commit
    logs        what attempts print → logs/, and what of it was lost
    recording   the record of it, with the sum over all attempts
    output      what it hands over: returned, written as its result, or printed
    writers     the threads in which it waits for a disk or a server
    reporting   what the heartbeat says of running tasks
    losses      what was lost lately, to warn of

How a job runs is `spoold.runner`'s affair.

Law: nothing is committed whose claim is gone.
"""
