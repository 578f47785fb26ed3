"""What the house tests look at: the files that are kept, and the modules of the package as syntax trees."""

import ast
import subprocess
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "spoold"


@cache
def kept() -> tuple[Path, ...]:
    """Every file that git keeps; without git or outside a clone, every file that is not in a hidden folder."""
    command = ["git", "-c", f"safe.directory={CHECKOUT}", "ls-files", "-z"]
    try:
        listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True).stdout.decode()
        paths = [CHECKOUT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [
            path
            for path in CHECKOUT.rglob("*")
            if not any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(CHECKOUT).parts)
        ]
    return tuple(path for path in paths if path.is_file() and not path.is_symlink())


def texts() -> list[tuple[str, str]]:
    """Path and content of every kept text file."""
    found = []
    for path in kept():
        data = path.read_bytes()
        if b"\0" not in data:
            found.append((str(path.relative_to(CHECKOUT)), data.decode(errors="replace")))
    return found


def modules() -> list[tuple[str, str, ast.Module]]:
    """Path, text and syntax tree of every module of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append((str(path.relative_to(CHECKOUT)), text, ast.parse(text, filename=str(path))))
    return found
