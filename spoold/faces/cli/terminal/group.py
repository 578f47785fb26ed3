"""Rules for every verb: errors become a sentence on stderr and an exit code; global options may stand anywhere.

0 well, 1 some task failed or a check found something, 2 usage, configuration or a bad file, 4 not found, 69 the spool
is unavailable, 70 a bug of ours, 74 stdout cannot be written, 124 a wait timed out, 130 interrupted.

Law: scripts rely on these exit codes. There are no others, except from `spool run`, which returns its task's own
code, 128 plus the number of the signal that ended it, or 141 if the reader of its output has gone. Where an optional
package is missing, the sentence names it, and the command that installs it for this very Python.

Touches: files, the terminal.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from spoold.faces.cli.terminal import completion, streams
from spoold.faces.cli.terminal.output import remark, within
from spoold.protocol.errors import NotFound, SpoolError, Unavailable, WaitTimeout

_TYPE = re.compile(r"(?<=[A-Z\]]) <[^>]*>$")
TASK_FAILED, USAGE, NOT_FOUND, UNAVAILABLE, OURS, TIMED_OUT, INTERRUPTED = 1, 2, 4, 69, 70, 124, 130
COMMAND = "spoold.command"


class SpoolGroup(TyperGroup):
    """The `spool` command itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move --spool and --debug to the front: people write them on either side of the verb."""
        read_lightly(self, ctx)
        return super().parse_args(ctx, completion.named(hoisted(args)))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb at the front of the words: its name, the verb, the rest. Errors: the parser's."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            read_lightly(command, ctx)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run a verb. Errors: typer.Exit with the exit code for the error."""
        try:
            value = super().invoke(ctx)
            sys.stdout.flush()
        except streams.OutputFailed as failed:
            raise typer.Exit(streams.give_up(failed)) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (SpoolError, OSError) as error:
            if ctx.obj is not None and ctx.obj.debug:
                _show_origin()
            remark(f"spool: {within(sentence(error))}")
            raise typer.Exit(exit_code(error)) from None
        except Exception as error:
            if isinstance(error, typer.Abort) or hasattr(error, "exit_code"):
                raise  # the parser's own, with its own exit code
            # Unhandled, it would exit with 1, which scripts take for a failed task.
            _show_origin()
            remark("spool: this is a bug in spoold; please report it.")
            raise typer.Exit(OURS) from None
        return value


class Verb(TyperCommand):
    """One verb. Its help names each argument without the Python type of its value."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, without the types that the parser adds to the names of arguments."""
        bare: Any = _WithoutTypes(formatter)
        super().format_options(ctx, bare)


class _WithoutTypes:
    """A formatter of the parser's that leaves the types out of the names of arguments."""

    def __init__(self, formatter: Any) -> None:
        self._formatter = formatter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._formatter, name)

    def write_dl(self, rows: Any, *args: Any, **more: Any) -> None:
        """Write names beside their meanings."""
        self._formatter.write_dl([(_TYPE.sub("", name), said) for name, said in rows], *args, **more)


class TrailingCommand(Verb):
    """A verb that takes `-- CMD ARG…`: the words after the dashes are in ctx.meta[COMMAND], unparsed."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line, with the command that this class adds."""
        return [*super().collect_usage_pieces(ctx), "[-- CMD [ARG]...]"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Cut the command off before the options are parsed. Errors: the parser's, with a hint on `--`."""
        if "--" in args:
            cut = args.index("--")
            ctx.meta[COMMAND] = args[cut + 1 :]
            args = args[:cut]
        try:
            return super().parse_args(ctx, args)
        except Exception as raised:
            # Not all releases of typer have a public name for the class of this error; all have these attributes.
            error: Any = raised
            usage = getattr(error, "exit_code", None) == USAGE and hasattr(error, "message")
            if COMMAND not in ctx.meta and usage:
                # Without dashes the words of a command are read as our options and arguments.
                hint = f"If that belongs to a command, write `--` before the command: {ctx.command_path} -- CMD ARG …"
                error.message = f"{error.message.rstrip('.')}. {hint}"
            raise


def hoisted(args: list[str]) -> list[str]:
    """Return the command line with the global options first; the words after `--` stay as they are."""
    end = args.index("--") if "--" in args else len(args)
    first: list[str] = []
    rest: list[str] = []
    words = iter(args[:end])
    for word in words:
        if word == "--spool":
            first += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word == "--debug" or word.startswith("--spool="):
            first.append(word)
        else:
            rest.append(word)
    return [*first, *rest, *args[end:]]


def _show_origin() -> None:
    """Print the traceback of the present error; its message may hold text of any user."""
    import traceback

    remark(traceback.format_exc().rstrip())


def exit_code(error: Exception) -> int:
    """Return the exit code for an error."""
    codes = ((NotFound, NOT_FOUND), (WaitTimeout, TIMED_OUT), (Unavailable, UNAVAILABLE), (SpoolError, USAGE))
    return next((code for kind, code in codes if isinstance(error, kind)), UNAVAILABLE)


def sentence(error: Exception) -> str:
    """Return the error as a sentence for people, with advice."""
    if isinstance(error, OSError) and not isinstance(error, SpoolError):
        from spoold.system.errnos import advice

        if isinstance(error, FileNotFoundError) and error.filename is None and not _stands_somewhere():
            return "The current folder was deleted, so a relative path means nothing. Fix: `cd` to one that exists."
        where = f"{error.filename}: " if error.filename else ""
        name = errno.errorcode.get(error.errno or 0, "unknown error")
        return f"{where}{error.strerror or error} ({name}). {advice(error)}"
    return str(error)


def _stands_somewhere() -> bool:
    """Return whether this process has a current folder."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


# The parameters of a verb: values that need no conversion are taken as they are.


def read_lightly(command: Any, ctx: Any) -> None:
    """Let the parser read a command's parameters without a validator where their value needs none."""
    # The parser makes the parameters itself, and runs a `parser` or `callback` of ours only behind a validator. So
    # the method of each is replaced.
    kinds = get_type_hints(command.callback)
    for parameter in command.get_params(ctx):
        if not getattr(parameter, "reads_lightly", False):
            parameter.reads_lightly = True
            parameter.process_value = _light(parameter, kinds.get(parameter.name))


def _light(parameter: Any, kind: Any) -> Any:
    read = parameter.process_value
    many = parameter.multiple or parameter.nargs == -1

    def process_value(ctx: Any, value: Any) -> Any:
        if value is None and not parameter.required:
            value = () if many else None
        elif kind in (str, str | None) and not many and _is_text(value):
            pass
        elif kind in (list[str], list[str] | None) and many and _are_texts(value):
            value = list(value)
        else:
            return read(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    return process_value


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_text, value))


def _is_text(value: Any) -> bool:
    """Return whether it is a str of characters only: the parser handles words that are not UTF-8."""
    return type(value) is str and (value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value))


# The optional packages that a verb needs, told when they are missing.


def missing(verb: str, extra: str, error: ImportError) -> SpoolError:
    """Return the error of a verb whose extra is not installed. extra: a name in pyproject.toml."""
    name = f"spoold[{extra}]"
    return SpoolError(f"`{verb}` needs the extra {name}: {error}. Fix: {sys.executable} -m pip install '{name}'")
