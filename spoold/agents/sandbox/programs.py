"""Which files an agent's own program needs beside it, so that a sandbox can show them.

Law: never a whole home, and no folder that is not a program's: of `~/.local/bin/agent` it shows that file and
`~/.local/lib`, not `~/.local/share`, where keys may be.

Touches: files.
"""

from __future__ import annotations

import os
import shutil
import sys

_BESIDE = ("lib", "lib64", "libexec", "pyvenv.cfg")
_SHOWN_ANYWAY = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")
_MOST = 16


def needed(program: str, path: str) -> list[str]:
    """Return what has to be shown so that a program, looked up in `path`, can run: its file, through all links, its
    packages and libraries, and the interpreter that its first line names. What is below /usr is shown anyway.

    Errors: FileNotFoundError.
    """
    found: dict[str, None] = {}
    todo = [program]
    while todo and len(found) < _MOST * 4:
        name = todo.pop()
        file = shutil.which(name, path=path)
        if file is None:
            raise FileNotFoundError(f"there is no program {name} in {path}")
        for step in _links(os.path.abspath(file)):
            found |= {} if step.startswith(_SHOWN_ANYWAY) else dict.fromkeys(_beside(step))
        todo += [each for each in _interpreter(os.path.realpath(file)) if each not in found]
    return [each for each in found if not each.startswith(_SHOWN_ANYWAY)]


def _links(file: str) -> list[str]:
    """Return a file, and all that it is a link to, one after another."""
    steps = [file]
    while os.path.islink(steps[-1]) and len(steps) < _MOST:
        steps.append(os.path.abspath(os.path.join(os.path.dirname(steps[-1]), os.readlink(steps[-1]))))
    return list(dict.fromkeys([*steps, os.path.realpath(file)]))


def _beside(file: str) -> list[str]:
    above, modules, _ = file.partition("/node_modules/")
    if modules:
        return [f"{above}/node_modules"]
    folder, name = os.path.split(file)
    top = os.path.dirname(folder)
    beside = [f"{top}/{each}" for each in _BESIDE] if os.path.basename(folder) == "bin" else []
    return [f"{folder}/{name}", *(each for each in beside if os.path.exists(each))]


def _interpreter(file: str) -> list[str]:
    """Return the program that a script names in its first line; of `env NAME` the name."""
    with open(file, "rb") as script:
        first = script.readline(256)
    if not first.startswith(b"#!"):
        return []
    words = os.fsdecode(first[2:]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[:1]


def of_python() -> list[str]:
    """Return what has to be shown so that this Python, and what is installed for it, can run."""
    return needed(sys.executable, os.path.dirname(sys.executable))
