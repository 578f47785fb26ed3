"""`netlab test`: every protocol against every fault, counted.

A cell of the matrix is one fresh spool on one lab: three laptops, each with a worker, laptop1 with the master that
leads and laptop2 with the standby. Tasks are submitted, one fault is inflicted, all tasks have to complete, and then
witnesses are asked that have nothing to do with spoold: what lies on the server's own disk, and what each command
wrote to its laptop's own memory while it ran. `ledger` compares them.

The rooms: `ledger`, `trace` and `exclusion` (what was seen, and what follows; pure), `workload` (the tasks), `pool`
(spoold on a lab), `faults`, `outages`, `silences`, `twins` and `undone` (what goes wrong), `cell` (one of them),
`run` (all of them, and the table).

Law: a number in the table was measured and could have been another. A cell leaves nothing to the next.
"""
