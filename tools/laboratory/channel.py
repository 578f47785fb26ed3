"""The host's end of a guest's agent: run a command there, copy a file there."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tools.laboratory.guest.agent import PORT
from tools.laboratory.network import CONTROL, Network

BOOT_S = 60


class Failed(RuntimeError):
    """A command in a guest ended with another code than 0, or could not be asked for."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to. code 124: it took too long and was killed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Channel:
    """The agent of the guest with this number."""

    network: Network
    guest: str
    number: int

    def run(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout: float = 60,
        check: bool = True,
    ) -> Done:
        """Run a command to its end, or for timeout seconds. Errors: Failed, with what it said on stderr."""
        asked = {"argv": argv, "env": dict(env or {}), "stdin": stdin, "timeout": timeout}
        done = self._ask(asked, timeout + 10)
        if check and done.code:
            raise Failed(f"{self.guest}: {' '.join(argv)} ended with {done.code}: {(done.err or done.out).strip()}")
        return done

    def shell(self, line: str, *, timeout: float = 60, check: bool = True) -> str:
        """Run a line of shell and return what it printed. Errors: Failed."""
        return self.run("bash", "-c", line, timeout=timeout, check=check).out

    def start(self, *argv: str, log: str, env: Mapping[str, str] | None = None) -> int:
        """Start a daemon whose output is appended to `log` in the guest; its pid there. Errors: Failed."""
        done = self._ask({"argv": argv, "env": dict(env or {}), "detach": log}, 30)
        if done.code:
            raise Failed(f"{self.guest}: {' '.join(argv)}: {done.err}")
        return int(done.out)

    def put(self, data: bytes, path: str) -> None:
        """Write a file in the guest, as `cat` into it would: in place, in the mount that path lies on."""
        self.run("tee", path, stdin=data.decode())

    def wait(self, within_s: float = BOOT_S) -> None:
        """Wait until the agent answers. Errors: Failed."""
        end = time.monotonic() + within_s
        while True:
            try:
                self.run("true", timeout=5)
                return
            except Failed:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def _ask(self, request: dict[str, object], timeout: float) -> Done:
        try:
            with self.network.connect(f"{CONTROL}.{self.number}", PORT, 5) as connection:
                connection.settimeout(timeout)
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as answers:
                    answer = answers.readline()
        except OSError as error:
            raise Failed(f"{self.guest}: its agent does not answer: {error}") from error
        if not answer:
            raise Failed(f"{self.guest}: it went away before the command ended")
        return Done(**json.loads(answer))
