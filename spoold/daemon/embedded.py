"""`with Spool.local() as spool:`: a master and workers in the background of one program.

They are child processes that drain when the program ends, however it ends, so nothing is left behind and a task that
takes its worker down does not take the program down.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from spoold.client.spool_client import SpoolClient
from spoold.protocol.amount import amount
from spoold.protocol.errors import Unavailable
from spoold.protocol.layout import MARKER, PRIVATE
from spoold.store import beats
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem

START_WITHIN_S = 30.0
LOOK_S = 0.02
# The program may end without a word, so its directory is removed from here.
_UNTIL_EOF = '"$@"; status=$?; rm -rf -- "$0"; exit $status'


class Spool(SpoolClient):
    """A spool as a program uses it; see `spoold.client.spool_client`. `local` makes one that needs nothing else."""

    @classmethod
    def local(
        cls,
        directory: str | os.PathLike[str] | None = None,
        *,
        workers: int = 1,
        slots: int | None = None,
        allow_command: bool = True,
        python: tuple[str, ...] = ("*",),
    ) -> LocalSpool:
        """A spool with a master and `workers` workers of `slots` slots each (default: one per cpu) behind it.

        directory: where it is kept; made when it is no spool yet, and a temporary one, removed in the end, when None.
        python: prefixes of module names whose callables may run; they are looked up along this program's own path.
        Master and workers say on stderr only what is wrong, unless SPOOL_LOG_LEVEL is set.
        Errors: Unavailable when it does not start within 30 s.
        """
        return LocalSpool(directory, workers, slots, allow_command, python)


class LocalSpool(Spool):
    """A spool whose master and workers live as long as this object is open."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        workers: int,
        slots: int | None,
        allow_command: bool,
        python: tuple[str, ...],
    ) -> None:
        self._made: str | None = tempfile.mkdtemp(prefix="spoold-local-")
        root = os.path.abspath(directory) if directory is not None else os.path.join(self._made, "spool")
        os.makedirs(root, exist_ok=True)
        self._up: subprocess.Popen[bytes] | None = None
        try:
            fs = PosixFileSystem(root, PRIVATE)
            if MARKER not in fs.list(""):
                initialise(fs, SystemClock(), f"local-{os.getpid()}", root)
            super().__init__(root)
            self._up = self._start(root, self._made, workers, slots, allow_command, python)
            self._await_workers(fs, workers)
        except BaseException:
            self.stop()
            raise

    def close(self) -> None:
        super().close()
        self.stop()

    def forked(self) -> None:
        super().forked()
        self._up = self._made = None  # the parent's to end

    def stop(self) -> None:
        """Drain the workers, end the master, and remove the directory if it was a temporary one."""
        if self._up is not None:
            if self._up.stdin is not None:
                self._up.stdin.close()
            self._up.wait()
            self._up = None
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)

    def _start(
        self, root: str, made: str, workers: int, slots: int | None, allow_command: bool, python: tuple[str, ...]
    ) -> subprocess.Popen[bytes]:
        config = os.path.join(made, "worker.toml")
        path = [entry or os.getcwd() for entry in sys.path]
        with open(config, "w", encoding="utf-8") as file:
            # JSON's strings and lists of strings are TOML's too.
            file.write(f"drain_grace_s = 0\n[python]\nallow = {json.dumps(python)}\npath = {json.dumps(path)}\n")
        command = [
            *("/bin/sh", "-c", _UNTIL_EOF, made),
            sys.executable,
            "-m",
            "spoold",
            "--spool",
            root,
            "up",
            "--workers",
            str(workers),
            "--config",
            config,
        ]
        command += [*(("--slots", str(slots)) if slots else ()), *(("--allow-command",) if allow_command else ())]
        # A program's own stderr is not the place where daemons say that all is well.
        environ = {"SPOOL_LOG_LEVEL": "warning", **os.environ, "PYTHONPATH": os.pathsep.join(path)}
        return subprocess.Popen([*command, "--until-eof"], stdin=subprocess.PIPE, env=environ, start_new_session=True)

    def _await_workers(self, fs: PosixFileSystem, workers: int) -> None:
        """Until a master and all workers beat: work that is submitted now starts now."""
        assert self._up is not None
        until = time.monotonic() + START_WITHIN_S
        while True:
            alive = [beat for beat in beats.read_all(fs).values() if beat.status != "draining"]
            leads = any(beat.status == "leader" for beat in alive)
            if leads and sum(beat.role == "worker" for beat in alive) >= workers:
                return
            if self._up.poll() is not None:
                raise Unavailable(f"the master and workers ended at once (status {self._up.returncode})")
            if time.monotonic() > until:
                raise Unavailable(f"no master and {amount(workers, 'worker')} within {START_WITHIN_S:.0f} s")
            time.sleep(LOOK_S)
