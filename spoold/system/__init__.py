"""system: the world, behind narrow ports.

Law: everything above this room that needs a file, a clock, a process or a host asks through a Protocol found
here, so that the same code runs on a real share, in memory, and in the simulator with faults between. This
room knows nothing of tasks, leases or leaders; it may touch the operating system, and imports nothing of
spoold but itself.

    filesystem   the port: eleven verbs and a usage figure, Stat, Usage
    posix        the port on a mounted directory
    touching     new times for what is polled on NFS, so that no old listing stays
    locks        the port for the one lock of a spool that claims by lock, and the kernel's on a file
    memory       the port in a dictionary, for tests and the simulator
    clock        the port for time: SystemClock, ManualClock
    errnos       what an OSError says about a rename, and what to tell the user
    scratch      the port for a worker's local folders, one per attempt
    host         who this machine and this process are; whether a process still lives; Host, SystemHost, FakeHost
    probe        how big this machine is for this process, and how busy
    power        what its battery says; keeping it awake while tasks run
    mounts       on which file system a path lies, and whether other machines can see it
    hints        wake-ups from inotify where that works; a hint, never the truth
    bell         what a loop sleeps on, and how other threads wake it
"""
