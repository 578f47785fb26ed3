"""Make, or find again, the Python environment that the tools run in, and print its folder.

Law: the same lock file gives the same environment on every machine, and nothing else says what is installed. Nothing
but the lock's packages can be imported, also not by the interpreter below the environment. With `--run-time` what
spoold itself needs is enough: a first demo waits for no linter. All the others are added once a tool asks for them.
May touch: the checkout's `.venv`, or the user's cache where the checkout is read-only. Standard library
only, because it runs before anything is installed.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

CHECKOUT = Path(__file__).resolve().parent.parent
INPUTS = ("pyproject.toml", "uv.lock", "tools/environment.py")
# Settings of the caller's pip that would put the packages somewhere else. Those that name an index stay.
MISLEADING = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
# What ensurepip installs, by version of Python.
PIP = ("pip", "setuptools")
# What builds the project itself, also where only its run-time packages are installed.
BUILDER = "hatchling"
RUN_TIME, ALL = "run-time packages", "all packages"
# Where stderr is no terminal, a line of progress is written this often (s) at most.
SAID_EVERY_S = 2.0
# Prints what is installed beside an interpreter.
PACKAGES = "import os, site; print(*(n for d in site.getsitepackages() if os.path.isdir(d) for n in os.listdir(d)))"
# Of the standard library: what is no part of it, and what only its own tests need.
LEFT_OUT = ("site-packages", "dist-packages", "test", "config-*", "*.opt-?.pyc")


def give_up(sentence: str) -> NoReturn:
    """End with a sentence that says what to do."""
    sys.exit(f"spoold tools: {sentence}")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command quietly in the checkout, with its output kept for the case that it fails."""
    env = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    return subprocess.run(
        command,
        cwd=CHECKOUT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def told(packages: int, file: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run pip as `run` does, and say on stderr how many packages of this file it has: on a terminal in one line.

    It names the line of the file with each package that it finds, wherever that is.
    """
    env = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    output, number, said_at = list[str](), 0, time.monotonic()
    begin, end = ("\r", "") if sys.stderr.isatty() else ("", "\n")
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=CHECKOUT, env=env, text=True, **pipes) as pip:  # type: ignore[call-overload]
        for line in pip.stdout:
            output.append(line)
            number += f" {file} (line " in line
            installing = line.startswith("Installing ")
            if end == "" or time.monotonic() >= said_at + SAID_EVERY_S or installing:
                phase = "installing all" if installing else f"{number} of"
                print(f"{begin}  {phase} {packages} packages", end=end, file=sys.stderr, flush=True)
                said_at = time.monotonic()
    if end == "":
        print(file=sys.stderr)
    return subprocess.CompletedProcess(command, pip.returncode, "".join(output))


def places() -> Iterator[Path]:
    """The folders an environment may be made in, best first."""
    yield CHECKOUT
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    yield cache / "spoold" / hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:12]


@contextlib.contextmanager
def locked_place() -> Iterator[Path]:
    """The first folder that can be written to, held alone: two runs never install over each other."""
    for place in places():
        try:
            place.mkdir(parents=True, exist_ok=True)
            lock = (place / ".venv.lock").open("a")
        except OSError:
            continue
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield place
        return
    give_up("neither the checkout nor the cache can be written to; set XDG_CACHE_HOME to a folder that can.")


def stamp() -> str:
    """What the environment depends on; when it is unchanged there is nothing to do.

    A tool that a tool starts finds the environment's own Python first, which has the same version at another path.
    """
    parts = [sys.version.encode(), os.fsencode(CHECKOUT)]
    parts += [(CHECKOUT / name).read_bytes() for name in INPUTS]
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def needed(lock: dict[str, Any], names: Iterable[str]) -> set[str]:
    """These packages of the lock, and all that they need, in turn."""
    packages, found, left = {package["name"]: package for package in lock["package"]}, set[str](), list(names)
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += [need["name"] for need in packages[name].get("dependencies", [])]
    return found


def requirements(lock: dict[str, Any], what: str = ALL) -> Iterator[str]:
    """The lock as pip requirements with hashes: versions and content are fixed, the index is not.

    A package that is only ever needed under a marker (another operating system) keeps that marker.
    """
    chosen = needed(lock, ["spoold", BUILDER]) if what == RUN_TIME else {each["name"] for each in lock["package"]}
    markers: dict[str, set[str]] = {}
    for package in lock["package"]:
        more = (package.get(kind, {}) for kind in ("optional-dependencies", "dev-dependencies"))
        groups = [package.get("dependencies", []), *(group for kind in more for group in kind.values())]
        for need in (need for group in groups for need in group):
            markers.setdefault(need["name"], set()).add(need.get("marker", ""))
    for package in lock["package"]:
        if "registry" not in package["source"] or package["name"] not in chosen:
            continue
        wanted = markers.get(package["name"], {""})
        marker = "" if "" in wanted else " ; " + " or ".join(f"({marker})" for marker in sorted(wanted))
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        hashes = "".join(f" --hash={file['hash']}" for file in files)
        yield f"{package['name']}=={package['version']}{marker}{hashes}"


def bare(environment: Path) -> Path:
    """An interpreter of this version that has no packages: this machine's own, or where that has some, a copy of it.

    Processes of spoold also run in the interpreter below the environment. A package there would hide a fault.
    """
    own = Path(sys.executable).resolve()
    asked = run(str(own), "-I", "-c", PACKAGES)
    if asked.returncode == 0 and not asked.stdout.strip():
        return own
    return environment / "base" / "bin" / own.name


def copy(python: Path) -> None:
    """Copy this interpreter, its library and the standard library, without any package."""
    own, top, root = Path(sys.executable).resolve(), Path(sys.base_prefix), python.parent.parent
    python.parent.mkdir(parents=True)
    shutil.copy2(own, python)
    library = Path(sysconfig.get_path("stdlib"))
    left_out = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(library, root / library.relative_to(top), ignore=left_out, ignore_dangling_symlinks=True)
    for shared in (top / "lib").glob("libpython*.so*"):
        shutil.copy2(shared, root / "lib")


def usable(environment: Path, base: Path) -> bool:
    """Whether there is an environment of this very Python already, which then is only brought up to date."""
    python = environment / "bin" / "python"
    if not python.exists() or python.resolve() != base:
        return False
    answer = run(str(python), "-c", "import sys; print(sys.version, sys.prefix, sep='\\n', end='')")
    return answer.returncode == 0 and answer.stdout == f"{sys.version}\n{environment}"


def make(environment: Path, base: Path) -> None:
    """Make an empty environment upon an interpreter that has no packages."""
    if environment.exists():
        shutil.rmtree(environment)
    if base.is_relative_to(environment):
        copy(base)
    made = run(str(base), "-I", "-m", "venv", "--without-pip", str(environment))
    if made.returncode:
        give_up(f"{base} -m venv failed; name another interpreter with PYTHON.\n{made.stdout}")


def install_with_uv(environment: Path, what: str) -> bool:
    """Install with uv, where it is at hand. False: try pip, which may know an index that uv does not."""
    uv = shutil.which("uv")
    if uv is None:
        return False
    os.environ["UV_PROJECT_ENVIRONMENT"] = str(environment)
    python = str(environment / "bin" / "python")
    groups = "--no-dev" if what == RUN_TIME else "--all-extras"
    done = run(uv, "sync", "--frozen", groups, "--quiet", "--no-python-downloads", "--python", python)
    if done.returncode:
        print(f"uv could not install from the lock, trying pip. uv said:\n{done.stdout}", file=sys.stderr)
    return done.returncode == 0


def install_with_pip(environment: Path, what: str) -> None:
    """Install with the pip that comes with Python, from whatever index pip is set up for on this machine.

    Afterwards it removes itself, and what came with it: a program must not find what is not in the lock.
    """
    python = str(environment / "bin" / "python")
    got = run(python, "-m", "ensurepip")
    if got.returncode:
        give_up(f"there is no pip; install your system's python3-venv package, or uv.\n{got.stdout}")
    # Bytecode is kept in a cache of its own (see tools/environment), so what pip compiled would never be read.
    pip = (python, "-m", "pip", "install", "--no-input", "--no-deps", "--no-compile", "--disable-pip-version-check")
    wanted = list(requirements(tomllib.loads((CHECKOUT / "uv.lock").read_text()), what))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(wanted))
        file.flush()
        installed = told(len(wanted), file.name, *pip, "--require-hashes", "-r", file.name)
    if installed.returncode:
        give_up(
            "pip could not install what uv.lock names. Behind a mirror, set PIP_INDEX_URL or pip.conf to it."
            f"\n{installed.stdout}"
        )
    # The project itself is built with the locked builder: without isolation nothing unlocked is fetched.
    built = run(*pip, "--quiet", "--no-build-isolation", "-e", ".")
    if built.returncode:
        give_up(f"the project itself does not build; see pyproject.toml.\n{built.stdout}")
    removed = run(python, "-m", "pip", "uninstall", "--quiet", "--yes", *PIP)
    if removed.returncode:
        give_up(f"pip could not be removed from the environment.\n{removed.stdout}")


def main() -> None:
    """Print the folder of an environment that agrees with the lock."""
    what = RUN_TIME if sys.argv[1:] == ["--run-time"] else ALL
    with locked_place() as place:
        environment = place / ".venv"
        mark, wanted = environment / "spoold.stamp", stamp()
        found = mark.read_text().partition(" ") if mark.exists() else ("", "", "")
        # The interpreter below it may have been removed since.
        whole = found[0] == wanted and found[2] in (what, ALL) and (environment / "bin" / "python").exists()
        if not whole:
            print(f"making the environment in {environment}, once for each uv.lock: {what}", file=sys.stderr)
            mark.unlink(missing_ok=True)
            base = bare(environment)
            if not usable(environment, base):
                make(environment, base)
            if not install_with_uv(environment, what):
                install_with_pip(environment, what)
            (environment / "cache").mkdir(exist_ok=True)
            mark.write_text(f"{wanted} {what}")
    print(environment)


if __name__ == "__main__":
    main()
