"""Which claimed tasks have lent their units, as the tree says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spoold.protocol.names import key
from spoold.protocol.request import Request, Verb, loan_mark, parse_request
from tests.sim.server import Server


def loans(server: Server, *verbs: Verb) -> Iterator[Request]:
    """Yield the loans that stand under these verbs."""
    for name in server.fs.list("control"):
        request = parse_request(name)
        if request is not None and request.verb in verbs:
            yield request


def lent(server: Server, tokens: Mapping[str, str]) -> dict[str, Verb]:
    """Return the keys of the tasks whose units a leader has lent. tokens: the place of each task by its key."""
    found = {}
    for request in loans(server, Verb.LENT, Verb.REGAIN):
        room, _, rest = tokens.get(key(request.target), "").partition("/")
        if room == "claimed" and loan_mark(rest.partition("/")[0]) == request.unique.partition("-")[0]:
            found[key(request.target)] = request.verb
    return found
