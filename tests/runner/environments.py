"""Python environments as people have them, drawn from a seed: venvs, in venvs, moved, with .pth files, editable."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# The interpreter below all environments, as the one that runs the tests has it.
BASE = os.path.realpath(sys.executable)
_LIB = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
# A package is installed as pip does it, by a .pth file that names its folder or runs code, or in an archive.
_HOW = ("installed", "folder", "code", "finder", "archive")
_FINDER = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {name!r}:
            return importlib.util.spec_from_file_location(name, {file!r})
sys.meta_path.append(Finder)
"""


@dataclass
class Environment:
    """An interpreter, the variables of its tasks, the modules that only it has, and how it was made."""

    python: Path
    variables: dict[str, str] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)


def draw(chance: random.Random, where: Path) -> Environment:
    """Make one. The user's own folder is a new one, and Python's variables are only those that are drawn."""
    home = where / "home"
    home.mkdir()
    kept = {name: text for name, text in os.environ.items() if name in ("PATH", "LANG", "LD_LIBRARY_PATH")}
    drawn = Environment(Path(BASE), {**kept, "HOME": str(home)})
    for depth in range(chance.choice((0, 1, 1, 1, 2))):
        _nest(drawn, chance, where / chance.choice(("env", "an env", "umgebüng")) / str(depth))
    if chance.random() < 0.4:
        user = home / ".local" / _LIB
        user.mkdir(parents=True)
        _add(drawn, "users_own", user, chance)
    if chance.random() < 0.3:
        drawn.variables["PYTHONNOUSERSITE"] = "1"
        drawn.made.append("no user site")
    if chance.random() < 0.4:
        (by_path := where / "by path").mkdir()
        _add(drawn, "on_the_path", by_path, chance, ("installed",))
        drawn.variables["PYTHONPATH"] = f"{by_path}:{where}/absent"
    return drawn


def _nest(drawn: Environment, chance: random.Random, folder: Path) -> None:
    """Make a venv with what there is, with something in it."""
    options = [one for one in ("--system-site-packages", "--copies") if chance.random() < 0.3]
    command = [str(drawn.python), "-m", "venv", "--without-pip", *options, str(folder)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env={**os.environ, **drawn.variables})
    drawn.made.append(f"venv {' '.join(options)}")
    for number in range(chance.randrange(1, 3)):
        _add(drawn, f"only_{len(drawn.modules)}_{number}", folder / _LIB, chance)
    if chance.random() < 0.3:
        folder = folder.rename(folder.with_name("moved"))
        drawn.made.append("moved")
    drawn.python = folder / "bin" / "python"


def _add(drawn: Environment, name: str, site: Path, chance: random.Random, how: tuple[str, ...] = _HOW) -> None:
    """Put a module, with what pip records of it, where that site finds it."""
    way = chance.choice(how)
    drawn.made.append(f"{name} {way}")
    drawn.modules.append(name)
    _record(site, name)
    if way == "installed":
        (site / f"{name}.py").write_text(f"WHERE = {name!r}\n")
        return
    source = site.parent / f"sources of {name}"
    source.mkdir()
    (source / f"{name}.py").write_text(f"WHERE = {name!r}\n")
    (site / f"{name}.pth").write_text(_WAYS[way](source, site, name), encoding="utf-8")


def _archive(source: Path, _: Path, name: str) -> str:
    with zipfile.ZipFile(source / "all.zip", "w") as archive:
        archive.writestr(f"{name}.py", f"WHERE = {name!r}\n")
    return f"{source / 'all.zip'}\n"


def _finder(source: Path, site: Path, name: str) -> str:
    """As pip makes it for `-e`, of a project whose modules do not lie as they are called."""
    (site / f"_finder_{name}.py").write_text(_FINDER.format(name=name, file=str(source / f"{name}.py")))
    return f"import _finder_{name}\n"


_WAYS: Mapping[str, Callable[[Path, Path, str], str]] = {
    "folder": lambda source, site, name: f"{source}\n",
    "code": lambda source, site, name: f"import sys; sys.path.append({str(source)!r})\n",
    "finder": _finder,
    "archive": _archive,
}


def _record(site: Path, name: str) -> None:
    """What importlib.metadata reads."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
