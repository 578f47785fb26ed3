"""The stream that says that something changed.

Law: one thread waits for the view, for however many streams; it wakes them once a second at most. A stream says the
version and nothing else. Their number is bounded, and one whose reader does not read is ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from spoold.client.view import View, Watch

STREAMS_MOST = 64
EVERY_S, BEAT_S, WAIT_S = 1.0, 15.0, 1.0
# A reader that takes nothing for so long is gone, whatever its machine says.
SEND_S = 30.0


class Updates:
    """Tells streams of new versions of the view."""

    def __init__(self, view: View, watch: Watch, *, every_s: float = EVERY_S, beat_s: float = BEAT_S) -> None:
        self._view, self._watch = view, watch
        self._every_s, self._beat_s = every_s, beat_s
        self._changed = asyncio.Event()
        self.streams = 0
        self.closing = False

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Listen to the view while this is open; in the end, end all streams."""
        # From here on, and not from when the task begins: a stream may have told this version by then.
        task = asyncio.create_task(self._listen(self._view.version))
        try:
            yield
        finally:
            self.close()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def close(self) -> None:
        """End all streams."""
        self.closing = True
        self._changed.set()

    async def _listen(self, known: int) -> None:
        while not self.closing:
            present = await asyncio.to_thread(self._watch.wait, known, WAIT_S)
            if present != known:
                known = present
                self._changed.set()
                self._changed = asyncio.Event()
                await asyncio.sleep(self._every_s)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the version, again when it has changed, and a comment when nothing does."""
        known = -1
        while not self.closing:
            changed = self._changed
            if self._view.version != known:
                known = self._view.version
                yield f"data: {known}\n\n".encode()
            try:
                await asyncio.wait_for(changed.wait(), self._beat_s)
            except TimeoutError:
                yield b": here\n\n"

    def endpoint(self, request: Request) -> Response:
        """Answer with a stream."""
        return _Stream(self)


class _Stream(Response):
    """A stream that ends when its reader leaves or does not read."""

    def __init__(self, updates: Updates) -> None:
        super().__init__(None, 200, {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._updates = updates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until either side ends. Counted here, on the loop: endpoints are asked by many threads at once."""
        if self._updates.streams >= STREAMS_MOST:
            full = Response("too many pages are open.\n", 503, {"Retry-After": "30"}, "text/plain")
            await full(scope, receive, send)
            return
        self._updates.streams += 1
        leaves = asyncio.create_task(_left(receive))
        writes = asyncio.create_task(self._write(send))
        try:
            await asyncio.wait((leaves, writes), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._updates.streams -= 1
            for task in (leaves, writes):
                task.cancel()
                with suppress(asyncio.CancelledError, TimeoutError, OSError):
                    await task

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for line in self._updates.lines():
            async with asyncio.timeout(SEND_S):
                await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
