"""The same sandbox as bubblewrap's, in a scope of systemd, so that the kernel's limits hold for all of it together.

A scope and no service: a service is a child of systemd, which neither a supervisor's freeze nor its kill would reach.
So bubblewrap makes the walls here, too.

Law: pure.
"""

from __future__ import annotations

from dataclasses import replace

from spoold.agents.sandbox.policy import Sandbox, Wrapped

# Where a user's own systemd listens: systemd-run needs it, and the agent must not have it.
BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


def command(sandbox: Sandbox, wrapped: Wrapped, tool: str, uid: int, bus: dict[str, str]) -> Wrapped:
    """Return a wrapped command in a scope; tool: systemd-run; bus: the variables of BUS that are set here."""
    line = [tool, *(["--user"] if uid else []), "--scope", "--quiet", "--collect"]
    if sandbox.memory_mb is not None:
        line += ["-p", f"MemoryMax={sandbox.memory_mb}M", "-p", "MemorySwapMax=0"]
    if sandbox.processes is not None:
        line += ["-p", f"TasksMax={sandbox.processes}"]
    at = wrapped.argv.index("--")
    cleared = [word for name in bus for word in ("--unsetenv", name)]
    argv = (*line, "--", *wrapped.argv[:at], *cleared, *wrapped.argv[at:])
    return replace(wrapped, argv=argv, env={**wrapped.env, **bus})
