"""The verbs: one module for a verb, or for a few that belong together.

    submit           tasks from files, standard input, options or a command
    run              a command as if it ran here
    agent            a task for a coding agent
    agents           the profiles of all live workers
    plan             an agent plans; what it answers is submitted after a person has said yes
    status           the pool at a glance, once or watched
    web              the pool in a browser
    top              the pool on the whole terminal
    metrics          figures for Prometheus
    ls               lists tasks
    task_details     show, explain, tree
    drawings         graph, timeline, report
    trace            tasks as spans of OpenTelemetry, into a file or to a collector
    results          result, logs
    wait             waits for tasks
    task_control     cancel, retry, hold, release, tell
    open_questions   asks, approve, reject, ask
    checkpoint       within a task: saves how far it has come, or prints what was saved
    event_log        history, events
    workers          workers, drain
    flow_control     pause, resume, limits, halt, budget
    reserve          reserve, locks
    merge            the task that takes the work of other tasks into a branch
    workspace        the workspaces of agents on this machine
    context          what the tasks of a batch share
    mcp              a server for coding agents
    init             makes a spool
    daemons          up, master, worker
    config           shows and changes settings
    housekeeping     gc, fsck
    doctor           is it safe to put a spool here?
    install_units    units for systemd

Law: a verb that waits or shows as another one does imports that one in the function that needs it, never at the top.
`register` of a module adds its verbs.
"""
