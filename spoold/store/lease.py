"""The tokens in master/, as they are now. Foreign files are passed over."""

from __future__ import annotations

from spoold.protocol import layout
from spoold.protocol.names import LeaseName, parse_lease
from spoold.system.filesystem import FileSystem


def list_leases(fs: FileSystem) -> list[LeaseName]:
    """All of them; there should be one. Errors: OSError."""
    return [lease for lease in map(parse_lease, fs.list(layout.MASTER)) if lease is not None]


def read_lease(fs: FileSystem) -> LeaseName | None:
    """The one that counts; None where there is none. Errors: OSError."""
    return max(list_leases(fs), default=None)
