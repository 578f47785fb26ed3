"""Every module states its law, and what outside the process it touches by itself: no more and no less.

A module that names nothing touches nothing: it works on what it is given, such as the port of a file system.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.sources import modules

# By what a module touches: the packages that it imports for it, what it takes from `os` and from `sys`, the functions
# that need no import, and the methods of paths.
PACKAGES = {
    "files": {"shutil", "tempfile", "glob", "fcntl", "filelock", "watchdog"},
    "processes": {"subprocess", "psutil", "multiprocessing", "resource", "ctypes"},
    "threads": {"threading", "concurrent", "queue"},
    "the clock": {"time"},
    "the network": {"socket"},
    "the terminal": {"rich", "typer"},
    "the environment": {"getpass", "pwd", "grp"},
}
NAMES = {
    "files": (
        "os.open os.close os.read os.pread os.write os.stat os.lstat os.fstat os.listdir os.scandir os.walk "
        "os.unlink os.mkdir os.makedirs os.rmdir os.rename os.fsync os.sync os.ftruncate os.fchmod os.fchown "
        "os.utime os.statvfs os.access os.readlink os.lseek os.chdir os.getcwd os.fdopen os.pipe os.pipe2 "
        "os.dup os.dup2 os.memfd_create os.set_blocking os.set_inheritable os.closerange os.path.exists "
        "os.path.lexists os.path.isdir os.path.isfile os.path.islink os.path.ismount os.path.realpath open"
    ),
    "processes": (
        "os.fork os.kill os.killpg os.waitpid os.wait4 os.posix_spawn os.execvpe os.setsid os.getpid os.getppid "
        "os.pidfd_open os._exit os.register_at_fork os.getsid os.getpgrp os.sched_getaffinity signal.signal "
        "signal.getsignal signal.pthread_sigmask signal.set_wakeup_fd sys.exit"
    ),
    "the terminal": "sys.stdin sys.stdout sys.stderr sys.__stdin__ os.isatty print input",
    "the environment": "os.environ os.uname os.getuid os.geteuid os.getegid os.getgroups sys.argv sys.path",
}
TOUCHED_BY = {name: what for what, names in NAMES.items() for name in names.split()}
ON_PATHS = {"read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "rglob", "mkdir", "touch", "resolve"}
ORDER = [*PACKAGES]
STATED = re.compile(r"^Touches: ([a-z, ]+)\.$", re.MULTILINE)


def touched(tree: ast.Module) -> list[str]:
    """What the module touches by itself, in the order in which it is said."""
    return sorted(set(_touched(tree)), key=ORDER.index)


def _touched(tree: ast.Module) -> Iterator[str]:
    paths = any(isinstance(node, ast.ImportFrom) and node.module == "pathlib" for node in ast.walk(tree))
    for node in ast.walk(tree):
        imported = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if paths and node.func.attr in ON_PATHS and _is_path(node.func.value):
                yield "files"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TOUCHED_BY:
            yield TOUCHED_BY[node.func.id]
        if isinstance(node, ast.Attribute) and (what := TOUCHED_BY.get(_dotted(node))):
            yield what
        for name in imported:
            yield from (what for what, packages in PACKAGES.items() if name.partition(".")[0] in packages)


def _is_path(node: ast.expr) -> bool:
    """Whether a call on it may be one of pathlib: a port has verbs of the same names."""
    return not _dotted(node).endswith("fs")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def stated(docstring: str) -> list[str]:
    """What the module says that it touches."""
    found = STATED.search(docstring)
    return found[1].split(", ") if found else []


def test_every_module_states_its_law() -> None:
    missing = [path for path, _, tree in modules() if "Law: " not in (ast.get_docstring(tree) or "")]
    assert not missing, f"what may a change of them never break? Say it as `Law: …`: {missing}"


def test_every_module_touches_what_it_says() -> None:
    wrong = [
        f"{path}: it touches {', '.join(does) or 'nothing'}, and says {', '.join(says) or 'nothing'}"
        for path, _, tree in modules()
        for does, says in [(touched(tree), stated(ast.get_docstring(tree) or ""))]
        if does != says
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import os\nos.path.join('a', 'b')", []),
        ("import os\nos.path.exists('a')", ["files"]),
        ("from pathlib import Path\nPath('a').read_text()", ["files"]),
        ("self.fs.mkdir('a')", []),
        ("class Task:\n    input: str", []),
        ("import subprocess, time", ["processes", "the clock"]),
        ("from concurrent.futures import Future", ["threads"]),
        ("import os\nos.environ['A']\nprint(1)", ["the terminal", "the environment"]),
    ],
)
def test_the_check_sees(code: str, what: list[str]) -> None:
    assert touched(ast.parse(code)) == what


def test_what_is_said_is_read() -> None:
    assert stated("Holds.\n\nLaw: one.\n\nTouches: files, the clock.") == ["files", "the clock"]
    assert stated("Touches nothing.") == []
