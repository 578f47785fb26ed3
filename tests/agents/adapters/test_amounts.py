"""What an agent says that it cost: an amount, or nothing that is shown as one."""

from __future__ import annotations

import pytest

from spoold.agents.adapters import known_agents
from spoold.agents.process import ending

RESULT = (
    '{"type":"result","subtype":"success","result":"x","total_cost_usd":COST,"modelUsage":{"m":{"inputTokens":5}}}'
)
SAID = {
    "claude": RESULT,
    "opencode": '{"type":"step_finish","part":{"id":"1","reason":"stop","cost":COST,"tokens":{"input":5}}}',
    "generic": 'SPOOL:USAGE {"tokens_in":5,"cost_usd":COST}',
}
WRONG = ("1e300", "1e13", "-1", "NaN", "Infinity", "1e999", '"7"', "true", "9" * 400, "[1]", "null")


@pytest.mark.parametrize("cost", WRONG)
@pytest.mark.parametrize("agent", SAID)
def test_an_implausible_cost_is_unknown_and_not_shown(agent: str, cost: str) -> None:
    """G33: 1e300 USD were shown as money, and an integer of 400 digits ended the attempt."""
    for event in known_agents.make(agent).read(SAID[agent].replace("COST", cost), 1e9):
        if event.usage is not None:
            assert event.usage.cost == "unknown"
            assert "cost_usd" not in ending.figures(event.usage)


@pytest.mark.parametrize("agent", SAID)
def test_a_plausible_cost_is_shown(agent: str) -> None:
    used = [
        event.usage
        for event in known_agents.make(agent).read(SAID[agent].replace("COST", "0.25"), 1e9)
        if event.usage
    ]
    assert [ending.figures(one)["cost_usd"] for one in used] == [0.25]
