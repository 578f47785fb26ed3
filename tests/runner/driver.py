"""A worker to be killed: starts what standard input describes, says the supervisors' pids, and goes on."""

import json
import sys
import time

from spoold.runner.job import Command, Job
from spoold.runner.job_runner import Runner, become_subreaper


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    if plan["subreaper"]:
        become_subreaper()
    runner = Runner(4, where=plan["group"])
    for number, script in enumerate(plan["scripts"]):
        command = Command(("/bin/sh", "-c", script))
        output = f"{plan['where']}/driver{number}.log"
        runner.start(Job(f"task{number}.1", command, plan["env"], "/", output, lost_share=plan["lost_share"]))
    while True:
        if plan["lease_s"] is not None:
            runner.extend(time.clock_gettime(time.CLOCK_BOOTTIME) + plan["lease_s"])
        runner.wait(0.1)
        pids = [slot.process.pid for slot in runner._live]
        told = [[ending.key, ending.kind, ending.message] for ending in runner.poll()]
        print(json.dumps({"supervisors": pids, "endings": told}), flush=True)


if __name__ == "__main__":
    main()
