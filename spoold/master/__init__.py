"""The leader: admits, orders, retries, reaps, reports.

One `step()` = list → view → plan (in `rules`) → move → report.

    master      Master.step, which a daemon loops on and a simulator drives
    leadership  the one token in master/: take, renew, resign
    stages      the step as a table: its stages in order, with the reads and moves of each
    desk        the leader's working state, and the moves that its duties share. Its parts:
      view        the view of the last listings        own_door    what stands in its own door
      learned     lanes and contents of tasks          missing     tasks whose place is in doubt
      usage       how much of each resource is used    orders      the numbers that it gives
      report      notices for people                   rejects     what it remembers of rejected/
      step_state  the state of this step so far        ends        attempts whose end it saw
      starts      when tasks that use limits started   health      room on the share, and how attempts ended
      units_lent  which units are lent                 fleet       the workers that are awake, and what they can run
    changes     which listings are wanted, and what they changed in the view
    place       where a token is, as a value
    archived    which ids are in the archive, in few bytes
    following   what has changed since the last listings
    relisting   waiting/ listed anew; which tasks are missing, and for how long
    cadence     how often each directory is listed, and how long the leader rests
    learning    the type of task of a claim, its deadline, and its budgets
    drops       pending/ → a task, a rejection, or not yet
    growing     drops that may be incomplete
    stuck       drops that cannot be moved for now
    membership  which batches are over, while a task waits for one
    duplicates  drops whose id is taken
    durability  drops of strangers, made durable before they are admitted
    doors       admitting/: shuts out earlier leaders
    rejecting   an entry that is no task → rejected/ with its reason
    judging     a .jsonl drop on trial
    gauging     a .jsonl read whole, once it is known to fit
    batches     a .jsonl drop → many tasks
    kept        batches that have become tasks, and whose writer may go on
    anew        a file whose content has changed goes back to pending/
    contents    the content of a file when it was judged, and whether it has changed
    rejudging   rejected files whose content has changed
    counting    what ready and claimed tasks use, and what has started
    trials      limits whose quota was used up: one task tries, then the others follow
    asked       which ready task is to try, and for how long a worker may leave it there
    breakers    failures in a row, by type; one task tries, then the others follow
    placing     returned/ → waiting/ → ready/, and back when a gate closes
    reaping     the claims of dead workers
    requests    cancel, retry, pause, resume, drain, halt, close, open, gc
    reservations what people and running tasks have reserved
    task_requests holds, questions and answers
    reviving    an ended task waits again, as its next attempt
    retaining   completed/ and failed/ → archive/
    clearing    deletes for good
    feed        results of attempts → the parts that decide by their cost
    budgets     what attempts cost, and what those that may run have reserved
    reporting   heartbeat and status snapshot
    lock_report who holds locks and who waits for them
    outlook     the tasks that are left, by type and lane, and the workers that can run them

Law: nothing is remembered between steps that cannot be listed again. Two leaders at once are safe, because every
move is one rename; leadership only keeps policy exact.
"""
