"""One run in a sandbox: tried out first, and with its way out for as long as it lasts.

Law: nobody enters a sandbox that did not hold when it was tried out.

Touches: files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from spoold.agents.sandbox.policy import NoSandbox, Sandbox, Scene, Wrapped
from spoold.agents.sandbox.probing import probe
from spoold.agents.sandbox.proxy import Proxy
from spoold.agents.sandbox.wrapping import allowed_calls, wrap
from spoold.system.remover import remove


@dataclass(frozen=True, slots=True)
class Entered:
    """A sandbox that holds, ready for the commands of one attempt."""

    sandbox: Sandbox
    scene: Scene
    proxy: Proxy | None = None

    def wrap(self, argv: Sequence[str]) -> Wrapped:
        """Return a command in it. Errors: NoSandbox."""
        return wrap(self.sandbox, argv, self.scene)

    @property
    def refused(self) -> tuple[str, ...]:
        """The hosts that its proxy did not let through, or did not reach."""
        return () if self.proxy is None else self.proxy.refused


@contextmanager
def entered(sandbox: Sandbox, scene: Scene) -> Iterator[Entered]:
    """Try a sandbox out, open its way out, and close that at the end. Errors: NoSandbox."""
    verdict = probe(sandbox)
    if not verdict.ok:
        raise NoSandbox(f"the sandbox {sandbox.kind} is not safe here: {verdict.words}", "the task was not started")
    with ExitStack() as stack:
        if sandbox.kind == "podman":
            folder = tempfile.mkdtemp(prefix="spoold-sandbox-")
            stack.callback(remove, folder)
            scene = replace(scene, calls=allowed_calls(sandbox, folder))
        if sandbox.network != "proxy":
            yield Entered(sandbox, scene)
            return
        try:
            proxy = stack.enter_context(Proxy(sandbox.hosts))
        except OSError as error:
            raise NoSandbox(f"the proxy of the sandbox cannot listen: {error}", "make room in TMPDIR") from error
        yield Entered(sandbox, replace(scene, way_out=proxy.path), proxy)
