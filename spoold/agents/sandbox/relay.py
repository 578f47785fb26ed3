"""A small program in the sandbox, between it and the agent:

    relay.py SOCKET COUNT {PATH DEVICE:INODE}… COUNT {NAME=VALUE}… COMMAND…

In a network of its own, an agent still speaks TCP to a proxy: this one listens on 127.0.0.1 and passes everything on
to the socket of the proxy outside, if there is one. In a folder that others use, too, each path that is shown may
have been exchanged for a link since it was looked at: so it is looked at again from here, where nobody can change any
more what is shown.

Law: it runs with the standard library alone, from this one file, and trusts nothing that comes from the agent. Its
exit code is the agent's own, or one of two. The variables that it is told are the loader's: it has none of them.

Touches: files, processes, threads, the network, the terminal, the environment.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading

PORT = 3128
# Its own exit codes, a shell's for what cannot be started: what is shown is not what was looked at; any other cause.
EXCHANGED, NOT_STARTED = 126, 127


def main(args: list[str]) -> int:
    """Run the command, and return its exit code."""
    path, pairs, *rest = args
    count = 2 * int(pairs)
    looked, (settings, *rest) = rest[:count], rest[count:]
    for at, identity in zip(looked[::2], looked[1::2], strict=True):
        if identity_of(at) != identity:
            sys.stderr.write(f"{at!r} was exchanged while the sandbox was made: nothing was started in it\n")
            return EXCHANGED
    told, command = rest[: int(settings)], rest[int(settings) :]
    for one in told:
        name, _, value = one.partition("=")
        os.environ[name] = value
    try:
        if not path:
            os.execvp(command[0], command)
        door = socket.create_server(("127.0.0.1", PORT), backlog=64)
        threading.Thread(target=_serve, args=(door, path), daemon=True).start()
        child = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: child.send_signal(got))
    code = child.wait()
    return code if code >= 0 else 128 - code


def identity_of(path: str | int) -> str:
    """Return which file a path leads to, or is open as this number, as DEVICE:INODE; '' for none."""
    try:
        seen = os.stat(path)
    except OSError:
        return ""
    return f"{seen.st_dev}:{seen.st_ino}"


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
    """Copy until the source ends, and then say so to the target; or until the target takes no more, and then take no
    more from the source. What comes the other way goes on until its own end."""
    try:
        while data := source.recv(1 << 16):
            try:
                target.sendall(data)
            except OSError:
                _shut(source, socket.SHUT_RD)
                return
    except OSError:
        # The source is gone: the target would wait for an end that nobody tells it, and so would its other copy.
        _shut(target, socket.SHUT_RDWR)
        return
    _shut(target, socket.SHUT_WR)


def _shut(end: socket.socket, how: int) -> None:
    try:
        end.shutdown(how)
    except OSError:
        return  # the other side has done so


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
