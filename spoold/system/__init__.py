"""system: the world, behind narrow ports.

Law: everything above this room that needs a file, a clock, a process or a host asks through a Protocol found
here, so that the same code runs on a real share, in memory, and in the simulator with faults between. This
room knows no tasks, leases or leaders; it may touch the operating system, and imports nothing of spoold but
itself.

    filesystem          the port: thirteen verbs and a usage figure, Stat, Usage
    posix               the port, and the port for the one lock of a spool, on a mounted directory
    memory_filesystem   the port in a dictionary, for tests and the simulator
    beating_filesystem  the port of a node that beats: it may do so before each call of a step
    openat              paths below a directory, on which no link is followed
    permissions         who may use new files in a spool: their owner, a group, everybody
    errnos              the meaning of an OSError for a rename or a start, and the advice to the user
    clock               the port for time: SystemClock, ManualClock
    kernel_random       numbers that cannot be guessed
    scratch             the port for a worker's local folders, one per attempt
    leftovers           the worker's end of the process that removes what tasks left
    cleaner             that process
    remover             the one remover of folders whose content others decided: any depth, never across a mount
    walking             a walk over such folders, to read them
    same_mount          opening a name without leaving the mount of its directory
    slot_loans          files by which a task that waits lends its slot
    host                the identity of this machine and process; whether a process lives; which nodes ran here before
    hardware            how big and busy this machine is, its battery; keeping it awake while tasks run
    mounts              the file system of a path; the mount below a spool as it is now
    hints               wake-ups where the system notifies of changes; a hint, never the truth
    inotify             the lowest layer of watchdog, where there is one
    wakeup              the thing a loop sleeps on, and how other threads and watchers wake it
"""
