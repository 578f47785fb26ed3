"""A worker's part in another interpreter: calls one function, with this interpreter's own runner, and prints all."""

import json
import sys


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    # Ours, for this process only: what runs the call must not get it from here.
    sys.path[:] = [*sys.path, *plan["ours"]]
    from spoold.runner.job import Call, Ending, Job
    from spoold.runner.job_runner import Runner

    runner = Runner(1, environ=plan["env"], **plan["options"])
    call = Call(plan["target"], (plan["modules"],), {}, (plan["where"],))
    runner.start(Job("task1.1", call, plan["env"], "/", f"{plan['where']}/output"))
    endings: list[Ending] = []
    while not endings:
        runner.wait(1.0)
        endings = runner.poll()
    runner.close(0)
    print(json.dumps([endings[0].kind, endings[0].message, endings[0].value]))


if __name__ == "__main__":
    main()
