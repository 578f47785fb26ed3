"""What a watcher calls when something came into a directory.

Law: a type alone; it is called in a thread of the watcher, is quick and never raises.
"""

from __future__ import annotations

from collections.abc import Callable

# Arguments: whether a directory came or went; the watch that is no more, None for any other event. It returns whether
# that was news: False while nobody has read the notice before.
Notice = Callable[[bool, object | None], bool]
