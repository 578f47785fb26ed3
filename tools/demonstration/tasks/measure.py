"""The task `measure`: one Python file in, its metrics and remarks on its style out.

A plain program of the standard library, as any task may be: what to do stands in the task's `input`
(SPOOL_TASK_FILE), what came out goes to SPOOL_RESULT_FILE as JSON. It only reads, so it may run twice unharmed.
A file that is no Python, or not for us to read, is a finding about the tree and no failure of the task.
"""

from __future__ import annotations

import ast
import json
import os
import tokenize
from collections import Counter
from pathlib import Path
from typing import Any

LINE_MAX = 120
BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler),
    *(ast.With, ast.AsyncWith, ast.Assert, ast.comprehension, ast.match_case),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def complexity(function: ast.AST) -> int:
    """Roughly the number of ways through a function: one, and one more for each place where it may go two ways."""
    ways = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            ways += 1
        elif isinstance(node, ast.BoolOp):
            ways += len(node.values) - 1
    return ways


def functions_of(tree: ast.Module) -> list[dict[str, Any]]:
    """Every function and method: name, first line, length in lines, complexity."""
    return [
        {
            "name": node.name,
            "line": node.lineno,
            "lines": (node.end_lineno or node.lineno) - node.lineno + 1,
            "complexity": complexity(node),
        }
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def documented(tree: ast.Module) -> tuple[int, int]:
    """How many of the module and its public classes and functions have a docstring, and of how many."""
    public = [
        node
        for node in ast.walk(tree)
        if isinstance(node, DOCUMENTED) and not getattr(node, "name", "").startswith("_")
    ]
    return sum(ast.get_docstring(node) is not None for node in public), len(public)


def remarks_on_text(text: str) -> Counter[str]:
    """What a careful reader says about the lines."""
    said: Counter[str] = Counter()
    for line in text.split("\n"):
        said[f"line over {LINE_MAX} characters"] += len(line) > LINE_MAX
        said["blanks at the end of a line"] += line != line.rstrip()
        said["tab in the indentation"] += "\t" in line[: len(line) - len(line.lstrip())]
    said["no line break at the end of the file"] += bool(text) and not text.endswith("\n")
    return said


def remarks_on_code(tree: ast.Module) -> Counter[str]:
    """What a careful reader says about the code."""
    said: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(type=None):
                said["except: without an exception"] += 1
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                said["from … import *"] += 1
            case ast.Compare(ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=None)]):
                said["comparison with None by =="] += 1
            case ast.arguments():
                defaults = [*node.defaults, *node.kw_defaults]
                said["mutable default of an argument"] += sum(isinstance(each, MUTABLE) for each in defaults)
    return said


def measure(path: Path) -> dict[str, Any]:
    """All about one file; `problem` says why there is no more to say."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
        tree = ast.parse(text, filename=str(path))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return {"problem": f"{type(error).__name__}: {error}"}
    having, of = documented(tree)
    said = remarks_on_text(text) + remarks_on_code(tree)
    return {
        "lines": text.count("\n") + (not text.endswith("\n")),
        "functions": functions_of(tree),
        "documented": having,
        "documentable": of,
        "remarks": {remark: count for remark, count in said.items() if count},
    }


def main() -> None:
    """Measure the file that the task names."""
    wanted = json.loads(Path(os.environ["SPOOL_TASK_FILE"]).read_text())["input"]
    found = {"file": wanted["file"], **measure(Path(wanted["root"], wanted["file"]))}
    print(f"{wanted['file']}: {found.get('problem') or str(found['lines']) + ' lines'}")
    Path(os.environ["SPOOL_RESULT_FILE"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
