"""Words that programs take for more than an operand: options, variables, commands, and lines of code.

Law: plain tables without decisions: a handler says what it permits. A table of every program is impossible; these
entries were tried, or are programs that people write handlers for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class _Runner(NamedTuple):
    """Programs that take code as an argument. option: the word before it; attached: how a word with both begins.

    between: the words allowed between program and option, each with a space after it.
    """

    programs: re.Pattern[str]
    option: re.Pattern[str]
    attached: re.Pattern[str]
    between: re.Pattern[str]


def _runner(programs: str, option: str, attached: str, between: str) -> _Runner:
    # A versioned name counts as the plain one.
    return _Runner(*map(re.compile, (rf"({programs})[\d.]*", option, attached, between)))


# Options, and the word after one that takes another; words behind an operand are the operand's own.
_OPTIONS = r"([-+]\S*\s|([-+][oOWXIur]|--(rcfile|init-file|require|import|loader))\s\S+\s)*"
_ANYWHERE = r"(\S+\s)*"
_RUNNERS = (
    _runner(
        r"(ba|da|a|z|k|mk|fi|c|tc)?sh|busybox|python|pypy|perl|ruby|node|nodejs|php|lua|Rscript",
        r"-[A-Za-z]*[ceErp]|--(command|eval|execute|run|print)",
        r"-(?![IWXmMoOux])[A-Za-z]{0,3}[ceE].*|--(command|eval|execute|run|print)=.*",
        _OPTIONS,
    ),
    _runner("su|runuser|script|psql", r"-[a-z]*c|--command", "--command=.*", _ANYWHERE),
    _runner("flock", r"-[a-z]*c|--command", "--command=.*", r"(-\S*\s([\d.]+\s)?)*(\S+\s)?"),
    _runner("expect|nu|xonsh|elvish", r"-[a-z]*c|--commands?", "-c.*|--commands?=.*", _OPTIONS),
    _runner("R|julia|octave|groovy|scala", "-[eE]|--(eval|print)", "-[eE].*|--(eval|print)=.*", _OPTIONS),
    _runner("emacs", "--?(eval|execute)", "--(eval|execute)=.*", _ANYWHERE),
    _runner("gdb", "--?(i?ex|(init-)?eval-command)", "--?(i?ex|(init-)?eval-command)=.*", _ANYWHERE),
    _runner("g?vim?|nvim|vimdiff|n?view|ex", "-c|--cmd", r"\+.*|-c.+", _ANYWHERE),
    _runner("pwsh|powershell", "(?i:-(c|co|command))", "(?!)", _OPTIONS),
    _runner("env", "-[a-z]*S|--split-string", "-[a-z]*S.*|--split-string=.*", _OPTIONS),
    # It joins all its words to a line for a shell.
    _runner("watch", r"(?!-n|--interval|-q|--equexit).*", r"[^-].*", _ANYWHERE),
)

# make runs the $(…) in it, and so does the shell of a recipe.
_MAKE = "[bg]?make|remake"


def _special(word: str, programs: str, what: str) -> tuple[re.Pattern[str], re.Pattern[str], str]:
    return re.compile(word, re.DOTALL), re.compile(rf"(?<![\w-])({programs})(?![\w+])(?!-(?!\d))"), what


# Words that begin with no dash and yet are no operands to some programs: which words, which programs, what they are.
_WORDS = (
    _special(".*=.*", rf"{_MAKE}|env|sudo|doas|rake|just|scons|[gm]?awk|dd", "a variable"),
    # By its own rules make builds any path that it is given, through links, too: `x` out of `x.sh` beside it.
    _special(".*/.*", _MAKE, "a path, which make builds by rules of its own"),
    _special(
        "@.*",
        r"(\w+-)*(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld)|javac?|jar|rustc|pytest|py\.test|mypy",
        "a file of options",
    ),
    _special(r"\+.*", r"g?vim?|nvim|vim?diff|n?view|ex|less|more", "a command"),
    _special("!.*", "ed|red", "a command"),
    _special(r"\s*\..*", r"sqlite3?", "a command"),
    _special(r"\s*\+?[<>|].*", r"perl[\d.]*", "a command"),
    _special(r"\|.*", r"convert|magick|mogrify|identify|composite|montage|gnuplot", "a command"),
)
# Text from a task that no part of a word may hold, in any place.
_PARTS = (
    _special(r".*[^\w./:@%+,=~ -].*", _MAKE, "text that a shell runs"),
    _special(r".*\|.*", r"perl[\d.]*", "a command"),
)


def word_is(command: Iterable[str], word: str) -> str | None:
    """Return what the program of this command would take the word for; None for an operand, or an option."""
    return _is(command, word, _WORDS)


def part_is(command: Iterable[str], part: str) -> str | None:
    """Return what the program would make of this text in any place of a word; None for plain text."""
    return _is(command, part, _PARTS)


def _is(
    command: Iterable[str], text: str, table: tuple[tuple[re.Pattern[str], re.Pattern[str], str], ...]
) -> str | None:
    # A line for a shell has several words; of a path only the last name is a program's.
    said = [os.path.basename(each) or each for word in command for each in word.split()]
    return next(
        (what for special, programs, what in table if special.fullmatch(text) and any(map(programs.search, said))),
        None,
    )


def code_after(command: Sequence[str], text: str) -> str | None:
    """Return the option after which text in this place becomes code; None where it does not.

    command: the words before this one; text: the text before it in its own word.
    """
    for index, program in enumerate(map(os.path.basename, command)):
        rest = [f"{word} " for word in command[index + 1 :]]
        for runner in _RUNNERS:
            if not runner.programs.fullmatch(program):
                continue
            if rest and runner.option.fullmatch(command[-1]) and runner.between.fullmatch("".join(rest[:-1])):
                return command[-1]
            if runner.attached.match(text) and runner.between.fullmatch("".join(rest)):
                return text
    return None
