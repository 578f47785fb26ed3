"""system: the world, behind narrow ports.

Law: everything above this room that needs a file, a clock, a process or a host asks through a Protocol found
here, so that the same code runs on a real share, in memory, and in the simulator with faults between. This
room knows nothing of tasks, leases or leaders; it may touch the operating system, and imports nothing of
spoold but itself.

    filesystem   the port: thirteen verbs and a usage figure, Stat, Usage
    beneath      ways to what lies below a directory, on which no link is followed
    denials      permission denied on NFS: whether the server says so now, or the client remembers it
    statx        has the client ask its server about a name, whatever it believes
    sharing      whom what is made in a spool is for: its owner, a group, everybody
    posix        the port on a mounted directory
    renaming     a rename where the server may forget: done only if it happened
    writers      whether any process has a file open for writing
    touching     new times for what is polled on NFS, so that no old listing stays
    locks        the port for the one lock of a spool that claims by lock, and the kernel's on a file
    memory       the port in a dictionary, for tests and the simulator
    nodes        what that dictionary is made of
    chance      numbers that nobody can guess
    clock        the port for time: SystemClock, ManualClock
    errnos       what an OSError says about a rename, and what to tell the user
    refusals     whose fault it is that a process could not be started
    scratch      the port for a worker's local folders, one per attempt
    host         who this machine and this process are; whether a process still lives; Host, SystemHost, FakeHost
    probe        how big this machine is for this process, and how busy
    power        what its battery says; keeping it awake while tasks run
    mounts       on which file system a path lies, and whether other machines can see it
    ground       the mount below a spool as it is now, and what follows from it
    hints        wake-ups where the system notifies of changes; a hint, never the truth
    watching     what hints watch with: watchdog's Observer, or inotify, its lowest layer, where there is one
    notice       what a watcher calls when something came
    bell         what a loop sleeps on, and how other threads wake it
"""
