"""Runs jobs on this machine: a supervisor above their processes, with time limits, memory, output and an end.

    job             a job and its ending as values, and the port behind which it runs
    job_runner      up to N jobs at once, each below its own supervisor, in which a few more may wait; its last
                    resort kills what a dead predecessor left
    wire            the messages between the two
    supervisor_boot turns a process into a supervisor
    supervisor      the process above one job: time limits, memory, output, and the end of the whole tree
    running_job     one job under way in it, its memory, and the launcher, which starts programs
    child_process   a process that it starts: its directory, its refusal, its output, its file
    process_tree    all processes of a job
    freezer         a job stopped and continued as a whole, by its control group or by signals
    start_checks    whether a program starts here, and which modules a Python process could find
    pyhost          the process that calls Python functions; pyorigins: whose function a callable is; pyenviron: what
                    variables it finds
    pyseek          the process that looks for modules

Law: a job's processes never outlive it, its supervisor or its worker. Nothing here knows tasks, claims or a spool.
"""
