"""May this task run now? One file a gate, and the registry that asks them all.

    facts         what a gate may look at: the task's conditions, its parents, its type; and what it brings itself
    verdicts      Pass, Wait(reason, until), Refuse(reason)
    gate          what every gate has: a name, a judge, what makes the leader ask again, its words for people
    registry      all gates, in the order in which they speak, and the questions that are asked of them
    cycle, deadline, parents, not_before, retry_delay     gates of one task
    halt, pause, limit                                    gates of a whole type

Law: the leader asks before it moves a task to ready/, and `spool explain` asks to say why. Both ask the registry,
so what is explained is what will be done. A gate that is not in the registry does not exist.
"""
