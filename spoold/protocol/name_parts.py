"""Parts of a name, cut out without parsing the rest, for directories with up to a million names.

Law: the part is only valid if the parser in `names` accepts the name; `is_task` checks that.
"""

from __future__ import annotations

from spoold.protocol.names import TASK


def is_task(name: str) -> bool:
    """Whether it is a name in waiting/, ready/ or claimed/."""
    return TASK.fullmatch(name) is not None


def key_in(name: str) -> str:
    """The key of the id (see `names.key`). If the name is not a task's, the result means nothing."""
    return name.split(".", 2)[-1].rsplit(".", 2)[0].lower()


def ended_key_in(name: str) -> str:
    """The key of the id in a name of completed/, failed/, results/ or logs/."""
    return name.rsplit(".", 3)[0].lower()


def rank_in(name: str) -> int:
    """The rank."""
    return int(name[:4])


def order_in(name: str) -> str:
    """The order."""
    return name.split(".", 2)[1]


def age_in(name: str) -> str:
    """The part that sorts by age, and then by id: all but the rank."""
    return name[5:]


def is_conditional(name: str) -> bool:
    """Whether the name says that the content has conditions."""
    return name[-6] == "d"


def is_plain(name: str) -> bool:
    """Whether the task has neither a backoff nor conditions, so that it only waits for its turn."""
    return name[-6] != "d" and "r" not in name.rsplit(".", 2)[1]
