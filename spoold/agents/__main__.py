"""`python -m spoold.agents`: the handler of every profile; with `check` the trial of one.

Law: nothing but the start; `attempt.one_attempt` and `configuration.trial` do the work.

Touches: processes, the environment.
"""

import os
import sys

if sys.argv[1:] == ["check"]:
    from spoold.agents.configuration.trial import check

    sys.exit(check(os.environ))

from spoold.agents.attempt.one_attempt import main

sys.exit(main())
