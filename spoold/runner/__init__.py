"""Runs jobs on this machine: a supervisor above their processes, with time limits, memory, output and an end.

    job         a job and its ending as values, and the port behind which it runs
    runner      up to N jobs at once, each below its own supervisor, in which a few more may wait
    slot        the worker's end of one supervisor; wire: the messages between them
    sweep       the last resort: kills the processes that a dead predecessor left on this host
    supervisor  the process above one job: time limits, memory, output, and the end of the whole tree; boot: its start
    run         one job under way in it
    launcher    starts programs for it; child: a process that it starts, and what it prints
    pyhost      the process that calls Python functions; pyorigins: whose function a callable is; pyenviron: what
                variables it finds
    seeking     whether that one could find a module; pyseek: the process that looks
    trying      a short command that tells whether a program starts here
    entering    a job's way into its directory; refusal: why one could not be started
    tree        all processes of a job; ice: stopped and continued as a whole
    spot        a file of a job, wherever the job moves its directory
    freezer     the control group in which a job is frozen

Law: a job's processes never outlive it, its supervisor or its worker. Nothing here knows tasks, claims or a spool.
"""
