"""A small program around bubblewrap: `seccomp.py NETWORK BWRAP ARGUMENT…` becomes it, with a filter of system calls.

Namespaces do not divide everything. A key of the kernel is found by its serial number from wherever its owner is; a
socket of AF_VSOCK reaches the host of a virtual machine from a network of one's own; and io_uring opens sockets that
no filter sees.

Law: what is refused answers as if the kernel did not have it. It runs with the standard library alone, from this one
file, with the rights of the worker, and hands its variables on as they are.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass

# Where a call's number, its architecture and its first argument are: seccomp(2), struct seccomp_data.
_NUMBER, _ARCH, _FIRST = 0, 4, 16 + (4 if sys.byteorder == "big" else 0)
# Instructions: load a word; jump if equal, or if greater or equal; return. See linux/bpf_common.h.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32 = 0x40000000
_IO_URING_SETUP = 425
# The same by name, as podman takes them.
REFUSED = ("add_key", "request_key", "keyctl", "io_uring_setup")
# Unix, Internet 4 and 6, and what lists the interfaces of a network.
FAMILIES = (1, 2, 10, 16)


@dataclass(frozen=True, slots=True)
class Table:
    """How a kind of processor calls the kernel: linux/audit.h, and the kernel's table of its calls. socketcall: the
    older call for all of sockets, whose arguments no filter can see; None where there is none."""

    arch: int
    add_key: int
    request_key: int
    keyctl: int
    socket: int
    socketcall: int | None = None


_X86_64 = Table(0xC000003E, 248, 249, 250, 41)
_I386 = Table(0x40000003, 286, 287, 288, 359, 102)
_AARCH64 = Table(0xC00000B7, 217, 218, 219, 198)
_ARM = Table(0x40000028, 309, 310, 311, 281, 102)
# By the machine's name. The first is its own; it runs programs of the others, too.
TABLES = {
    "x86_64": (_X86_64, _I386),
    "i686": (_I386,),
    "aarch64": (_AARCH64, _ARM),
    "armv8l": (_ARM,),
    "armv7l": (_ARM,),
    "riscv64": (Table(0xC00000F3, 217, 218, 219, 198),),
    "loongarch64": (Table(0xC0000102, 217, 218, 219, 198),),
    "ppc64le": (Table(0xC0000015, 269, 270, 271, 326, 102),),
    "s390x": (Table(0x80000016, 278, 279, 280, 359, 102), Table(0x16, 278, 279, 280, 359, 102)),
}


def program(tables: Sequence[Table], *, network: bool) -> bytes:
    """Return the filter, as the kernel takes it. network: whether sockets of every family may be made."""
    lines = [(_LOAD, 0, 0, _ARCH)]
    for table in tables:
        block = _block(table, network=network)
        lines += [(_EQUAL, 0, len(block), table.arch), *block]
    lines.append((_RETURN, 0, 0, _KILL))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _block(table: Table, *, network: bool) -> list[tuple[int, int, int, int]]:
    refused = [table.add_key, table.request_key, table.keyctl, _IO_URING_SETUP]
    if table.socketcall is not None and not network:
        refused.append(table.socketcall)
    lines = [(_LOAD, 0, 0, _NUMBER)]
    if table is _X86_64:  # the same processor's calls with numbers of another kind
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for number in refused:
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    if not network:
        families = [line for one in FAMILIES for line in ((_EQUAL, 0, 1, one), (_RETURN, 0, 0, _ALLOW))]
        families = [(_LOAD, 0, 0, _FIRST), *families, (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT)]
        lines += [(_EQUAL, 0, len(families), table.socket), *families]
    return [*lines, (_RETURN, 0, 0, _ALLOW)]


def main(args: Sequence[str]) -> str:
    """Become the program with the filter; return only where that fails, and why."""
    network, tool, *rest = args
    machine = os.uname().machine
    if machine not in TABLES:
        return f"no filter of system calls is known for {machine}"
    near, far = os.pipe()
    os.write(far, program(TABLES[machine], network=network == "host"))
    os.close(far)
    os.set_inheritable(near, True)
    try:
        # Python itself adds a variable where the locale is C.
        with open("/proc/self/environ", "rb") as given:
            env = dict(each.split(b"=", 1) for each in given.read().split(b"\0") if b"=" in each)
        os.execve(tool, [tool, "--seccomp", str(near), *rest], env)
    except OSError as error:
        return f"{tool} cannot be started: {error.strerror}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
