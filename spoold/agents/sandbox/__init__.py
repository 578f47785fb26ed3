"""What the processes of an agent may see and reach.

    sandbox_policy   what a sandbox is asked to be, which hosts its list lets through, and one run in it
    sandbox_mounts   what is shown at which place, of the machine and of the agent's program: never the spool
    protected_files  files in a workspace by which an agent could run something outside of its sandbox
    private_home     files of ours in an agent's home, where no link is followed
    bwrap            the command line of bubblewrap, and walls around programs of ours that read what an agent wrote
    command_line     a command becomes one in a sandbox (bubblewrap, systemd, podman), or an error
    containers       what podman is started with, and what it keeps of a container whose processes were killed
    seccomp          a small program around it: a filter of system calls
    launch           one run: tried out, with what that let through, and with its way out
    proxy            the way out of a sandbox whose network is `proxy`
    relay            a small program in the sandbox, between that proxy and the agent

Law: a sandbox that is asked for and does not work is an error that says what failed, and never a run without it.
"""
