"""The settings that `spool init` writes down to be edited are the ones that hold."""

import re

from spoold.protocol.settings import Settings
from spoold.protocol.toml_file import load_settings
from spoold.store.initialise import SETTINGS_TEMPLATE


def test_every_line_shows_the_default_but_for_the_example_of_a_type() -> None:
    said = re.sub(r"^# (?=\[|[a-z_]+ = )", "", SETTINGS_TEMPLATE.decode(), flags=re.MULTILINE)
    shown = load_settings(said.encode(), "spool.toml")
    assert list(shown.types) == ["review"]
    assert list(shown.limits) == ["api"]
    examples = {"failure_rate": 0.1, "memory": 0.8, "queue": 100, "task": {"type": "notify"}}
    assert {name: value for name, value in shown.alerts.model_dump().items() if name in examples} == examples
    alerts = shown.alerts.model_copy(update=dict.fromkeys(examples))
    none = {"types": {}, "limits": {}, "classes": {}, "budgets": {}, "alerts": alerts}
    assert shown.model_copy(update=none) == Settings()
    assert shown.model_fields_set == Settings.model_fields.keys()
    assert load_settings(SETTINGS_TEMPLATE, "spool.toml") == Settings()
