"""What should happen: values in, decisions out. Whoever has to decide asks here, so that all decide alike.

    policy      a task's own wishes over the type's settings over the spool's
    outcome     how an attempt ended, as one of a few classes
    figures     what an attempt says that it cost
    memory      how much an attempt asks for, after some that ran out of it
    accounts    what the attempts of one task cost together
    retry       outcome → another attempt, or the end
    elsewhere   who else could run what a worker cannot, and how long that one keeps away from it
    gates/      may this task run now? a file for each gate, and the registry that asks them all
    graph       which tasks wait for which, and cycles among them
    resources   what is counted: how much a task uses, how much there is
    backlog     what is waiting, and when the gates are asked again; queues: its order
    promoting   which of it goes to ready/ next, and which goes back
    matching    may this worker run what is in this lane?
    fitness     how long a worker whose machine can start nothing claims nothing
    ahead       how many tasks a worker may claim before a slot is free for them
    liveness    which nodes are dead, by counters and the observer's own clock
    clocks      what time it is where machines disagree
    lease       who leads: what to do with the token that was seen
    admission   a drop as a task, a rejection, or not yet
    batch       a .jsonl drop as tasks
    disk        is there room on the share?
    power       what a battery lets a worker do
    selection   which tasks are meant by state, type and batch
    drain       whom a drain is meant for
    retention   what moves to the archive
    sharing     who can use a spool, by owner, group and umask
    nodes       heartbeats as status shows them
    tempo       how fast tasks end, when the rest will have ended, what went wrong lately
    explain     why a task is not running, in words; case is what is known of it, takers the workers' side
    mounting    which mount options are unsafe; whether a node mounts as the doctor approved
    checkup     what the doctor's figures of one machine mean; gathering: those of several together
    remarks     how what is found out about a mount is said
    verdict     safe with rename, safe with lock, or not safe
    audit       is the one-token law true of this tree? sighting is what was seen, finding what is wrong

Pure: no file, clock or randomness can be imported here (a test holds it so); time comes in as a number.
"""
