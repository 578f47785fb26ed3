"""May this task run now? One module for each subject: its rules, its gates, and what it counts and shows.

What all gates have:

    facts             the input of a gate: the task's conditions, its parents, its type; and facts of its own
    gate              the parts of every gate (a name, a judge, the wakes that make the leader ask, its words for
                      people), and its answers: Pass, Wait(reason, until), Refuse(reason)
    registry          all gates, in the order in which they speak, and the questions to them
    standing_requests what requests say: holds, questions, answers and work sent back; pauses, closed limits, a halt
    resources         what is counted: how much a task uses, how much there is, and the shares of classes

The subjects:

    dependency_gates  which tasks a task comes after, batches among them; cycles
    approval_gate     a question that people answer first
    stop_gates        a halt of the spool, a pause of a type, a hold of a task
    time_gates        not before, deadline, the backoff between attempts
    limit_gates       units, rates and slots that are in use, closed limits, and a worker that can run the task
    budget_gate       what is reserved of a budget; budget_usage: what attempts came to
    breaker_gate      failures in a row, and for how long they keep a type back
    lock_gate         the gate of locks; lock_holders: who holds, who waits, and what conflicts

Law: the leader asks before it moves a task to ready/, and `spool explain` asks to say why. Both ask the registry,
so the explanation is what will be done. A gate that is not in the registry does not exist.
"""
