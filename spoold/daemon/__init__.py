"""Processes around `step()`: they wait, wake, listen to signals and talk to the service manager.

    naming      node ids, unique per start
    pulse       whether the loop makes progress or is stuck inside the share
    loop        step, wait, step: for a master or a worker, on its own thread
    freezing    log lines and status on frozen tasks
    processes   `spool master` and `spool worker`
    signals     the signals that ask a process to leave
    nap         whether this machine is about to sleep
    up          `spool up`: a master and workers as children of one process
    logs        a daemon's log on stderr
    eof         notices the end of the process that started this one
    leading     a master for the loop
    working     a worker for the loop
    actors      code for both
    embedded    Spool.local(): the same in the background of one program
    units       the systemd units, rendered for a spool

Law: the main thread keeps time and, once it has opened the spool, never touches the share; only the loop's thread
does. So a hung mount cannot stop the watchdog or a signal.
"""
