"""What the processes of an agent may see and reach.

    policy       what a sandbox is asked to be, and one run in it
    ground       what of this machine every sandbox shows: programs, libraries, certificates
    programs     which files an agent's own program needs beside it
    guarded      files in a workspace by which an agent could run something outside of its sandbox
    cage         walls around programs of ours that read what an agent wrote
    mailbox      the task's own in- and outbox, as an agent finds them
    places       what is shown at which place: it never holds the spool
    bwrap        the command line of bubblewrap
    calls        a small program around it: a filter of system calls
    podman       the command line of a container
    wrapping     a command becomes one in a sandbox, or an error
    probing      a sandbox that is tried out, and what it let through
    entering     one run: tried out, with its way out
    hosts        which hosts a list lets through
    own          whether an address is this machine's own
    proxy        the way out of a sandbox whose network is `proxy`
    inside       a small program in the sandbox, between it and the agent

Law: a sandbox that is asked for and does not work is an error that says what failed, and never a run without it.
"""
