"""`netlab test-agents`: real command lines of agents on the laptops of a lab, and all that goes wrong around them.

Three laptops with a disk of their own mount a share that holds the spool; the server also serves bare repositories by
git's own protocol. Each of the command lines makes its part of the edits, each edit in a workspace on its laptop's
disk, and what is accepted is merged. One edit is in a repository with a submodule, and one in a repository with files
of git-lfs. A laptop loses its power and comes back. The git server is away twice, just when work is to be pushed. The
account of one command line is used up for some minutes, and its tasks run as another meanwhile. Then the repositories
are asked, the tests of main run at each of its commits, and tokens and costs are held against the model's own count.

The rooms: `fleet` (workers with agents on a lab), `provider` (the model, which counts), `trial` (one run), `claims`
(what must be true in the end), `command` (its options).

Law: as of the matrix. The model is a script on the host's end of the control network, so that no power cut loses what
it counted.
"""
