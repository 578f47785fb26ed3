"""redaction: how many bytes of output a worker masks in a second, for logs of several kinds.

Law: one stream, in this process, in pieces of 1 MiB as a worker brings them; CPU time, since only that is spent.

Touches: the clock.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable

from spoold.rules.redaction.masking import Mask
from tools.benchmark.bench import Bench
from tools.benchmark.figure import Figure, Target

PIECE = 1 << 20
_WORDS = (
    "the worker started task building module with path /usr/lib/python3/dist-packages/foo.py INFO DEBUG error "
    "connection 127.0.0.1 commit took 12.5ms (ok) [done] 100% retry=3"
)
_SECRETS = {f"S{number}": f"k9-Zq7/Wm3+Xv5=T{number}b1" for number in range(5)}


def masks(bench: Bench) -> list[Figure]:
    """Return MB/s of each kind of log; one that has tokens in it is masked where they are."""
    seed, words = random.Random(1), _WORDS.split()
    plain = _piece(lambda: " ".join(seed.choices(words, k=12)))
    ids = _piece(
        lambda: f"request {uuid.UUID(int=seed.getrandbits(128))} took 12 ms and went well, as far as one can tell"
    )
    code = _piece(
        lambda: "".join(seed.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=76))
    )
    token = plain[:-100] + b" ghp_" + b"a1B2" * 9 + b" and so on\n"
    one = {"S0": _SECRETS["S0"]}
    kinds = {
        "plain text": (plain, Mask({}, tokens=True), Target(100)),
        "plain text, one secret": (plain, Mask(one, tokens=True), Target(100)),
        "plain text, five secrets": (plain, Mask(_SECRETS, tokens=True), None),
        "plain text, one pattern of the owner": (plain, Mask({}, tokens=True, patterns=(r"user=\S+",)), None),
        "a UUID in each line": (ids, Mask({}, tokens=True), None),
        "base64": (code, Mask({}, tokens=True), None),
        "a token in each MiB": (token, Mask({}, tokens=True), None),
    }
    rounds = max(3, *bench.scale.rounds.values())
    return [
        Figure("redaction", name, "MB/s", tuple(_rate(mask, text) for _ in range(rounds)), target)
        for name, (text, mask, target) in kinds.items()
    ]


def _piece(line: Callable[[], str]) -> bytes:
    text = b""
    while len(text) < PIECE:
        text += "".join(f"2026-11-25T09:11:12.123Z {line()}\n" for _ in range(1000)).encode()
    return text[:PIECE]


def _rate(mask: Mask, piece: bytes, pieces: int = 16) -> float:
    stream, began = mask.stream(), time.process_time()
    for _ in range(pieces):
        stream.feed(piece)
    stream.end()
    return pieces * len(piece) / (time.process_time() - began) / 1e6
