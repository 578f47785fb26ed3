"""The picture without a leader is made of beats that were read plainly, and says the same as one made of models."""

from __future__ import annotations

from spoold.client.spool.offline_status import as_models
from spoold.protocol import plain_status
from spoold.protocol.heartbeat import Heartbeat


def test_a_beat_that_was_read_plainly_is_a_model_again_with_all_that_is_in_it() -> None:
    """`spool status` ended with a traceback when a worker had run something and nobody led."""
    said = {
        "node": "w1-1",
        "beat": 3,
        "role": "worker",
        "at": "2026-02-02T09:00:00Z",
        "durations": {"review": {"n": 2, "last": [1.5, 2.0]}},
        "endings": {"TIMEOUT": 1},
    }
    model = Heartbeat.model_validate(said)
    plain = plain_status.heartbeat(model.model_dump(mode="json"))
    assert type(plain) is not Heartbeat
    assert plain is not None
    assert as_models({"w1-1": plain}) == {"w1-1": model}
