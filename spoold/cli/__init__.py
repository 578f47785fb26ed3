"""The `spool` command: one verb, one file.

    app        which verb is in which file; the global options
    group      errors as sentences and exit codes, for every verb at once
    session    what the global options said: which spool, how much to tell
    output     JSON for programs, columns and sentences for people
    values     what people write on a command line: 5m, cpu=2,mem=4G, K=V
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

    try:
        from spoold.cli.app import build

        build(sys.argv[1:])(prog_name="spool")
    except KeyboardInterrupt:  # while it still starts; later on the group sees to it
        sys.exit(130)
