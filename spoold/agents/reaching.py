"""Whether the sandbox of a profile lets its agent ask its model, and if not, what would.

Law: pure. A known agent asks its model over the network. So a sandbox without one, or whose list lacks the model's
host, is named before the first task, and in the error of an attempt that got no answer. A generic agent may need no
network: its sandbox is named only in an error that speaks of a connection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from spoold.agents import confined
from spoold.agents.adapters import finding
from spoold.agents.adapters.faults import passes
from spoold.agents.sandbox.hosts import UNLISTED, entry, is_host, lets_through, split

_CONNECTION = re.compile(
    r"connection|connect to|network|ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|fetch failed|getaddrinfo|resolve host|proxy",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Unreached:
    """What keeps an agent from its model. sure: nobody has said that there shall be no network; fix: for it."""

    problem: str
    fix: str
    sure: bool

    @property
    def words(self) -> str:
        """Both as one sentence."""
        return f"{self.problem}; fix: {self.fix}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What an attempt without an answer saw. message: its error; refused: by the proxy, in words."""

    message: str
    refused: Sequence[str] = ()


def unreached(cli: str, model: str, said: str | Mapping[str, Any], env: Mapping[str, str]) -> Unreached | None:
    """Return why the agent cannot ask its model; None where it can, or where that is not known.

    said: the sandbox of the profile; env: the variables of its attempts.
    """
    config, host = confined.read(said, "the sandbox of the profile"), host_of(cli, model, env)
    asked = config.asked()
    if cli == finding.GENERIC or asked.network == "host":
        return None
    if asked.network == "proxy":
        if not host or lets_through(*split(host), map(entry, asked.hosts)):
            return None
        problem = f"{cli} asks its model at {host}, and the sandbox lets it reach only {', '.join(asked.hosts)}"
        return Unreached(problem, f'add "{host}" to hosts of the sandbox', sure=False)
    problem = f"{cli} asks its model over the network, and the sandbox {asked.kind} has none"
    return Unreached(problem, _way_out(asked.kind, host), sure=config.network is None)


def may_pass(cli: str, model: str, said: str | Mapping[str, Any], env: Mapping[str, str], seen: Seen) -> bool:
    """Whether what kept a known agent from its model may pass by itself: it is no list of its own sandbox."""
    if cli == finding.GENERIC or not passes(seen.message) or unreached(cli, model, said, env) is not None:
        return False
    return bool(host_of(cli, model, env)) or not any(UNLISTED in one for one in seen.refused)


def host_of(cli: str, model: str, env: Mapping[str, str]) -> str:
    """Return where an agent asks its model, as `hosts` of a sandbox names it; '' where that is not known."""
    adapter = finding.make(cli)
    if address := env.get(adapter.address, ""):
        try:
            found = urlsplit(address)
            port = found.port or (80 if found.scheme == "http" else 443)
        except ValueError:
            return ""
        name = f"[{found.hostname}]" if ":" in (found.hostname or "") else found.hostname
        if not name or not is_host(name):
            return ""
        return name if port == 443 else f"{name}:{port}"
    return adapter.asks_at.get(model.partition("/")[0] if "/" in model else "", adapter.asks_at.get("", ""))


def hint(cli: str, model: str, said: str | Mapping[str, Any], env: Mapping[str, str], error: str) -> str:
    """Return what an attempt that had no answer of its model is told of its sandbox; '' where that is not to blame.

    error: how it ended, in its own words.
    """
    if (found := unreached(cli, model, said, env)) is not None:
        return f" ({found.words})"
    asked = confined.read(said, "the sandbox of the profile").asked()
    if asked.network == "host" or not _CONNECTION.search(error):
        return ""
    if asked.network == "proxy":
        return f" (the sandbox {asked.kind} lets it reach only {', '.join(asked.hosts)}: see hosts of the profile)"
    return f" (the sandbox {asked.kind} has no network; if it needs one: {_way_out(asked.kind, '')})"


def _way_out(kind: str, host: str) -> str:
    if kind == "podman":
        return 'set network = "host" in the sandbox of the profile'
    shown = host or "HOST OF ITS MODEL"
    return f'sandbox = {{kind = "{kind}", network = "proxy", hosts = ["{shown}"]}} in the profile'
