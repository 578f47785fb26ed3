"""System calls of running processes, counted by `strace -c` while something is done.

Touches: strace, which is attached to processes and detached again.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ATTACH_WITHIN_S = 10.0


@contextmanager
def counted(pids: Sequence[int], output: Path) -> Iterator[Counter[str]]:
    """Calls of these processes and all that they start, by name; filled in when the `with` ends. Errors: OSError."""
    command = ["strace", "-c", "-f", "-o", str(output), *(word for pid in pids for word in ("-p", str(pid)))]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    calls: Counter[str] = Counter()
    try:
        _await(pids)
        yield calls
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    if not output.exists() or not output.stat().st_size:
        raise OSError(f"strace counted nothing: {said.decode().strip()[-200:]}")
    calls.update(parse(output.read_text()))


def _await(pids: Sequence[int]) -> None:
    """Until strace has hold of all of them."""
    until = time.monotonic() + ATTACH_WITHIN_S
    while time.monotonic() < until and any(_tracer(pid) == 0 for pid in pids):
        time.sleep(0.01)


def _tracer(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("TracerPid:"):
                return int(line.split()[1])
    except OSError:
        pass
    return -1


def parse(table: str) -> dict[str, int]:
    """The calls by name in a table of `strace -c`. One without errors has a column less; the total is not a call."""
    found: dict[str, int] = {}
    for line in table.splitlines():
        words = line.split()
        if len(words) in (5, 6) and words[0].replace(".", "").isdigit() and words[-1] != "total":
            found[words[-1]] = int(words[3])
    return found
