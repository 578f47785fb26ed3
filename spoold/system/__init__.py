"""system: the world, behind narrow ports.

Law: everything above this room that needs a file, a clock, a process or a host asks through a Protocol found
here, so that the same code runs on a real share, in memory, and in the simulator with faults between. This
room knows no tasks, leases or leaders; it may touch the operating system, and imports nothing of spoold but
itself.

    filesystem   the port: thirteen verbs and a usage figure, Stat, Usage
    beneath      paths below a directory, on which no link is followed
    statx        has the client ask its server about a name, whatever the client believes
    sharing      who may use new files in a spool: their owner, a group, everybody
    posix        the port on a mounted directory
    renaming     a rename for servers that may forget: done only if it happened
    writers      whether any process has a file open for writing
    locks        the port for the one lock of a spool that claims by lock, and the kernel's on a file
    memory       the port in a dictionary, for tests and the simulator
    chance      numbers that cannot be guessed
    clock        the port for time: SystemClock, ManualClock
    errnos       the meaning of an OSError for a rename, and the advice to the user
    refusals     the cause of a process that could not be started: task, worker or machine
    traces       which nodes ran on this machine before
    scratch      the port for a worker's local folders, one per attempt
    leftovers    the worker's end of the process that removes what tasks left
    cleaner      that process
    remover      the one remover of folders whose content others decided: any depth, any number, never across a mount
    walking      a walk over such folders, to read them
    same_mount   opening a name without leaving the mount of its directory
    loans        files by which a task that waits lends its slot
    host         the identity of this machine and process; whether a process still lives; Host, SystemHost, FakeHost
    probe        how big this machine is for this process, and how busy
    power        the state of the battery; keeping the machine awake while tasks run
    mounts       the file system of a path, and whether other machines can see it
    ground       the mount below a spool as it is now, and its consequences
    hints        wake-ups where the system notifies of changes; a hint, never the truth
    inotify      the lowest layer of watchdog, where there is one
    notice       the callback of a watcher
    breathing    the port of a node that beats: it may do so before each call of a step
    bell         the thing a loop sleeps on, and how other threads wake it
"""
