"""Processes around `step()`: they wait, wake, listen to signals and talk to the service manager.

    processes       `spool master` and `spool worker`
    loop            step, wait, step: for a master or a worker, on its own thread; what both actors share
    master_actor    a master for the loop
    worker_actor    a worker for the loop
    progress_watch  whether the loop makes progress or is stuck inside the share; which tasks are frozen
    signals         what asks a process to leave or announces sleep: signals, the end of its parent
    node_ids        node ids, unique per start
    daemon_log      a daemon's log on stderr
    up              `spool up`: a master and workers as children of one process
    embedded        Spool.local(): the same in the background of one program
    systemd_units   the systemd units, rendered for a spool

Law: the main thread keeps time and, once it has opened the spool, never touches the share; only the loop's thread
does. So a hung mount cannot stop the watchdog or a signal.
"""
