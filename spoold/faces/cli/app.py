"""The application: the module of each verb, and the global options.

Law: the order of VERBS is the order in `spool --help`. A command line that clearly names a verb imports the module of
that verb and no other, and builds no other verb, since a short command spends most of its time at the start.

Touches: the terminal, the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer
from typer.core import TyperCommand

from spoold.faces.cli.terminal.completion import InstallOption, ShowOption
from spoold.faces.cli.terminal.global_options import Session
from spoold.faces.cli.terminal.group import SpoolGroup, Verb
from spoold.faces.cli.terminal.output import print_line
from spoold.protocol.version import __version__

# verb → module of `verbs`; in the order in which `spool --help` shows them.
VERBS = {
    "submit": "submit",
    "run": "run",
    "agent": "agent",
    "agents": "agents",
    "plan": "plan",
    "status": "status",
    "web": "web",
    "top": "top",
    "metrics": "metrics",
    "ls": "ls",
    "show": "task_details",
    "explain": "task_details",
    "tree": "task_details",
    "graph": "drawings",
    "timeline": "drawings",
    "report": "drawings",
    "trace": "trace",
    "result": "results",
    "logs": "results",
    "wait": "wait",
    "cancel": "task_control",
    "retry": "task_control",
    "hold": "task_control",
    "release": "task_control",
    "tell": "task_control",
    "asks": "open_questions",
    "approve": "open_questions",
    "reject": "open_questions",
    "ask": "open_questions",
    "checkpoint": "checkpoint",
    "history": "event_log",
    "events": "event_log",
    "workers": "workers",
    "drain": "workers",
    "pause": "flow_control",
    "resume": "flow_control",
    "limits": "flow_control",
    "halt": "flow_control",
    "budget": "flow_control",
    "reserve": "reserve",
    "locks": "reserve",
    "merge": "merge",
    "workspace": "workspace",
    "context": "context",
    "mcp": "mcp",
    "init": "init",
    "up": "daemons",
    "master": "daemons",
    "worker": "daemons",
    "config": "config",
    "gc": "housekeeping",
    "fsck": "housekeeping",
    "doctor": "doctor",
    "install-units": "install_units",
}

# Set by the scripts of `completion`, when a shell asks for completions.
COMPLETE = "_SPOOL_COMPLETE"

EPILOG = """Example: spool --spool /mnt/spool submit --type review --input '{"file": "a.py"}'

Exit codes: 0 well, 1 a task failed or a check found something, 2 usage or a bad file, 4 not found,
69 the spool is unavailable, 70 a bug of ours, 74 stdout cannot be written, 124 a wait timed out,
130 interrupted."""


def build(argv: Sequence[str]) -> typer.Typer:
    """Return the application for a command line: with the one verb that it names, or with all if none is clear."""
    app = typer.Typer(
        name="spool",
        cls=SpoolGroup,
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
    if list(argv) == ["--version"]:
        modules = ["init"]  # a group must have a verb; this one is cheapest
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
    debug: Annotated[bool, typer.Option("--debug", help="Daemons log everything; errors show a traceback.")] = False,
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
