"""`python -m spoold.agents`: the handler of every profile.

Law: nothing but the start; `running` does the work.

Touches: processes.
"""

import sys

from spoold.agents.running import main

sys.exit(main())
