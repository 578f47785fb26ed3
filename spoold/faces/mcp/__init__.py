"""`spool mcp`: a spool as a server of the Model Context Protocol, for coding agents and their programs.

    server       the protocol: lists tools and resources, calls them, bounds each call
    stdio        the server on stdin and stdout
    loopback     the server over HTTP on this machine, behind a guard
    token        the file that holds the token
    clients      the configuration to paste into a client
    registry     all tools, in the order in which a client lists them
    tool         what a tool is: its name, its models, its hints, its function
    session      one server's spool, role and memory
    roles        agent or operator, and who may be which
    crew         the workers that this server starts on its own machine
    waits        waiting for tasks, cut before a client gives up
    keys         ids that follow from idempotency keys
    submitting   tasks on their way into the spool
    drafts       what arguments are as fields of a task
    arguments    field types that several tools share
    views        tasks and results as the tools answer with them

The tools, by noun:

    delegated    delegate_task
    graphs       submit_tasks
    tasks        get_task_result, list_tasks, cancel_task, tell_task, explain_task
    awaited      wait_tasks
    background   run_background, check_background, list_background, kill_background
    files        reserve_files, release_files
    people       ask_human, approve
    progress     report_progress
    context      get_context, put_context
    pool         get_status, drain, kill_all
    workers      spawn_workers, scale_workers

Law: a caller in the role `agent` reaches the tasks below it and no others, and cannot tell a foreign task from one
that is not there. Within a task the role is `agent`. Every call answers within 50 s. The room asks `spoold.client`
and nothing below it, and no other room imports it but the verb, so that a short command never loads the SDK.
"""
