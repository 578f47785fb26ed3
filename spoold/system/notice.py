"""The callback of a watcher, for a change in a directory.

Law: a type alone; it is called in a thread of the watcher, is quick and never raises.
"""

from __future__ import annotations

from collections.abc import Callable

# Arguments: whether a directory came or went; the watch that has ended, None for any other event. Returns whether
# that was news: False while the last notice is unread.
Notice = Callable[[bool, object | None], bool]
