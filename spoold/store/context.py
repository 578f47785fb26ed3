"""What the tasks of a batch share: entries that are published, listed and read.

Law: an entry is published whole and never replaced. Whether it counts is decided by the listing alone.
"""

from __future__ import annotations

from spoold.protocol import layout
from spoold.protocol.context_entry import BYTES_MAX, Entry, parse_entry
from spoold.store.shelf import Shelf, file_max

# The owner of an entry is its batch.
ENTRIES = Shelf(layout.CONTEXT, parse_entry, Entry, file_max(BYTES_MAX))
