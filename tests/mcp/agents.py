"""An agent in a task: a program with a client of its own, whose server is started with few variables, as clients do.

What the program's function returns is the task's output. The names `call` and `refused` are those of `Caller`.
"""

from __future__ import annotations

import sys
import textwrap
from typing import Any

from tests.e2e.pool import Pool

PROGRAM = """
import asyncio, json, os, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters

OPTIONS = {options!r}

async def main():
    env = dict(os.environ) if {everything!r} else None
    words = ["-m", "spoold", "--spool", os.environ["SPOOL_ROOT"], "mcp", *OPTIONS]
    async with Client(StdioServerParameters(command=sys.executable, args=words, env=env)) as client:
        async def call(name, **arguments):
            found = await client.call_tool(name, arguments)
            assert not found.is_error, found.content[0].text
            return found.structured_content

        async def refused(name, **arguments):
            found = await client.call_tool(name, arguments)
            assert found.is_error, found.structured_content
            return found.content[0].text

{body}

async def save():
    with open(os.environ["SPOOL_RESULT_FILE"] + ".draft", "w") as file:
        json.dump(await main(), file)
    os.rename(os.environ["SPOOL_RESULT_FILE"] + ".draft", os.environ["SPOOL_RESULT_FILE"])

asyncio.run(save())
"""


def command(body: str, *options: str, everything: bool = False) -> list[str]:
    """Return the command of a task for an agent. body: what it does; everything: its server gets all variables."""
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    return [sys.executable, "-c", PROGRAM.format(options=options, everything=everything, body=inner)]


def work(pool: Pool, task_id: str, body: str, *options: str, everything: bool = False, **fields: Any) -> str:
    """Submit a task for an agent; returns its id."""
    more = {"max_retries": 0, "env": {"PYTHONPATH": ""}, **fields}
    return pool.submit(task_id, command(body, *options, everything=everything), **more)
