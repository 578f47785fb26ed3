"""One batch is one trace: what tasks see of it, and what an export says of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from spoold.protocol.trace_ids import Context, parse, span_of, trace_of
from tests.e2e.pool import Pool, wait_for

SPOOL = f'"{sys.executable}" -m spoold'
SECRET = "tr0ub4dor-and-3-horses"
OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SHOWS = 'echo "$TRACEPARENT|$TRACESTATE|$BAGGAGE"'

AGENT = """
import json, os, sys, urllib.request
sys.stdin.read()
value = {"stringValue": "with " + os.environ["KEY"]}
attributes = [{"key": "gen_ai.request.model", "value": {"stringValue": "m"}}, {"key": "asked", "value": value}]
parent = os.environ["TRACEPARENT"].split("-")
span = {"traceId": parent[1], "spanId": "00000000000000a1", "parentSpanId": parent[2], "name": "llm", "kind": 3,
        "startTimeUnixNano": "5", "endTimeUnixNano": "9", "attributes": attributes}
post = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
urllib.request.urlopen(urllib.request.Request(url, post, {"Content-Type": "application/json"}))
print('SPOOL:USAGE {"tokens_in": 12, "tokens_out": 3, "cost_usd": 0.5}')
print("done")
"""


def exported(pool: Pool, *words: str) -> str:
    """The lines of an export, once the journals have told everything: a worker writes them a moment later."""

    def whole() -> str | None:
        text = pool.cli("trace", "export", *words)
        found = [span["name"].partition(" ")[0] for span in spans(text)]
        return text if found.count("commit") == found.count("process") > 0 else None

    return wait_for(whole, "every attempt has its commit in a journal")


def spans(text: str) -> list[dict[str, Any]]:
    return [
        span
        for line in text.splitlines()
        for by in json.loads(line)["resourceSpans"]
        for scope in by["scopeSpans"]
        for span in scope["spans"]
    ]


def test_a_dag_with_a_retry_and_a_child_is_one_trace(pool: Pool) -> None:
    pool.master()
    pool.worker("only", slots=2)
    pool.ready("only")
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    tasks = [
        {"id": "fetch", "command": ["sh", "-c", f"{SHOWS}; test $SPOOL_ATTEMPT = 2"]},
        {"id": "check", "command": ["sh", "-c", SHOWS], "after": "fetch"},
        {"id": "plan", "command": ["sh", "-c", f"{SPOOL} submit --id kid -- true"], "env": env, "after": "fetch"},
        {"id": "last", "command": ["true"], "after": ["check", "plan"]},
    ]
    pool.path("dag.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    pool.cli("submit", "--batch", "night", str(pool.path("dag.jsonl")))
    for task_id in ("fetch", "check", "plan", "last", "kid"):
        assert pool.finish(task_id)["status"] == "success", task_id
    text = exported(pool, "night")
    spool_id = json.loads((Path(pool.root) / "spool.json").read_text())["spool_id"]
    found = spans(text)
    trace = trace_of(spool_id, "fetch", "night")
    assert {span["traceId"] for span in found} == {trace}
    by_id = {span["spanId"]: span for span in found}
    assert len(by_id) == len(found)
    assert {span["parentSpanId"] for span in found if "parentSpanId" in span} <= by_id.keys(), "no parent is missing"
    linked = {link["spanId"] for span in found for link in span.get("links", ())}
    assert linked <= by_id.keys()

    def of(task_id: str, attempt: int, part: str) -> dict[str, Any]:
        return by_id[span_of(spool_id, task_id, attempt, part)]

    roots = {span["spanId"] for span in found if "parentSpanId" not in span}
    assert roots == {span_of(spool_id, one, 0, "send") for one in ("fetch", "check", "plan", "last")}
    assert of("kid", 0, "send")["parentSpanId"] == of("plan", 1, "process")["spanId"]
    assert of("fetch", 1, "process")["status"]["code"] == 2
    assert of("fetch", 2, "process")["status"] == {}
    assert {link["spanId"] for link in of("last", 1, "process")["links"]} == {
        of("last", 0, "send")["spanId"],
        of("check", 1, "process")["spanId"],
        of("plan", 1, "process")["spanId"],
    }
    assert of("check", 1, "process")["links"][1]["spanId"] == of("fetch", 2, "process")["spanId"]
    for result in (*pool.results("fetch"), *pool.results("check")):
        mine = Context(trace, span_of(spool_id, result["task_id"], result["attempt"], "process"))
        assert result["output"].strip() == f"{mine.encode()}||", "a task sees its own span and nothing inherited"
    assert pool.cli("trace", "export", "night") == text, "an export that is repeated is the same"


def test_a_task_sees_no_trace_of_its_worker_and_may_be_put_below_one(pool: Pool) -> None:
    pool.master()
    said = {"TRACEPARENT": OUTER, "TRACESTATE": "outer=1", "BAGGAGE": "user=ada"}
    pool.path("worker.toml").write_text("[env]\n" + "".join(f'{name} = "{value}"\n' for name, value in said.items()))
    pool.worker("only", "--config", str(pool.path("worker.toml")))
    pool.ready("only")
    pool.submit("alone", ["sh", "-c", SHOWS], env=said)
    pool.submit("below", ["sh", "-c", SHOWS], meta={"traceparent": OUTER})
    alone, below = (pool.finish(task_id)["output"].strip() for task_id in ("alone", "below"))
    assert OUTER.split("-")[1] not in alone
    assert alone.endswith("||")
    above, mine = parse(OUTER), parse(below.partition("|")[0])
    assert above is not None
    assert mine is not None
    assert mine.trace_id == above.trace_id
    send = next(span for span in spans(exported(pool, "below")) if span["name"].startswith("send"))
    assert (send["traceId"], send["parentSpanId"]) == (above.trace_id, above.span_id)


def test_an_agents_own_spans_are_below_its_attempt_and_masked(pool: Pool) -> None:
    pool.path("agent.py").write_text(AGENT)
    pool.path("key").write_text(SECRET)
    pool.path("key").chmod(0o600)
    pool.path("agents.toml").write_text(
        f"[secrets]\nKEY = {{file = '{pool.path('key')}'}}\n[agents.coder]\ncli = 'generic'\ntrace = true\n"
        f"secrets = ['KEY']\ncommand = ['{sys.executable}', '{pool.path('agent.py')}']\n"
    )
    pool.master()
    pool.worker("only", "--config", str(pool.path("agents.toml")))
    pool.ready("only")
    pool.cli("agent", "coder", "Go.", "--id", "edit")
    assert pool.finish("edit")["output"]["outcome"] == "no_change", pool.told()
    found = {span["name"]: span for span in spans(exported(pool, "edit"))}
    attempt, inner = found["process coder"], found["llm"]
    assert (inner["traceId"], inner["parentSpanId"]) == (attempt["traceId"], attempt["spanId"])
    said = {pair["key"]: pair["value"] for pair in inner["attributes"]}
    assert said["asked"] == {"stringValue": "with [redacted:KEY]"}
    used = {pair["key"]: pair["value"] for pair in attempt["attributes"]}
    assert used["gen_ai.usage.input_tokens"] == {"intValue": "12"}
    assert used["spoold.cost_usd"] == {"doubleValue": 0.5}
    assert SECRET not in json.dumps(pool.results("edit"))
