"""What a daemon tells its service manager: ready, how it is, that it is alive, that it leaves.

Law: telling never fails and never blocks, since a daemon that runs well must not fall over a deaf manager.
May touch: one datagram socket and the environment variables of sd_notify(3).
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import MutableMapping

STATUS_LIMIT = 300  # characters; one line of `systemctl status`


class Notifier:
    """The readiness protocol of systemd. Without a manager every call is a no-op that returns False.

    Make one per process: it takes its variables out of the environment, so that no task can inherit them
    and speak, or be waited for, in the daemon's name. Calls return whether the message was handed over; none
    raises.
    """

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        timeout_us = environ.pop("WATCHDOG_USEC", "")
        guarded = environ.pop("WATCHDOG_PID", "")
        # A leading @ stands for the zero byte of Linux's abstract socket names.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._interval_s = _interval_s(timeout_us) if guarded in ("", str(os.getpid())) else None

    def ready(self) -> bool:
        """The daemon has opened its spool and begins to loop."""
        return self._send("READY=1")

    def status(self, text: str) -> bool:
        """Show text in `systemctl status`; it is made one line, since a second would be read as a command."""
        return self._send("STATUS=" + " ".join(text.split())[:STATUS_LIMIT])

    def watchdog(self) -> bool:
        """The loop has made progress. Say it only then: a process that merely exists has nothing to say."""
        return self._send("WATCHDOG=1")

    def stopping(self) -> bool:
        """The daemon drains and will exit by itself."""
        return self._send("STOPPING=1")

    def watchdog_interval_s(self) -> float | None:
        """Seconds that may pass between two calls of watchdog(); None when nobody watches.

        Half of what the manager allows, so that one late step is no reason to be killed.
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
        except (OSError, ValueError):  # ValueError: an address that is no socket name at all
            return False
        return True


def _interval_s(timeout_us: str) -> float | None:
    """Half of a time in microseconds, in seconds; None for what is no such time."""
    if not re.fullmatch(r"[0-9]{1,18}", timeout_us):
        return None
    return int(timeout_us) / 2_000_000 or None
