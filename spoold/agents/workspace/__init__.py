"""A repository on this machine's own disk for each attempt, whose work is on the remote before the attempt ends.

    attempt_workspace    one attempt's workspace: open, save, close
    repository_config    what a profile says of it: WorkspaceConfig; addresses of repositories, and which are the same
    workspace_layout     where everything lies: mirrors, and one folder for each attempt with its record
    workspace_retention  which workspaces there are, and which may go: only what the remote has
    only_copies          which workspaces hold work that is on no remote, as notes for people
    room                 whether the disk on which it lies is full, and room for what must be written then
    git                  runs git, such that no repository's own settings run anything; whose fault an error is
    mirror               one mirror of each repository on this host, and its lock
    checkout             how a workspace gets its files
    agent_commits        what an agent committed by itself, read without its settings
    worktrees            the worktrees of the repositories in a workspace, wherever they lie
    repositories         which repositories are in a workspace, and which other worktrees these have
    packer               the program that reads a workspace, in a cage, and packs what is in it
    workbench            the repository in which the packer works, and what it makes there
    tips                 commits that lie beside the work, and the one above them
    pack_request         what the packer is asked, and what it answers
    looking              looks over the files of a workspace before git opens any of them
    adding               brings files into an index, whatever one of them is
    staged               what an agent has staged: its index, of which git reads a copy
    sanitize             leaves out of commits and trees what git refuses, and nothing else
    committing           takes what the packer packed into our own repository
    push_check           the program that looks whether the remote has every byte of a workspace, in a cage
    lfs                  files of git-lfs, whose content lies beside the remote
    secret_scan          the lines that commits add, and secrets in work, before it is pushed
    publishing           how a commit gets its reference on the remote, and which reference is the newest
    acceptance           what was reported is not accepted: the conditions that we check ourselves

Law: an agent may write anything in its workspace, settings and hooks of git included. Only the program in the cage
opens any of it, and everything else uses what that one packed, after a check. What an agent made is on the remote
before the attempt says success, or the attempt says what is not, and is none. Nothing else is the only copy's end.
"""
