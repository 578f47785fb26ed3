"""Is this mount safe for a spool? Trials on the share itself, alone or together with other machines.

    share      the port: what trials need beyond the file-system port (locks, open handles, exclusive creation)
    place      where trials are made: directories of this run in doctor/, and how nothing of them is left behind
    names      which names survive
    renames    renames over, into and between directories; claims by several threads
    access     who may write; exclusive creation; what fsync says
    locks      whether locks exclude on this machine
    clocks     the server's clock, how fine mtimes are, whether changes are told of
    pace       how long each operation takes
    alone      all trials of one machine, in order
    meeting    how machines find each other in doctor/, and keep in step
    freshness  what a machine sees of what another did, and when
    contest    claims, locks and exclusive creation by several machines at once
    together   all trials of several machines, in order
    child      the process that touches the share
    examine    the process that waits for it, never for ever, and says what was found
    records    the reports that are kept in doctor/

Law: no trial touches a task. Whatever is made is made below doctor/, or under a name that begins with a dot, and is
removed also when the run is interrupted; what a crashed run left, a later one removes. A trial measures, `rules`
judges. May touch: the spool's directory, the mount table, the clock, child processes of its own.
"""
