"""May this task run now? One file per gate, and the registry that asks them all.

    facts         the input of a gate: the task's conditions, its parents, its type; and facts that it gathers itself
    verdicts      Pass, Wait(reason, until), Refuse(reason)
    gate          the parts of every gate: a name, a judge, the wakes that make the leader ask, its words for people
    registry      all gates, in the order in which they speak, and the questions to them
    closing       what requests close: pauses and limits, each with its end, and a halt
    requested     what requests say about one task: holds, questions and answers
    redo          what a rejection sends back: which tasks run again, and what the first of them is told
    cycle, deadline, hold, parents, after_failed, after_batch, not_before, retry_delay, budget, locks, approval
                  gates of one task
    halt, pause, worker, quota, breaker, limit, rate, bulkhead
                  gates of all tasks of a lane

Law: the leader asks before it moves a task to ready/, and `spool explain` asks to say why. Both ask the registry,
so the explanation is what will be done. A gate that is not in the registry does not exist.
"""
