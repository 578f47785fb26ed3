"""The product under a lying world: real steps, virtual time, one seed.

    scheduler   processes that take turns at every file-system call, in virtual time
    server      the true tree: what it promises, what a power cut takes back, who looks at every change
    weather     which faults a seed brings, and how often
    mount       one machine's view of the server, with the lies that NFS and SMB clients were seen to tell
    machine     a machine: clocks that disagree, processes that crash, freeze and start again
    programs    what tasks do when they run: how long, which exit code, by a hash of seed, id and attempt
    laws        what must hold after every change, and at the end
    conduct     who may do what: leaders that lead, claims of one's own, deaths after a silence
    journals    nobody's journal tells of a move that was not made
    mutants     the laws broken one at a time, which all this has to notice
    workload    what is submitted, and how it must end
    universe    all of it together: one seed from beginning to end
    chance      the names that clients make up, drawn from the seed
    minimise    a failing seed without the faults that do not matter
    trace       what happened in a run, for people
    exhaustive  what is small enough in all ways; by way of
    watched     a cluster stepped by hand under the same laws, with a gate before its tree
    stories     small stories, and how they must end
    crashes     every crash point of a story
    openings    two leaders, two workers, two tasks, at a moment when it matters who acts first
    interleaving processes that stop before every call until somebody says who goes on
    schedules   all orders of their calls up to some preemptions, without playing most of them
    dropping    what strangers drop, for hypothesis
    scribes     programs that write slowly into the drop box
    reusers     programs that use one name again and again, from clients that remember the file it had
    shelves     what tasks of a batch share, and how far they have come; written by shelf_programs
    unfit       shares that no spool survives, to see that the witness is awake

README.md says what is proven this way, and what is not.
"""
