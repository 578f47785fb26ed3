"""A repository on this machine's own disk for each attempt, whose work is on the remote before the attempt ends.

    config       what a profile says of it: WorkspaceConfig
    addresses    addresses of repositories: their spelling, which are the same, and which a pattern allows
    git          runs git, such that no repository's own settings run anything
    places       where everything lies: mirrors, and one folder for each attempt with its record
    mirror       one mirror of each repository on this host, and its lock
    surviving    what a mirror has lost in a power cut, and how it gets that again
    commits      what an agent committed by itself, read without its settings
    checkout     how a workspace gets its files
    setting_up   runs the lines of its setup
    committing   commits all of it
    workspace    one attempt's workspace: open, save, close
    saved        what a save gave the remote
    attempt      the workspace of the attempt that runs in this process
    pushing      one push, also past the lock of a machine that died while it pushed
    publishing   how a commit gets its reference on the remote, and which reference is the newest
    retention    which workspaces may go: only what the remote has
    showing      what `spool workspace` shows

Law: an agent may write anything in its workspace, settings and hooks of git included. No setting, hook or reference
that lies there is ever used outside of it: objects are read as data, and everything else comes from folders that are
ours. What an agent made is on the remote before the attempt says success, and nothing else is the only copy's end.
"""
