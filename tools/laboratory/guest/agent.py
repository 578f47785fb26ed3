"""The agent inside a guest: runs commands for the host, each on a connection of its own.

One line of JSON comes in, {"argv", "env", "stdin", "timeout", "detach"}; one goes out, {"code", "out", "err"}. A
command runs in a session of its own, so that a time-out ends all of it. `detach` starts a daemon whose output goes to
the file `detach`, and answers its pid at once.

Standard library only, and no import of the project: it must run before anything is mounted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socketserver
import subprocess
from typing import Any

PORT = 700


class Handler(socketserver.StreamRequestHandler):
    """One request."""

    def handle(self) -> None:
        line = self.rfile.readline()
        if not line:
            return
        try:
            answer = run(json.loads(line))
        except (OSError, ValueError) as error:
            answer = {"code": 127, "out": "", "err": f"agent: {error}"}
        # The host may have given up waiting; then nobody wants to know.
        with contextlib.suppress(OSError):
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    """A thread per request, since some requests take minutes."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request. Errors: OSError when the program cannot be started."""
    env = {**os.environ, **request.get("env", {})}
    if request.get("detach"):
        with open(request["detach"], "ab") as log:
            daemon = subprocess.Popen(
                request["argv"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return {"code": 0, "out": str(daemon.pid), "err": ""}
    with subprocess.Popen(
        request["argv"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(request.get("stdin", "").encode(), timeout=request.get("timeout", 60))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return {"code": 124, "out": "", "err": "agent: it took too long"}
    return {"code": process.returncode, "out": out.decode(errors="replace"), "err": err.decode(errors="replace")}


if __name__ == "__main__":
    # Detached daemons are left to init, which reaps them.
    Server(("0.0.0.0", PORT), Handler).serve_forever()
