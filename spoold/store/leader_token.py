"""The tokens in master/, as they are now.

Law: there should be one, and of several the highest counts. A token with the highest possible number is none, since
no master could lead after it. Other files are passed over.
"""

from __future__ import annotations

from spoold.protocol import layout
from spoold.protocol.names import BEAT_MAX, EPOCH_MAX, LeaseName, parse_lease
from spoold.system.filesystem import FileSystem


def list_leases(fs: FileSystem) -> list[LeaseName]:
    """All of them; there should be one. Errors: OSError."""
    return [lease for lease in map(parse_token, fs.list(layout.MASTER)) if lease is not None]


def parse_token(name: str) -> LeaseName | None:
    """A name in master/, or None. A token with the highest number is none: no master could lead after it."""
    lease = parse_lease(name)
    return lease if lease is not None and lease.epoch < EPOCH_MAX and lease.beat < BEAT_MAX else None


def read_lease(fs: FileSystem) -> LeaseName | None:
    """The token that counts; None if there is none. Errors: OSError."""
    return max(list_leases(fs), default=None)
