"""A client as Windows has them: `holder.py SERVER SHARE USER PASSWORD SECONDS PATH…` opens files and keeps them open.

It shares reading and writing but not deleting, as editors, indexers and virus scanners do, so that nobody can rename
what it holds: a sharing violation. It says `held PATH` for each, and `gone PATH` for what is no longer there.

Runs on the system's own Python, which is where Debian puts Samba's bindings.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from samba import NTSTATUSError, credentials  # type: ignore[import-not-found,unused-ignore]
from samba.samba3 import libsmb_samba_internal as libsmb  # type: ignore[import-not-found,unused-ignore]
from samba.samba3 import param  # type: ignore[import-not-found,unused-ignore]

_READ = 0x1 | 0x80 | 0x20000  # data, attributes, the security descriptor
_READ_AND_WRITE_ARE_SHARED = 0x1 | 0x2
_OPEN_IF_THERE = 1


def main(server: str, share: str, user: str, password: str, seconds: str, *paths: str) -> None:
    """Hold all of them that long."""
    config = Path("/run/holder.conf")
    config.write_text("[global]\n" + "".join(f"{kind} directory = /run\n" for kind in ("lock", "state", "cache")))
    settings = param.get_context()
    settings.load(str(config))
    who = credentials.Credentials()
    who.guess(settings)
    who.set_domain("WORKGROUP")
    who.set_username(user)
    who.set_password(password)
    who.set_kerberos_state(credentials.DONT_USE_KERBEROS)
    connection = libsmb.Conn(server, share, settings, who)
    for path in paths:
        try:
            connection.create(
                path.replace("/", "\\"),
                DesiredAccess=_READ,
                ShareAccess=_READ_AND_WRITE_ARE_SHARED,
                CreateDisposition=_OPEN_IF_THERE,
            )
        except NTSTATUSError as error:
            print(f"gone {path} {error.args[1]}", flush=True)
        else:
            print(f"held {path}", flush=True)
    time.sleep(float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
