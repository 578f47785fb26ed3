"""A repository on this machine's own disk for each attempt, whose work is on the remote before the attempt ends.

    config       what a profile says of it: WorkspaceConfig
    addresses    addresses of repositories: their spelling, which are the same, and which a pattern allows
    git          runs git, such that no repository's own settings run anything
    places       where everything lies: mirrors, and one folder for each attempt with its record
    room         whether the disk on which it lies is full
    mirror       one mirror of each repository on this host, and its lock
    remote       what git says of a remote: it is away, it refuses, or it is another's fault
    checkout     how a workspace gets its files
    commits      what an agent committed by itself, read without its settings
    saving       the program that reads a workspace, in a cage, and packs what is in it
    looking      looks over the files of a workspace before git opens any of them
    staged       what an agent has staged: its index, of which git reads a copy
    sifting      leaves out of commits and trees what git refuses, and nothing else
    committing   takes what that one packed into our own repository
    proving      the program that looks whether the remote has every byte of a workspace, in a cage
    lfs          files of git-lfs, whose content lies beside the remote
    added        the lines that commits add
    leaking      secrets in work, before it is pushed
    workspace    one attempt's workspace: open, save, close
    attempt      the workspace of the attempt that runs in this process
    pushing      one push, also past the lock of a machine that died while it pushed
    publishing   how a commit gets its reference on the remote, and which reference is the newest
    retention    which workspaces may go: only what the remote has
    tidying      looks after those that others left, beside an attempt
    showing      what `spool workspace` shows

Law: an agent may write anything in its workspace, settings and hooks of git included. Only the program in the cage
opens any of it, and everything else uses what that one packed, after a check. What an agent made is on the remote
before the attempt says success, or the attempt says what is not, and is none. Nothing else is the only copy's end.
"""
