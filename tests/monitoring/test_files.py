"""Goal: the files of docs/monitoring fit each other and the figures: no query names what is not exposed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from spoold.faces.metrics import exposition as f
from tests.monitoring.programs import MONITORING, promtool

DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
ALERTS = yaml.safe_load((MONITORING / "alerts.yml").read_text())
RULES = yaml.safe_load((MONITORING / "rules.yml").read_text())
SUFFIXES = ("_bucket", "_sum", "_count")
SERIES = re.compile(r"\b(?:\w+:)?spoold_\w+(?::\w+)?")


def rules(file: Any) -> list[dict[str, Any]]:
    return [rule for group in file["groups"] for rule in group["rules"]]


def panels() -> Iterator[tuple[str, str]]:
    """Each query of the dashboard, with the title of its panel."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def exposed() -> set[str]:
    names = set()
    for one in (one for one in vars(f).values() if isinstance(one, f.Family)):
        names |= {one.name + suffix for suffix in SUFFIXES} if one.kind == "histogram" else {one.name}
    return names


def test_every_query_names_what_is_exposed_or_recorded() -> None:
    known = exposed() | {rule["record"] for rule in rules(RULES)}
    queries = [query for _, query in panels()] + [rule["expr"] for rule in rules(ALERTS) + rules(RULES)]
    named = {name for query in queries for name in SERIES.findall(query)}
    assert len(named) > 30
    assert named <= known


def test_each_alert_has_a_twin_for_missing_figures() -> None:
    names = {rule["alert"]: rule["expr"] for rule in rules(ALERTS)}
    own = {name for name in names if not name.endswith("Missing")}
    assert {f"{name}Missing" for name in own} | own == names.keys()
    assert all("absent(" in names[f"{name}Missing"] for name in own)


def test_every_alert_is_tested_both_ways() -> None:
    tests = (MONITORING / "rules_test.yml").read_text()
    well, _, rest = tests.partition("- name: A pool in which everything is wrong")
    for rule in rules(ALERTS):
        assert f"alertname: {rule['alert']}}}" in well, rule["alert"]
        assert f'alertname="{rule["alert"]}"' in rest, rule["alert"]


def test_the_dashboard_can_be_read() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids) > 20
    for panel in DASHBOARD["panels"]:
        if panel["type"] != "row":
            assert panel["targets"], panel["title"]
            assert panel["datasource"]["uid"] == "${datasource}"
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    taken = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(set(taken)) == len(taken), "two panels overlap"
    assert max(x for x, _ in taken) == 23


def test_promtool_takes_the_rules_and_their_tests_pass() -> None:
    assert "FAILED" not in promtool("check", "rules", "rules.yml", "alerts.yml")
    assert "SUCCESS" in promtool("test", "rules", "rules_test.yml")
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml")
