"""`netlab test-agents`: real command lines of agents on the laptops of a lab, and a power cut in the middle.

Three laptops with a disk of their own mount a share that holds the spool and a bare git repository. Each of the
command lines makes its part of the edits, each edit in a workspace on its laptop's disk, and what is accepted is
merged. A laptop loses its power and comes back. Then the repository is asked, and the tests of main run at each of
its commits.

The rooms: `fleet` (workers with agents on a lab), `trial` (one run), `claims` (what must be true in the end),
`command` (its options).

Law: as of the matrix. The model is a script on the host's end of the control network, so that no power cut loses what
it counted.
"""
