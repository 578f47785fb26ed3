"""`python -m spoold.agents`: the handler of every profile; with `check` the trial of one.

Law: nothing but the start; `running` and `checking` do the work.

Touches: processes, the environment.
"""

import os
import sys

if sys.argv[1:] == ["check"]:
    from spoold.agents.checking import check

    sys.exit(check(os.environ))

from spoold.agents.running import main

sys.exit(main())
