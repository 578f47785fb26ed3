"""The server on stdin and stdout.

Law: stdout has messages of the protocol and nothing else. The server ends when its client closes stdin.
"""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from spoold.faces.mcp.server import serve
from spoold.faces.mcp.session import Session


def run(session: Session) -> None:
    """Serve until the client closes stdin."""
    anyio.run(_run, session)


async def _run(session: Session) -> None:
    server = serve(session)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
