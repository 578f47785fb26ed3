"""Messages of a daemon to its service manager: ready, status, alive, stopping.

Law: sending never fails and never blocks, since a manager that does not listen must not stop the daemon.
May touch: one datagram socket and the environment variables of sd_notify(3).

Touches: processes, the network, the environment.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import MutableMapping

STATUS_LIMIT = 300  # characters; one line of `systemctl status`


class Notifier:
    """The readiness protocol of systemd. Without a manager every call is a no-op that returns False.

    Make one per process: it removes its variables from the environment, so that no task can inherit them and send
    messages, or be waited for, in the daemon's name. Calls return whether the message was sent; none raises.
    """

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        timeout_us = environ.pop("WATCHDOG_USEC", "")
        guarded = environ.pop("WATCHDOG_PID", "")
        # A leading @ stands for the zero byte of Linux's abstract socket names.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._interval_s = _interval_s(timeout_us) if guarded in ("", str(os.getpid())) else None

    def ready(self) -> bool:
        """Report that the daemon has opened its spool and begins to loop."""
        return self._send("READY=1")

    def status(self, text: str) -> bool:
        """Show text in `systemctl status`; as one line, since a second line would be read as a command."""
        return self._send("STATUS=" + " ".join(text.split())[:STATUS_LIMIT])

    def watchdog(self) -> bool:
        """Report that the loop has made progress. Call it only then: mere existence is no progress."""
        return self._send("WATCHDOG=1")

    def stopping(self) -> bool:
        """Report that the daemon drains and will exit by itself."""
        return self._send("STOPPING=1")

    def watchdog_interval_s(self) -> float | None:
        """Return the seconds that may pass between two calls of watchdog(); None without a watchdog.

        Half of the manager's limit, so that one late step does not get the daemon killed.
        """
        return self._interval_s

    def _send(self, message: str) -> bool:
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                manager.setblocking(False)
                manager.connect(self._address)
                manager.send(message.encode(errors="replace"))
        except (OSError, ValueError):  # ValueError: an address that cannot be a socket name
            return False
        return True


def _interval_s(timeout_us: str) -> float | None:
    """Return half of a time in microseconds, in seconds; None for text that is no such time."""
    if not re.fullmatch(r"[0-9]{1,18}", timeout_us):
        return None
    return int(timeout_us) / 2_000_000 or None
