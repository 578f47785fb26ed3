"""`netlab test-doctor`: what the doctor says of each protocol, and of mounts that are made unsafe on purpose.

Two laptops ask at once. Law: expected is what was known of the mount beforehand, from what the kernel's documentation
or trials without spoold say of it; the doctor is right when all machines give that verdict, and the advice names the
option that mends it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.laboratory.channel import Done
from tools.laboratory.lab import SPOOL_COMMAND, Lab
from tools.laboratory.protocols import PROTOCOLS, SHARE

WITHIN_S = 420
BOUND_S = 3600
_COLUMNS = "{:<8} {:<22} {:<20} {:<7} {:>5}  {}"


@dataclass(frozen=True, slots=True)
class Case:
    """One way to mount: the options beside the protocol's own, the verdict that is right, a word of the mend."""

    protocol: str
    options: str
    verdict: str
    mend: str = ""


CASES = (
    Case("nfs4.2", "", "safe with rename"),
    Case("nfs4.2", "soft", "not safe", "hard"),
    Case("nfs4.2", "nocto", "not safe", "without nocto"),
    Case("nfs4.1", "", "safe with rename"),
    Case("nfs4.0", "", "safe with rename"),
    Case("nfs3", "", "safe with rename", "vers=4.2"),
    Case("nfs3", "nolock", "safe with rename", "without nolock"),
    Case("smb3", "", "safe with rename", "nolease"),
    Case("smb3", "nolease", "safe with rename"),
    Case("smb3", "cache=loose", "not safe", "cache=strict"),
    Case("smb3", "nobrl", "safe with rename", "without nobrl"),
)


def carry_out(name: str, protocols: list[str]) -> bool:
    """Ask the doctor about all cases of these protocols, a line for each; whether all answers were right."""
    print(_COLUMNS.format("protocol", "more options", "verdict", "", "s", "why"), flush=True)
    passed = failed = 0
    for protocol in protocols:
        lab = Lab(f"{name}-{protocol}", PROTOCOLS[protocol], 2, bound_s=BOUND_S)
        lab.up()
        try:
            for case in (case for case in CASES if case.protocol == protocol):
                right = _ask(lab, case)
                passed, failed = passed + right, failed + (not right)
        finally:
            lab.down()
    print(f"{passed} passed, {failed} failed", flush=True)
    return passed > 0 and not failed


def _ask(lab: Lab, case: Case) -> bool:
    began = time.monotonic()
    for laptop in lab.laptops:
        lab.remount(laptop, case.options)
    answers: dict[str, Done] = {}

    def ask(laptop: str) -> None:
        words = (SPOOL_COMMAND, "doctor", SHARE, "--with", "2", "--wait", "180s", "--files", "200", "--json")
        answers[laptop] = lab.on(laptop).run(*words, timeout=WITHIN_S, check=False)

    threads = [threading.Thread(target=ask, args=(laptop,)) for laptop in lab.laptops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = [problem for laptop in lab.laptops for problem in problems(case, answers.get(laptop))]
    reports = [report for answer in answers.values() if (report := _report(answer)) is not None]
    verdict = " / ".join(sorted({report["verdict"] for report in reports})) or "none"
    why = "; ".join(dict.fromkeys(wrong)) or (reports[0]["line"] if reports else "")
    seconds, judged = f"{time.monotonic() - began:.0f}", "FAILED" if wrong else "ok"
    print(_COLUMNS.format(case.protocol, case.options or "-", verdict, judged, seconds, why), flush=True)
    return not wrong


def problems(case: Case, answer: Done | None) -> Iterator[str]:
    """What is wrong with one machine's answer."""
    report = _report(answer) if answer is not None else None
    if answer is None or report is None:
        yield f"no report: {(answer.err if answer is not None else 'the laptop did not answer').strip()[-300:]}"
        return
    if report["verdict"] != case.verdict:
        yield f"it should be {case.verdict!r}, but: {report['reason']}"
    if answer.code != (1 if case.verdict == "not safe" else 0):
        yield f"exit code {answer.code}"
    if report["machines"] != 2:
        yield f"{report['machines']} machines took part"
    if not any(case.mend in remark["mend"] for remark in report["remarks"]) and case.mend:
        yield f"nothing advises {case.mend!r}"


def _report(answer: Done) -> dict[str, Any] | None:
    try:
        found = json.loads(answer.out)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
