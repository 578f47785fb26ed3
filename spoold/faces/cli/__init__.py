"""The `spool` command: one verb, one file.

    app        which verb is in which file; the global options
    group      errors as sentences and exit codes, for every verb at once
    parameters  values that need no conversion, taken as they are
    session    what the global options said: which spool, how much to tell
    streams    this process's own stdin, stdout and stderr, closed or full as they may be
    output     JSON for programs, columns and sentences for people
    values     what people write on a command line: 5m, cpu=2,mem=4G, K=V
    choosing   the tasks that a verb is for: ids, or --batch, --type and --state
    screen     a picture as lines and tables, laid out with or without rich
    completing what a shell offers behind Tab
    shells     the scripts by which a shell asks for that
    nodes      a worker as a row of a table
    drafting   the options that make up a task, shared by submit and run
    progress   waiting where somebody may watch
    patience   why what is waited for has not begun, said once

Law: a verb reads its options, calls the client library or a daemon, prints. It decides nothing. It imports at the top
only what is cheap, and the rest where it is used, since most of the time of a short command is its start.
May touch: everything below, the terminal, signals.
"""


def main() -> None:
    """The console script."""
    import sys

    from spoold.faces.cli import streams

    streams.guard()
    try:
        import os

        from spoold.faces.cli.app import build, words

        build(words(sys.argv[1:], os.environ))(prog_name="spool")
    except KeyboardInterrupt:  # while it still starts; later on the group sees to it
        sys.exit(130)
    except streams.OutputFailed as failed:  # of the help and of the version, which no group sees to
        sys.exit(streams.give_up(failed))
