"""A budget of a dollar and tasks of ten cents, with a leader that is killed and an archive that takes everything."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.pool import SETTINGS, Pool, wait_for

QUICKLY_ARCHIVED = SETTINGS + "\n[retention]\ncompleted_s = 0.2\n\n[budgets.nightly]\ncost_usd = 1.00\n"
COSTS = 'sleep 0.2; echo \'{"cost_usd": 0.10}\' > "$SPOOL_RESULT_FILE"'


def test_ten_run_and_the_eleventh_waits_whoever_dies(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(QUICKLY_ARCHIVED)
    first = pool.master("one")
    pool.worker("w", slots=2)
    pool.ready("w")
    for number in range(12):
        pool.submit(f"t{number:02}", COSTS, budgets=["nightly"], budget={"cost_usd": 0.10})

    def ended() -> int:
        archived = [file for file in pool.files("archive") if file.endswith(".completed.json")]
        return len(archived) + len(pool.listing("completed"))

    wait_for(lambda: ended() >= 3, "some have ended")
    first.kill()
    pool.master("two")
    wait_for(lambda: ended() == 10 and not pool.listing("completed"), "ten have ended and are archived")
    spent = wait_for(
        lambda: (said := pool.json("budget", "nightly")["nightly"]["periods"]) and said[0]["waits"] and said[0],
        "the next one is held, and the leader says so",
    )
    assert (spent["spent"]["cost_usd"], spent["reserved"]["cost_usd"], spent["waits"]) == (1, 0, "t10")
    assert "budget nightly: 1.00 of 1.00 USD are spent or reserved" in " ".join(pool.cli("explain", "t10").split())
    assert ended() == 10
    pool.cli("budget", "raise", "nightly", "--cost-usd", "0.10")
    wait_for(lambda: ended() == 11, "raised by a tenth, one more runs")
    pool.cli("budget", "raise", "nightly", "--cost-usd", "5")
    wait_for(lambda: ended() == 12, "raised, all of it goes on")
    pool.fsck()


def test_an_attempt_that_reports_more_than_its_budget_is_stopped(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS)
    pool.master()
    pool.worker("w")
    pool.ready("w")
    report = 'echo \'{"cost_usd": 3}\' > "$SPOOL_PROGRESS_FILE"; sleep 600'
    pool.submit("dear", report, budget={"cost_usd": 0.50})
    wait_for(lambda: pool.listing("failed"), "it was stopped")
    said = pool.json("result", "dear", code=1)
    assert (said["error"]["code"], said["attempt"], said["cost_usd"]) == ("BUDGET_EXCEEDED", 1, 3)
