"""`spool mcp`: a spool as a server of the Model Context Protocol, for coding agents and their programs.

    server               the protocol: lists tools and resources, calls them, bounds each call; on stdin and stdout
    http_transport       the server over HTTP on this machine, behind a guard; the file that holds its token
    clients              the configuration to paste into a client
    tool                 what a tool is: its name, its models, its hints, its function; shared field types
    session              one server's spool, role (agent or operator) and memory
    local_workers        the workers that this server starts on its own machine
    task_answers         tasks and results as the tools answer with them

The tools, by noun:

    delegation           delegate_task, submit_tasks; tasks on their way into the spool
    tasks                get_task_result, list_tasks, cancel_task, tell_task, explain_task
    waits                wait_tasks; waiting for tasks, cut before a client gives up
    background_commands  run_background, check_background, list_background, kill_background
    coordination         reserve_files, release_files, report_progress, get_context, put_context
    people               ask_human, approve
    pool                 get_status, drain, kill_all, spawn_workers, scale_workers

Law: a caller in the role `agent` reaches the tasks below it and no others, and cannot tell a foreign task from one
that is not there. Within a task the role is `agent`. Every call answers within 50 s. The room asks `spoold.client`
and nothing below it, and no other room imports it but the verb, so that a short command never loads the SDK.
"""
