"""The task `twins`: functions anywhere in the tree that do the same under other names.

It stands for what an agent does: it reads everything, takes its time, and says how far it is (SPOOL_PROGRESS_FILE,
which the worker shows in its heartbeat). `input.seconds` is the least time that it takes, since whoever wants to
pull the plug in the middle needs a middle.
"""

from __future__ import annotations

import ast
import json
import os
import time
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import Any

# Shorter ones are alike by chance.
STATEMENTS_MIN = 5


def shape(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function without its name, its docstring and the names of its variables."""
    body = function.body[ast.get_docstring(function) is not None :]
    copy = ast.parse(ast.unparse(ast.Module(body, [])))
    names: dict[str, str] = {}
    for node in ast.walk(copy):
        if isinstance(node, ast.Name):
            node.id = names.setdefault(node.id, f"v{len(names)}")
    return ast.dump(copy)


def shapes_in(path: Path) -> list[tuple[str, str]]:
    """The functions of a file that are long enough to compare: `LINE NAME` and shape. None of what cannot be read."""
    try:
        with tokenize.open(path) as file:
            tree = ast.parse(file.read())
        return [
            (f"{node.lineno} {node.name}", shape(node))
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) > STATEMENTS_MIN
        ]
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []


def say(progress: dict[str, Any]) -> None:
    """Tell how far we are; renamed into place, so that nobody reads half of it."""
    path = Path(os.environ["SPOOL_PROGRESS_FILE"])
    path.with_suffix(".new").write_text(json.dumps(progress))
    path.with_suffix(".new").replace(path)


def main() -> None:
    """Compare the functions of all files that the task names."""
    wanted = json.loads(Path(os.environ["SPOOL_TASK_FILE"]).read_text())["input"]
    root, files, began = Path(wanted["root"]), wanted["files"], time.monotonic()
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for done, file in enumerate(files, 1):
        for place, form in shapes_in(root / file):
            alike[form].append(f"{file}:{place}")
        say({"done": done, "of": len(files)})
        time.sleep(max(0.0, began + wanted["seconds"] * done / len(files) - time.monotonic()))
    twins = sorted(places for places in alike.values() if len(places) > 1)
    print(f"{sum(map(len, alike.values()))} functions compared, {len(twins)} groups of twins")
    Path(os.environ["SPOOL_RESULT_FILE"]).write_text(json.dumps({"compared": len(files), "twins": twins}))


if __name__ == "__main__":
    main()
