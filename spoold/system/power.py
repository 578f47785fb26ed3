"""The machine's power: its battery, and keeping it awake while tasks run.

Law: a machine without a battery, without systemd, or whose policy refuses, works on all the same: nothing here
raises, and an impossible action is reported once, in words. Touches psutil's view of the battery and systemd-inhibit.

Touches: files, processes.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from spoold.system.probe import known

WHAT = "sleep:idle:handle-lid-switch"
_END_S = 2.0


@dataclass(frozen=True, slots=True)
class Battery:
    """plugged: whether it is on mains; percent: its charge. None if the driver does not say."""

    plugged: bool | None = None
    percent: float | None = None


def battery() -> Battery | None:
    """The battery of this machine; None if it has no readable one."""
    import psutil

    # A driver in mid-change writes anything, and not each system has a reader in psutil.
    found = known(lambda: psutil.sensors_battery())  # noqa: PLW0108  the name itself may be missing
    return None if found is None else Battery(found.power_plugged, found.percent)


class Inhibitor(Protocol):
    """Keeps the machine awake. None of the methods raises."""

    def hold(self) -> None:
        """Keep the machine awake from now on. Cheap enough to be called at every step."""
        ...

    def release(self) -> None:
        """Stop keeping it awake."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why the machine cannot be kept awake; None as far as is known."""
        ...


class SystemInhibitor:
    """A lock of systemd-logind, held by a child that ends with this process, however it ends.

    The child is `systemd-inhibit … cat`, and `cat` reads a pipe that only this process holds open: when the kernel
    closes it, even after SIGKILL, the lock is gone as well. A refusal is final for this process, since it comes from
    a policy that a person has to change.
    """

    def __init__(self, program: str = "systemd-inhibit", why: str = "spoold runs tasks") -> None:
        self._program = program
        self._command = [program, f"--what={WHAT}", "--who=spoold", f"--why={why}", "--mode=block", "cat"]
        self._child: subprocess.Popen[bytes] | None = None
        self._trouble: str | None = None

    @property
    def trouble(self) -> str | None:
        return self._trouble

    def hold(self) -> None:
        if self._child is not None:
            self._look(self._child)
        elif self._trouble is None:
            self._start()

    def release(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            _end(child)

    def _start(self) -> None:
        try:
            # A group of its own, in our session: Ctrl-C is for us, and our own child is not an orphan of a task.
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            self._trouble = f"sleep cannot be inhibited: {self._program}: {error.strerror}"

    def _look(self, child: subprocess.Popen[bytes]) -> None:
        """Note the refusal if the child ended by itself; its last words are the reason."""
        if child.poll() is None:
            return
        assert child.stderr is not None
        os.set_blocking(child.stderr.fileno(), False)
        said = (child.stderr.read() or b"").decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"it ended with status {child.returncode}"
        self._trouble = f"sleep cannot be inhibited: {self._program}: {why}"
        self.release()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Close the pipe and wait for the child's end; kill a child that does not end, so that no lock stays."""
    assert child.stdin is not None
    assert child.stderr is not None
    with suppress(OSError):
        child.stdin.close()
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stderr.close()
