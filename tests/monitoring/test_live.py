"""Goal: each query of a panel or an alert returns data from a live spool that a real Prometheus scrapes.

Method: a pool with tasks that end, fail, run, wait and are held, `spool metrics --port`, and Debian's Prometheus with
the shipped rules, all on loopback. A worker is killed and a budget is spent: their alerts must fire.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.pool import SETTINGS, Pool, wait_for
from tests.monitoring.programs import MONITORING, Prometheus, program, promtool
from tests.monitoring.test_files import ALERTS, RULES, SERIES, panels, rules

POOL = f"""{SETTINGS}
[limits.api]
max = 1

[budgets.daily]
per = "day"
cost_usd = 1.0

[types.paid]
budgets = ["daily"]
"""
COSTS = 'echo \'{"cost_usd": 0.95, "tokens_used": 1200}\' > "$SPOOL_RESULT_FILE"'
SCRAPES = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}/rules.yml", "{rules}/alerts.yml"]
scrape_configs:
  - job_name: spoold
    static_configs: [{{targets: ["{target}"]}}]
"""
# What stands for a variable of Grafana.
VARIABLES = {"$instance": ".*", "$__rate_interval": "1m"}
_numbers = itertools.count()


@dataclass(frozen=True)
class Stage:
    """The pool, where its metrics are, and the Prometheus that scrapes them."""

    pool: Pool
    url: str
    prometheus: Prometheus

    def returns(self, query: str) -> list[object]:
        """The rows of a query. One more attempt fails before it: rates need attempts that end while they look."""
        self.pool.submit(f"bad{next(_numbers)}", "false", max_retries=0)
        return self.prometheus.query(query)


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    top, binary = tmp_path_factory.mktemp("monitoring"), program("prometheus")
    with Pool(top / "spool", top / "desk", POOL) as pool:
        pool.master()
        pool.worker("small")
        pool.worker("large", "--labels", "large", slots=1)
        pool.worker("doomed")
        pool.ready("small", "large", "doomed")
        pool.spawn("metrics", "metrics", "--port", "0")
        url = wait_for(lambda: pool.path("metrics.log").read_text().strip(), "metrics are served")
        port, log = free_port(), pool.path("prometheus.log")
        config = top / "prometheus.yml"
        config.write_text(SCRAPES.format(rules=MONITORING, target=url.split("/")[2]))
        where = [f"--storage.tsdb.path={top / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
        with log.open("wb") as sink:
            running = subprocess.Popen(
                [binary, f"--config.file={config}", *where], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        try:
            prometheus = Prometheus(f"http://127.0.0.1:{port}")
            wait_for(prometheus.ready, "Prometheus is ready")
            play(pool)
            yield Stage(pool, url, prometheus)
        finally:
            running.terminate()
            running.wait(20)
            pool.run("cancel", "runs")  # a worker that is asked to leave waits for its tasks


def play(pool: Pool) -> None:
    """Have tasks of all kinds, and a worker that died."""
    pool.submit("fine", "true", type="paid")
    pool.submit("dear", COSTS, type="paid")
    pool.finish("fine")
    pool.finish("dear")
    large = {"labels": ["large"]}
    pool.submit("runs", f"sleep {pool.mark}", requires=large, uses=["api"])
    pool.claimed("runs")
    pool.submit("next", "true", requires=large)
    pool.submit("later", "true", dependencies=["next"])
    pool.submit("held", "true", hold="until people agree")
    pool.drop("nobody.json", {"id": "nobody", "type": "nobody"})
    next(daemon for daemon in pool.daemons if daemon.label == "doomed").kill()


def filled(query: str) -> str:
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    assert "$" not in query, query
    return query


def scrape(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())


def test_promtool_finds_nothing_to_say_about_the_page(stage: Stage) -> None:
    assert promtool("check", "metrics", stdin=scrape(stage.url)).strip() == ""
    assert promtool("check", "metrics", stdin=stage.pool.cli("metrics")).strip() == ""


@pytest.mark.parametrize(("title", "query"), list(panels()))
def test_every_query_of_every_panel_returns_data(stage: Stage, title: str, query: str) -> None:
    wait_for(lambda: stage.returns(filled(query)), f"{title}: {query}")


@pytest.mark.parametrize("rule", rules(RULES), ids=lambda rule: rule["record"])
def test_every_rule_records_something(stage: Stage, rule: dict[str, str]) -> None:
    wait_for(lambda: stage.returns(rule["record"]), rule["record"])


@pytest.mark.parametrize("rule", rules(ALERTS), ids=lambda rule: rule["alert"])
def test_every_alert_is_evaluated_over_series_that_are_there(stage: Stage, rule: dict[str, str]) -> None:
    stage.prometheus.query(rule["expr"])
    for name in set(SERIES.findall(rule["expr"])):
        wait_for(lambda name=name: stage.returns(name), name)  # type: ignore[misc]


def test_no_rule_fails_and_no_twin_stands(stage: Stage) -> None:
    wait_for(lambda: stage.returns("instance:spoold_failed_attempts:ratio_rate30m"), "the rules were evaluated")
    for group in stage.prometheus.get("rules")["groups"]:
        for rule in group["rules"]:
            assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule["name"]
    wait_for(lambda: not any(name.endswith("Missing") for name in stage.prometheus.alerts()), "no twin stands")


def test_a_dead_worker_and_a_spent_budget_fire_and_a_task_without_a_worker_is_seen(stage: Stage) -> None:
    for name, state in (("SpooldNodeDead", "firing"), ("SpooldBudget", "firing"), ("SpooldUnserved", "pending")):
        wait_for(lambda name=name, state=state: stage.prometheus.alerts().get(name) == state, name)  # type: ignore[misc]


def test_the_figures_are_those_of_the_status(stage: Stage) -> None:
    def same() -> bool:
        said = stage.pool.json("status")["tasks"]
        rows = stage.prometheus.query("spoold_tasks")
        return bool({row["metric"]["state"]: int(row["value"][1]) for row in rows} == said)

    wait_for(same, "Prometheus has the counts of spool status")
    waits = stage.prometheus.query("sum(spoold_task_wait_seconds_count)")
    assert float(waits[0]["value"][1]) >= 3
