"""The `spool` command: one verb, one file.

    app        the file of each verb; the global options
    group      errors as sentences and exit codes, for every verb at once
    session    the values of the global options: the spool, and how much to log
    streams    this process's own stdin, stdout and stderr, also closed or full ones
    output     JSON for programs, columns and sentences for people
    values     values from a command line: 5m, cpu=2,mem=4G, K=V
    choosing   the tasks that a verb is for: ids, or --batch, --type and --state
    screen     a picture as lines and tables, laid out with or without rich
    webpage    a picture as one HTML file
    completing the words that a shell offers at Tab
    shells     the scripts by which a shell asks for them
    nodes      a worker as a row of a table
    local_file a file on this machine, replaced as a whole
    drafting   the options that make up a task, shared by the verbs that submit
    extras     the error where an optional package is missing
    saving     a picture to stdout or into a file
    progress   waiting, with a bar on a terminal
    patience   says once why an awaited task has not begun

Law: a verb reads its options, calls the client library or a daemon, and prints. It decides nothing. It imports cheap
modules at the top, and the rest where it uses them, since a short command spends most of its time at the start.
May touch: everything below, the terminal, signals.

Touches: processes, the environment.
"""


def main() -> None:
    """Run the console script."""
    import sys

    from spoold.faces.cli import streams

    streams.guard()
    try:
        import os

        from spoold.faces.cli.app import build, words

        build(words(sys.argv[1:], os.environ))(prog_name="spool")
    except KeyboardInterrupt:  # during the start; later the group handles it
        sys.exit(130)
    except streams.OutputFailed as failed:  # in the help or the version, which no group handles
        sys.exit(streams.give_up(failed))
