"""The leader: admits, orders, retries, reaps, reports.

One `step()` = list → view → plan (in `rules`) → move → report.

    master      Master.step: what a daemon loops on and a simulator drives
    leadership  the one token in master/: take, renew, resign
    holder      whether the master that has it is gone from this host
    stages      the step as a table: its stages in order, what each reads and moves
    desk        what a leader works with, and the moves that its duties share. Its parts:
      view        what the last listings showed        own_door    what stands in its own door
      learned     lanes and deadlines of tasks         missing     tasks whose place is in doubt
      usage       how much of each resource is used    orders      the numbers that it gives
      report      what people should know              rejects     what it remembers of rejected/
      step_state  what this step has come to so far      ends      attempts whose end it saw
    changes     what is asked to be listed, and what that has changed in the view
    misnamed    files among the tasks whose names are no task's
    archived    which ids stand in the archive, in few bytes
    takeover    what a new leader reads before it plans
    following   what has changed since the last listings
    relisting   waiting/ listed anew; what is missing, and for how long
    cadence     how often what is listed, and how long the leader rests
    learning    what type of task a claim is, and what deadline it has
    drops       pending/ → a task, a rejection, or not yet
    growing     drops that may still be on their way
    originals   single drops of strangers, whose copies become tasks
    stuck       drops that may not be moved for now
    dependents  which tasks may fail for a parent's failure, where a server may forget it
    duplicates  drops whose id is taken
    durability  what a stranger wrote, on disk before it is admitted
    doors       admitting/: what shuts out the leaders before
    rejecting   what is no task → rejected/ with its reason
    judging     a .jsonl drop on trial
    gauging     a .jsonl read whole, once it is known to fit
    batches     a .jsonl drop → many tasks
    staging     its lines on their way
    kept        batches that are tasks by now, and whose writer may go on
    anew        what says something else by now goes back to pending/
    contents    what a file said when it was judged, and whether it says so still
    rejudging   what was rejected, and says something else by now
    placing     returned/ → waiting/ → ready/, and back when a gate closes
    dependents  whether a failed parent fails its children for good
    reaping     the claims of dead workers
    requests    cancel, retry, pause, resume, drain, halt, gc
    pauses      when pauses end by themselves
    retaining   completed/ and failed/ → archive/
    clearing    what is taken away for good
    feed        results of attempts → those that decide by what they cost
    coverage    which of them were handed on
    reporting   heartbeat and status snapshot
    outlook     what is left, by type and lane, and who there is to run it

Law: nothing is remembered between steps that cannot be listed again. Two leaders at once are safe, because every
move is one rename; leadership only keeps policy exact.
"""
