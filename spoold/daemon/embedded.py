"""`with Spool.local() as spool:`: a master and workers in the background of one program.

Law: they are child processes that drain when the program ends, however it ends. A temporary directory is removed
then; a directory that the caller named stays. A task that ends its worker does not end the program.

Touches: files, processes, the clock, the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from spoold.client.spool_client import SpoolClient
from spoold.protocol.amount import amount
from spoold.protocol.errors import Unavailable
from spoold.protocol.layout import MARKER, PRIVATE
from spoold.store import heartbeats
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem
from spoold.system.remover import remove

START_WITHIN_S = 30.0
LOOK_S = 0.02
# The program may be killed, so this shell removes its directory.
_UNTIL_EOF = '"$@"; status=$?; rm -rf -- "$0"; exit $status'


class Spool(SpoolClient):
    """The spool for programs; see `spoold.client.spool_client`. `local` makes one with its own master and workers."""

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
        """Open a spool with its own master and `workers` workers of `slots` slots each (default: one per cpu).

        directory: its place, made into a spool if it is not one yet; None: a temporary one, removed at the end.
        python: prefixes of module names whose callables may run; they are looked up along this program's own path.
        Master and workers write only warnings and errors to stderr, unless SPOOL_LOG_LEVEL is set.
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
        self._up = self._made = None  # the parent ends them

    def stop(self) -> None:
        """Drain the workers, end the master, and remove the directory if it was a temporary one."""
        if self._up is not None:
            if self._up.stdin is not None:
                self._up.stdin.close()
            self._up.wait()
            self._up = None
        if self._made is not None:
            remove(self._made)

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
        # Daemons must not fill a program's own stderr with good news.
        environ = {"SPOOL_LOG_LEVEL": "warning", **os.environ, "PYTHONPATH": os.pathsep.join(path)}
        return subprocess.Popen([*command, "--until-eof"], stdin=subprocess.PIPE, env=environ, start_new_session=True)

    def _await_workers(self, fs: PosixFileSystem, workers: int) -> None:
        """Wait until a master and all workers beat, so that submitted tasks start at once."""
        assert self._up is not None
        until = time.monotonic() + START_WITHIN_S
        while True:
            alive = [beat for beat in heartbeats.read_all(fs).values() if beat.status != "draining"]
            leads = any(beat.status == "leader" for beat in alive)
            if leads and sum(beat.role == "worker" for beat in alive) >= workers:
                return
            if self._up.poll() is not None:
                raise Unavailable(f"the master and workers ended at once (status {self._up.returncode})")
            if time.monotonic() > until:
                raise Unavailable(f"no master and {amount(workers, 'worker')} within {START_WITHIN_S:.0f} s")
            time.sleep(LOOK_S)
