"""What should happen: values in, decisions out. Every node asks here, so that all of them decide alike.

    gates/       may this task run now? a file for each gate, and the registry that asks them all
    entry/       a drop becomes a task, is rejected, or is looked at again
    scheduling/  what waits, in which order, and which worker may take it
    attempts/    how an attempt ended, what it cost, and whether there is another one
    cluster/     which nodes are dead, who leads, what time it is, how fast tasks end
    share/       is the mount safe, has it room, and who can use it?
    tree/        is the one-token law true of this tree, and what is old enough for the archive?
    answers/     why a task is not running, in words; which tasks a person means

Pure: no file, clock or randomness can be imported here (a test holds it so); time comes in as a number.
"""
