"""Is this mount safe for a spool? Trials on the share itself, alone or together with other machines.

    trial_share    the port: the file-system port, with locks and open handles; the places of a run
    shared_trials  renames, claims by several threads, and the time that each operation takes
    alone          all looks and trials of one machine, in order
    meeting        how machines find each other in doctor/, and keep in step
    together       who takes part; all trials of several machines, in order
    trial_process  the process that touches the share
    examine        the process that waits for it, but within bounds, and returns the report
    report_files   the reports that are kept in doctor/

Law: no trial touches a task. All files are made below doctor/, or under a name that begins with a dot, and are
removed also when the run is interrupted. A later run removes the files of a crashed one. A trial measures, `rules`
judges. May touch: the spool's directory, the mount table, the clock, its own child processes.
"""
