"""The command of every task of a storm: it writes when it began and when it still ran, and ends as it was told.

    python3 -I -S command.py LEDGER SECONDS CODE[,CODE...] COST

Law: the standard library alone. The file LEDGER/ID.ATTEMPT has a line for each moment (s since 1970) at which it ran,
and `end` as its last word. The n-th attempt ends with the n-th code, or the last one. COST (USD) is what it reports.

Touches: files, the clock, the environment.
"""

import os
import sys
import time


def main() -> int:
    """Run for so long; returns the exit code."""
    ledger, seconds, codes, cost = sys.argv[1:]
    task, attempt = os.environ["SPOOL_TASK_ID"], int(os.environ["SPOOL_ATTEMPT"])
    until = time.monotonic() + float(seconds)
    with open(f"{ledger}/{task}.{attempt}", "a", encoding="ascii", buffering=1) as file:
        file.write(f"{time.time():.3f}\n")
        while time.monotonic() < until:
            time.sleep(0.05)
            file.write(f"{time.time():.3f}\n")
        with open(os.environ["SPOOL_RESULT_FILE"], "w", encoding="ascii") as result:
            result.write(f'{{"cost_usd": {cost}}}')
        file.write("end\n")
    each = codes.split(",")
    return int(each[min(attempt, len(each)) - 1])


if __name__ == "__main__":
    sys.exit(main())
