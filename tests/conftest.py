"""What every test stands on: the same environment whoever runs it, and hypothesis without chance.

No node in a test contains a fault of spoold, unless the test itself has injected it: a bug must stay loud here.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.injected import strictly

# A developer's own spool, service manager or terminal must not change what a test sees.
for _name in list(os.environ):
    if _name.startswith(("SPOOL_", "WATCHDOG_")) or _name in {
        "NOTIFY_SOCKET",
        "COLUMNS",
        "FORCE_COLOR",
        "GITHUB_ACTIONS",
        "PY_COLORS",
    }:
        del os.environ[_name]

# A gate that fails by chance teaches people to run it again. `--hypothesis-profile=search` looks for new
# examples.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile("gate")

# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# In continuous integration each commit plays one of so many parts of what is marked `turns`: one law, in many places.
PARTS = 3


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what another commit plays: pytest counts it as deselected."""
    if "SPOOLD_TURN" not in os.environ:
        return
    turn, seen, left = int(os.environ["SPOOLD_TURN"]), Counter[str](), list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("turns"):
            name = item.nodeid.partition("[")[0]
            if (seen[name] + turn) % PARTS:
                left.append(item)
            seen[name] += 1
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with strictly():
        yield
