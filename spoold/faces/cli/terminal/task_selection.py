"""The tasks of a verb: ids, or a selection by batch, type and state. Shared by the verbs that take many.

Law: a verb gets ids or a selection, never both and never neither. Of several ids, a wrong one does not stop the
others, and the first wrong one decides the exit code.

Touches: the terminal.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from spoold.faces.cli.terminal import completion, output
from spoold.faces.cli.terminal.group import INTERRUPTED, exit_code, sentence
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.client.read.selecting import Located, Selection
    from spoold.client.spool_client import SpoolClient
    from spoold.protocol.errors import SpoolError
    from spoold.protocol.lifecycle import State
    from spoold.protocol.request import Verb

Answer = TypeVar("Answer")

# For more tasks than this a verb asks first, if it runs on a terminal.
ASK_ABOVE = 10

_WHOLE = "Tasks, by their whole ids."
_BEGUN = "; on a terminal also the beginning of one, from 4 characters on."
LIVING = Annotated[list[str] | None, typer.Argument(metavar="ID", help=_WHOLE, autocompletion=completion.living)]
FAILED = Annotated[list[str] | None, typer.Argument(metavar="ID", help=_WHOLE, autocompletion=completion.failed)]
ENDING = Annotated[list[str] | None, typer.Argument(metavar="ID", help=_WHOLE, autocompletion=completion.ids)]
REFS = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help=f"Tasks, by their ids{_BEGUN}", autocompletion=completion.ids),
]
REF = Annotated[str, typer.Argument(metavar="ID", help=f"A task, by its id{_BEGUN}", autocompletion=completion.ids)]
BATCHES = Annotated[
    list[str] | None,
    typer.Option(
        "--batch",
        metavar="B",
        help="The tasks of this batch, as `submit` named it. Repeatable.",
        autocompletion=completion.batches,
    ),
]
TYPES = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="T",
        help="The tasks of this type. Repeatable, or a,b.",
        autocompletion=completion.types,
    ),
]
STATES = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="S",
        help="The tasks in this state: pending, waiting, ready, claimed, completed, failed, rejected. "
        "Repeatable, or a,b.",
        autocompletion=completion.states,
    ),
]
YES = Annotated[bool, typer.Option("--yes", "-y", help=f"Do not ask, also for more than {ASK_ABOVE} tasks.")]


@dataclass(frozen=True, slots=True)
class Words:
    """The words on the command line that name tasks."""

    ids: Sequence[str] | None
    batches: Sequence[str] | None
    types: Sequence[str] | None
    states: Sequence[str] | None

    def selection(self) -> Selection:
        """Return the selection. Errors: BadFile for ids with a selection, for neither, and for an unknown state."""
        from spoold.protocol.errors import BadFile

        found = selection_of(self.batches, self.types, self.states)
        if self.ids and found:
            raise BadFile(
                "the command line", "", "has ids and a selection.", "give ids, or --batch, --type and --state."
            )
        if not self.ids and not found:
            raise BadFile("the command line", "", "names no task.", "give ids, or --batch, --type and --state.")
        return found


@dataclass(slots=True)
class Chosen:
    """The chosen tasks, each once. wrong: errors by word that names none. many: whether the words could name several.

    asked: the tasks under the words that named them, for a program that looks for its own words in the answer. A
    selection has the ids, and of rejected drops, which are not the tasks whose ids they wanted, the drops' names.
    """

    found: list[Located]
    asked: dict[str, Located] = field(default_factory=dict)
    wrong: dict[str, SpoolError] = field(default_factory=dict)
    many: bool = False

    def tell(self) -> None:
        """Report on stderr the words that name no task."""
        for error in self.wrong.values():
            output.remark(f"spool: {output.within(sentence(error))}")

    def end(self) -> None:
        """Raise typer.Exit with the code for the first wrong word, if there is one."""
        for error in self.wrong.values():
            raise typer.Exit(exit_code(error))


def selection_of(
    batches: Sequence[str] | None, types: Sequence[str] | None, states: Sequence[str] | None
) -> Selection:
    """What these options select. Errors: BadFile for an unknown state."""
    from spoold.client.read.selecting import Selection

    kinds = tuple(dict.fromkeys(word.lower() for word in _words(types)))
    return Selection(states_of(states), kinds, tuple(dict.fromkeys(batches or ())))


def states_of(texts: Iterable[str] | None) -> tuple[State, ...]:
    """The states that are named. Errors: BadFile."""
    from spoold.client.read.selecting import suggestion
    from spoold.protocol.errors import BadFile
    from spoold.protocol.lifecycle import SHOWN

    known = {state.value: state for state in SHOWN}
    words = [word.lower() for word in _words(texts)]
    for word in words:
        if word not in known:
            raise BadFile("--state", "", f"{word!r} is no state.", suggestion(word, known))
    return tuple(dict.fromkeys(known[word] for word in words))


def choose(spool: SpoolClient, words: Words, *, states: tuple[State, ...], begun: bool = False) -> Chosen:
    """Return the tasks that the words name. Errors: NotFound where a selection, or the only id, names none; BadFile.

    states: the default states of a selection. begun: an id may be completed (see `completed`).
    """
    from dataclasses import replace

    from spoold.client.read.selecting import each_once, find_each, select_some
    from spoold.protocol.errors import NotFound
    from spoold.protocol.lifecycle import State

    selection = words.selection()
    with spool.reaching():
        if selection:
            wanted = selection if selection.states else replace(selection, states=states)
            some = select_some(spool.store, wanted)
            return Chosen(some, {one.drop if one.state is State.REJECTED else one.id: one for one in some}, many=True)
        asked, wrong = find_each(spool.store, words.ids or ())
        for ref, error in list(wrong.items()) if begun else ():
            with contextlib.suppress(NotFound):
                asked[ref] = completed(spool, ref, error)
                del wrong[ref]
    many = len(words.ids or ()) > 1
    if wrong and not many:
        raise next(iter(wrong.values()))
    return Chosen(each_once(asked.values()), asked, wrong, many=many)


def completed(spool: SpoolClient, ref: str, error: SpoolError) -> Located:
    """Return the only task whose id begins with `ref`, and say on stderr which it is.

    Only for who reads: a program, or a shell that goes by the exit code, would take the answer for that of another
    task. Errors: `error`, the one for `ref` as a whole id, where stdout is no terminal; NotFound.
    """
    if not sys.stdout.isatty():
        raise error
    located = spool.complete(ref)
    output.remark(f"{output.within(ref)} is the beginning of {output.within(located.id)}")
    return located


def read_one(spool: SpoolClient, ref: str, read: Callable[[str], Answer]) -> Answer:
    """Return what `read` says of the task, whose id may be completed (see `completed`). Errors: NotFound."""
    from spoold.protocol.errors import NotFound

    try:
        return read(ref)
    except NotFound as error:
        return read(completed(spool, ref, error).id)


def ask_for(
    spool: SpoolClient,
    verb: Verb,
    chosen: Chosen,
    refuses: Callable[[Located], SpoolError | None],
    *,
    reason: str,
    yes: bool,
    post: Callable[[Sequence[str]], object] | None = None,
) -> list[str]:
    """Request it of each task that allows it; return their ids. Others are reported, or put into chosen.wrong.
    post: posts the requests for these ids; by default such whose names say all with verb and id.

    Errors: typer.Exit when the question was answered with no.
    """
    able: dict[str, None] = {}
    for word, located in chosen.asked.items():
        error = refuses(located)
        if error is not None:
            chosen.wrong[word] = error
        elif verb == "cancel" and located.result is not None:
            output.remark(f"{output.within(located.id)} has {located.state} already: there is nothing to cancel")
        else:
            able[located.id] = None
    if len(able) > ASK_ABOVE and not yes and not output.confirmed(f"{verb} {amount(len(able), 'task')}?"):
        output.remark("nothing was requested; --yes skips the question")
        raise typer.Exit(INTERRUPTED)
    if post is None:
        spool.post_each(verb, list(able), reason)
    else:
        post(list(able))
    return list(able)


def print_asked(verb: Verb, ids: Sequence[str], wrong: Mapping[str, SpoolError], *, as_json: bool) -> None:
    """Print the ids of the requests, and their number."""
    if as_json:
        errors = {ref: str(error) for ref, error in wrong.items()}
        output.print_json({str(verb): ids, **({"errors": errors} if errors else {})})
        return
    for task_id in ids:
        output.print_line(task_id)
    if ids:
        what = {"cancel": "cancelled", "priority": "given that priority"}.get(verb, "tried again")
        output.remark(f"{amount(len(ids), 'task')} will be {what}")


def _words(texts: Iterable[str] | None) -> list[str]:
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
