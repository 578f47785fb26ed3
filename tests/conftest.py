"""What every test stands on: the same environment whoever runs it, and hypothesis without chance.

No node in a test contains a fault of spoold, unless the test itself has injected it: a bug must stay loud here.
"""

import os
import signal
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


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with strictly():
        yield
