"""The decisions: values in, verdicts out. Every node asks here, so that all of them decide alike.

    entry/       a drop becomes a task, is rejected, or is looked at again
    gates/       may this task run now? for each subject its rules, its gate, what it counts and shows in the snapshot
    scheduling/  the waiting tasks, their order, and which of them go to ready/
    workers/     which worker may take a task, and what it keeps, lends and claims ahead
    attempts/    how an attempt ended, its cost, and whether there is another one
    cluster/     the dead nodes, the leader, the right time, and how fast tasks end
    share/       is the mount safe, does it have room, and who can use it?
    alerts       what people are told of, once for each time that it begins
    redaction/   what is masked in the output of attempts, and how
    tree/        is the one-token law true of this tree, and which tasks are old enough for the archive?
    answers/     why a task is not running, in words; which tasks a person means

Law: pure; no file, clock or randomness can be imported here (a test holds it so); time comes in as a number. A room
imports only rooms that do not import it, so each can be read without those above it.
"""
