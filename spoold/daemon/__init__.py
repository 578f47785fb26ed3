"""Processes around `step()`: they wait, wake, listen to signals and talk to the service manager.

    naming      node ids, unique per start
    pulse       has the loop made progress, or is it stuck inside the share?
    loop        step, wait, step: for a master or a worker, on a thread of its own
    freezing    what is said of tasks that are frozen
    processes   `spool master` and `spool worker`
    signals     what asks a process to leave
    nap         is this machine about to sleep?
    up          `spool up`: a master and workers as children of one process
    logs        what a daemon says on stderr
    eof         whoever started this process is gone
    leading     a master as the loop drives it
    working     a worker as the loop drives it
    actors      what both have in common
    embedded    Spool.local(): the same in the background of one program
    notify      what systemd wants to hear
    units       the systemd units, rendered for a spool

Law: the main thread keeps time and, once it has opened the spool, never touches the share; the loop's thread does
nothing else. A hung mount can therefore stop neither the watchdog nor a signal.
"""
