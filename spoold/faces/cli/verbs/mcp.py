"""`spool mcp`: this spool for coding agents, over the Model Context Protocol.

Law: over stdio, stdout belongs to the protocol: whatever this verb says is on stderr. The SDK is imported only
to serve.

Touches: files, the terminal.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from spoold.faces.cli.terminal import group, output
from spoold.faces.cli.terminal.global_options import session

if TYPE_CHECKING:
    from spoold.faces.mcp.session import Session

EPILOG = """Example: spool mcp --print-config claude > .mcp.json

Example: spool mcp --http --port 8377

Example: spool mcp --role operator --spawn 4 --worker-config worker.toml"""
PORT = 8377


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("mcp", epilog=EPILOG)(mcp)


def mcp(
    ctx: typer.Context,
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="agent: only the tasks below it. operator: all tasks, workers, stops, approve; not in a task.",
        ),
    ] = "agent",
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP on 127.0.0.1, with a token; else stdio.")] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="Where; 0 takes any port that is free.")
    ] = PORT,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            show_default=False,
            help="The file with the token, made if it is not there; else ~/.local/state/spoold/mcp.token.",
        ),
    ] = None,
    spawn: Annotated[
        int,
        typer.Option(
            "--spawn", min=0, max=200, metavar="N", help="How many workers an operator may start on this machine."
        ),
    ] = 0,
    worker_config: Annotated[
        str | None,
        typer.Option(
            "--worker-config", metavar="FILE", show_default=False, help="Their configuration: what they may run."
        ),
    ] = None,
    print_config: Annotated[
        str | None,
        typer.Option(
            "--print-config",
            metavar="CLIENT",
            show_default=False,
            help="Print what to paste into claude, codex, opencode, qwen or gemini, and serve nothing.",
        ),
    ] = None,
) -> None:
    """Serve this spool to coding agents, over the Model Context Protocol.

    A client starts it by itself and speaks to it on stdin and stdout. With --http it stays, and prints its URL. An
    agent reaches the tasks that it submitted, and theirs; within a task every caller is an agent. It needs the extra
    `mcp`.
    """
    config = os.path.abspath(worker_config) if worker_config else ""
    if print_config is not None:
        said = {"role": "" if role == "agent" else role, "spawn": str(spawn or ""), "worker-config": config}
        _print(ctx, print_config, said, port if http else None)
        return
    try:
        from spoold.faces.mcp import server
        from spoold.faces.mcp.session import Session
    except ImportError as error:
        raise group.missing("spool mcp", "mcp", error) from error
    with session(ctx).spool() as spool:
        served = Session(spool, role, spawn=spawn, worker_config=config)
        with closing(served.crew):
            _serve(served, port, token_file) if http else server.run_on_stdio(served)


def _serve(served: Session, port: int, token_file: str | None) -> None:
    from spoold.faces.mcp import http_transport

    path = os.path.abspath(token_file or http_transport.token_file())
    secret = http_transport.read_or_make(path)

    def say(url: str) -> None:
        output.remark(f"the token is in {path}; clients send `Authorization: Bearer TOKEN`")
        output.print_line(url)
        sys.stdout.flush()

    http_transport.run(served, port, secret, say)


def _print(ctx: typer.Context, client: str, said: dict[str, str], port: int | None) -> None:
    from spoold.faces.mcp.clients import TOKEN_VARIABLE, Server, configuration

    beside = os.path.join(os.path.dirname(sys.executable), "spool")
    program = beside if os.access(beside, os.X_OK) else shutil.which("spool") or "spool"
    more = [word for name, value in said.items() if value for word in (f"--{name}", value)]
    command = [program, "--spool", session(ctx).directory(), "mcp", *more]
    url = "" if port is None else f"http://127.0.0.1:{port}/mcp"
    place, text = configuration(client, Server(command, url))
    output.print_exactly(text)
    output.remark(f"for {client}: put it into {place}")
    if url:
        output.remark(f"and set {TOKEN_VARIABLE} to the token of `spool mcp --http`")
