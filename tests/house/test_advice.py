"""Wrong advice is worse than none: every message that names a command to run stands in a test of its situation.

Method: each text of the product that has a command between backticks is taken as it stands in the source, with gaps
where values go. A piece of it that is long enough to be no accident, or all of it, must stand in a test.
What `--help` shows is no answer to a situation, and is left out. So is a comment in a file that is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import spoold

HOUSE = Path(spoold.__file__).parent
TESTS = HOUSE.parent / "tests"
COMMAND = re.compile(r"`(spool|chmod|chgrp|chown|rm|mv|umask|getent|systemd|systemctl|kill) ")
LEAST = 12
GAP = "\0"


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, each whole, but for docstrings and for what is shown as help."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("help", "epilog"):
            passed |= {id(below) for below in ast.walk(node.value)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            passed |= {id(below) for below in ast.walk(node)}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def plain(text: str) -> str:
    """A text without line breaks: long ones are written over several lines, in several quotes."""
    return " ".join(re.sub(r'"\s*\n\s*f?"', "", text).split())


def test_every_message_that_names_a_command_has_a_test() -> None:
    known = plain(
        "\n".join(
            path.read_text()
            for kind in ("*.py", "*.scenario")
            for path in TESTS.rglob(kind)
            if path != Path(__file__)
        )
    )
    untold = []
    for path in sorted(HOUSE.rglob("*.py")):
        for text in texts(ast.parse(path.read_text())):
            advice = COMMAND.search(text) and not text.startswith("#")
            if advice and not stands(text, known):
                untold += [f"{path.relative_to(HOUSE)}: {text}"]
    assert not untold, "\n".join(untold)


def stands(text: str, known: str) -> bool:
    """Whether a long piece of the text stands there, or all of it with something in its gaps."""
    pieces = [plain(piece) for piece in text.split(GAP)]
    if any(piece[at : at + LEAST] in known for piece in pieces for at in range(len(piece) - LEAST + 1)):
        return True
    return re.search(".{0,60}?".join(map(re.escape, pieces)), known) is not None
