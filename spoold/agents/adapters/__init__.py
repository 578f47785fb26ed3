"""One file for each agent's command line: how to start it, how to read what it says.

    adapter      what an adapter is, and the normal form into which it reads
    finding      which agents are known, and the adapter of each
    generic      any command, with a line protocol of its own

Law: no file, no process, no clock: an adapter turns an errand into a command, and lines into events. What it was
recorded from stands in its `recorded`.
"""
