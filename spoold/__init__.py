"""spoold: a pool of your own machines for coding agents, or any commands, with nothing but a shared directory.

A map of the house; each room may call only the rooms below it (a test holds it so):

    cli         the `spool` command: one verb, one file
    daemon      processes around step(): the loop, systemd, `spool up`, everything inside one program
    worker      claims tasks, runs them, commits what they ended with
    master      leads: admits, orders, retries, reaps, reports
    client      what a program uses: submit, wait, result, events
    store       protocol × system: open a spool, move a token, publish, journal, find, audit
    rules       what should happen: pure decisions, no file, no clock
    system      the world behind ports: file system, clock, host, hints
    protocol    what is on disk: the twin of spool_layout.md
"""

__version__ = "0.1.0"
