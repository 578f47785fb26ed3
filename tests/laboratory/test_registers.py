"""Registers that a guest's kernel has no room for: where there are any, and that it can put back those it knows."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.laboratory import needs, registers

# A traced process is given back the first 576 bytes of its registers, which are those of 2003 and a header.
PUT_BACK = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
TRACEME, CONT, GETREGSET, SETREGSET, XSTATE = 0, 7, 0x4204, 0x4205, 0x202
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
def ptrace(*arguments):
    return libc.ptrace(*(ctypes.c_long(argument) for argument in arguments))
pid = os.fork()
if pid == 0:
    ptrace(TRACEME, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(7)
os.waitpid(pid, 0)
kept = ctypes.create_string_buffer(576)
vector = Vector(ctypes.addressof(kept), 576)
assert ptrace(GETREGSET, pid, XSTATE, ctypes.addressof(vector)) == 0
done = ptrace(SETREGSET, pid, XSTATE, ctypes.addressof(vector))
said = os.strerror(ctypes.get_errno()) if done else "put back"
ptrace(CONT, pid, 0, 0)
print(said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def put_back(**env: str) -> str:
    done = subprocess.run([sys.executable, "-c", PUT_BACK], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(("flags", "too_many"), [("fpu avx512f", False), ("fpu avx512f amx_tile amx_int8", True)])
def test_the_processor_says_whether_it_has_too_many(tmp_path: Path, flags: str, too_many: bool) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nmodel name\t: amx_tile\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
    assert registers.too_many(cpuinfo) == too_many


@pytest.mark.skipif(not all(Path(file).exists() for file in registers.COMPILER), reason="there is no C compiler here")
def test_with_the_library_a_part_of_the_registers_is_enough(tmp_path: Path) -> None:
    library = tmp_path / "registers.so"
    registers.compile_into(library)
    assert put_back() == "Bad address 7"
    assert put_back(LD_PRELOAD=str(library)) == "put back 7"


def test_a_guest_gets_the_library_where_it_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "compile_into", lambda library: library.write_bytes(b""))
    monkeypatch.setattr(registers, "too_many", lambda: False)
    assert registers.environment(tmp_path) == {}
    monkeypatch.setattr(registers, "too_many", lambda: True)
    assert registers.environment(tmp_path) == {"LD_PRELOAD": f"{tmp_path}/registers.so"}
    assert (tmp_path / "registers.so").exists()


def test_a_compiler_is_needed_there_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "PROGRAMS", {})
    monkeypatch.setattr(registers, "COMPILER", {"/no/such/compiler": "gcc"})
    monkeypatch.setattr(registers, "too_many", lambda: False)
    assert not any("gcc" in reason for reason in needs.missing())
    monkeypatch.setattr(registers, "too_many", lambda: True)
    assert "packages are missing: apt-get install gcc" in needs.missing()
