"""The `spool` command.

    app         the application of a command line; the global options
    panels      the verbs by groups: the module of each, and the rows of `spool --help`
    verbs       what the verbs do: one module for a verb, or for a few that belong together
    terminal    what verbs share: options, selection, output, errors and exit codes

Law: a verb reads its options, calls the client library or a daemon, and prints. It decides nothing. It imports cheap
modules at the top, and the rest where it uses them, since a short command spends most of its time at the start.
May touch: everything below, the terminal, signals.

Touches: processes, the environment.
"""


def main() -> None:
    """Run the console script."""
    import gc
    import sys

    from spoold.faces.cli.terminal import streams

    # With the default of 700 a look at 100,000 tasks spends a sixth of its time on the search for cycles.
    gc.set_threshold(10_000)
    streams.guard()
    try:
        import os

        from spoold.faces.cli.app import build, words

        # Without a word it prints the help, as with --help.
        build(words(sys.argv[1:], os.environ) or ["--help"])(prog_name="spool")
    except KeyboardInterrupt:  # during the start; later the group handles it
        sys.exit(130)
    except streams.OutputFailed as failed:  # in the help or the version, which no group handles
        sys.exit(streams.give_up(failed))
