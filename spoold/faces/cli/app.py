"""The application: the verbs of a command line, and the global options.

Law: a command line that clearly names a verb imports the module of that verb and no other, and builds no other verb,
since a short command spends most of its time at the start. `spool --help` needs none.

Touches: the terminal, the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from spoold.faces.cli import panels
from spoold.faces.cli.panels import VERBS
from spoold.faces.cli.terminal.completion import InstallOption, ShowOption
from spoold.faces.cli.terminal.global_options import Session
from spoold.faces.cli.terminal.group import SpoolGroup, Verb
from spoold.faces.cli.terminal.output import print_line
from spoold.protocol.version import __version__

# Set by the scripts of `completion`, when a shell asks for completions.
COMPLETE = "_SPOOL_COMPLETE"

EPILOG = """Exit codes: 0 well, 1 a task failed or a check found something, 2 usage or a bad file, 4 not found,
69 the spool is unavailable, 70 a bug of ours, 74 stdout cannot be written, 124 a wait timed out,
130 interrupted."""


# Command lines that run no verb. Since a group must have one, they have the cheapest.
_NO_VERB = (["--version"], ["--help"], ["-h"])


class Spool(SpoolGroup):
    """The `spool` command, whose help has its verbs by groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs. ctx, formatter: the parser's own."""
        with formatter.section("Commands"):
            for line in panels.lines(formatter.width):
                formatter.write(f"{line}\n")


def build(argv: Sequence[str]) -> typer.Typer:
    """Return the application for a command line: with the one verb that it names, or with all if none is clear."""
    app = typer.Typer(
        name="spool",
        cls=Spool,
        no_args_is_help=True,
        add_completion=False,  # `completion` has these options, with the shell's name
        rich_markup_mode=None,  # plain help starts twice as fast, and can be searched and piped
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    if COMPLETE in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # this registers the shells' formats with the parser
    app.callback(epilog=EPILOG)(_global_options)
    verb = verb_of(argv)
    modules = [VERBS[verb]] if verb in VERBS else list(dict.fromkeys(VERBS.values()))
    if list(argv) in _NO_VERB and COMPLETE not in os.environ:
        modules = ["init"]
    for module in modules:
        import_module(f"spoold.faces.cli.verbs.{module}").register(app)
    if verb in VERBS:  # its module may have other verbs, too, and to build a verb takes long
        app.registered_commands = [command for command in app.registered_commands if command.name == verb]
    for command in app.registered_commands:
        command.cls = Verb if command.cls is TyperCommand else command.cls
    return app


def words(argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the words of the command line; where a shell asks for completions, those before the present word."""
    if COMPLETE not in environ:
        return list(argv)
    line = environ.get("COMP_WORDS") or environ.get("_TYPER_COMPLETE_ARGS") or ""
    typed = line.split()[1:]
    return typed if line[-1:].isspace() else typed[:-1]


def verb_of(argv: Sequence[str]) -> str | None:
    """Return the verb of a command line, None where only the parser can find it."""
    words = iter(argv)
    for word in words:
        if word == "--spool":
            next(words, None)
        elif word != "--debug" and not word.startswith("--spool="):
            return None if word.startswith("-") else word
    return None


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"spool {__version__}")
        raise typer.Exit


def _global_options(
    ctx: typer.Context,
    spool: Annotated[
        str | None,
        typer.Option(
            "--spool",
            metavar="DIR",
            show_default=False,
            help="The spool's directory; else SPOOL_DIR, within a task SPOOL_ROOT, "
            "else ~/.config/spoold/config.toml, else /etc/spoold/*.toml.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Daemons log all; errors show a traceback.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    show_completion: ShowOption = None,
    install_completion: InstallOption = None,
) -> None:
    """Run many tasks on your own machines, which share only a directory."""
    ctx.obj = Session(spool, debug=debug)
    if debug:
        os.environ["SPOOL_LOG_LEVEL"] = "debug"  # also for the children of `spool up`
