"""Processors with more registers than a guest's kernel has room for, and how it runs on them all the same.

User Mode Linux as Debian 12 has it knows of none that are younger than AVX-512: on one with AMX (Intel's since 2023)
it panics before its first program has begun. There a small library stands between it and ptrace(2).

May touch: the folder of a lab, this machine's C compiler.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
# What is needed to compile it, and the Debian package that brings it.
COMPILER = {"/usr/bin/gcc": "gcc", "/usr/include/x86_64-linux-gnu/sys/ptrace.h": "libc6-dev"}
_TOO_YOUNG = "amx_tile"


def too_many(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this machine's processor has more registers than a guest's kernel has room for."""
    return any(
        _TOO_YOUNG in line.partition(":")[2].split()
        for line in cpuinfo.read_text().splitlines()
        if line.startswith("flags")
    )


def environment(folder: Path) -> dict[str, str]:
    """What a guest's kernel needs in its environment; its library is kept in the folder. Errors: RuntimeError."""
    if not too_many():
        return {}
    library = folder / "registers.so"
    if not library.exists():
        compile_into(library)
    return {"LD_PRELOAD": str(library)}


def compile_into(library: Path) -> None:
    """Make the library. Errors: RuntimeError with what the compiler said."""
    command = ["/usr/bin/gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(library)]
    done = subprocess.run([*command, str(SOURCE)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{SOURCE} cannot be compiled:\n{done.stderr.strip()}")
