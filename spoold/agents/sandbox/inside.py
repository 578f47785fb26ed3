"""A small program in the sandbox, between it and the agent: `inside.py SOCKET COMMAND…`.

In a network of its own, an agent still speaks TCP to a proxy: this one listens on 127.0.0.1 and passes everything on
to the socket of the proxy outside.

Law: it runs with the standard library alone, from this one file, and trusts nothing that comes from the agent. Its
exit code is the agent's own.

Touches: processes, threads, the network, the environment.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading

PORT = 3128


def main(args: list[str]) -> int:
    """Run the command, and return its exit code."""
    path, *command = args
    door = socket.create_server(("127.0.0.1", PORT), backlog=64)
    threading.Thread(target=_serve, args=(door, path), daemon=True).start()
    child = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: child.send_signal(got))
    code = child.wait()
    return code if code >= 0 else 128 - code


def _serve(door: socket.socket, path: str) -> None:
    while True:
        near, _ = door.accept()
        threading.Thread(target=_pass_on, args=(near, path), daemon=True).start()


def _pass_on(near: socket.socket, path: str) -> None:
    far = socket.socket(socket.AF_UNIX)
    try:
        far.connect(path)
    except OSError:
        near.close()
        far.close()
        return
    back = threading.Thread(target=copy, args=(far, near), daemon=True)
    back.start()
    copy(near, far)
    back.join()
    near.close()
    far.close()


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends, and then say so to the target."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side is gone: so is the other, or it would wait for an end that nobody tells it.
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
