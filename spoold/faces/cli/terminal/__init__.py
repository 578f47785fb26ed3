"""What the verbs share: how a command line is read, and how its answer is printed.

    group            errors as sentences and exit codes, for every verb at once
    global_options   the values of the global options: the spool, and how much to log
    streams          this process's own stdin, stdout and stderr, also closed or full ones
    output           JSON for programs, columns and sentences for people
    values           values from a command line: 5m, cpu=2,mem=4G, K=V
    task_selection   the tasks that a verb is for: ids, or --batch, --type and --state
    task_options     the options that make up a task, shared by the verbs that submit
    wait_progress    waiting, with a bar on a terminal; says once why an awaited task has not begun
    screen           a picture as lines and tables, laid out with or without rich
    html_page        a picture as one HTML file
    worker_rows      a worker as a row of a table
    local_files      a picture or a page as a file on this machine, or to stdout
    completion       the words that a shell offers at Tab, and the scripts by which it asks for them

Law: knows no verb. Nothing here is slow to import, since every command imports most of it.
"""
