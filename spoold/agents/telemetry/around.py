"""An attempt whose profile says `trace = true`, with a receiver around it.

Law: where a receiver cannot be, or the owner of the machine has the spans sent elsewhere, the attempt goes on without
one and its log says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from spoold.agents import confined, scanning
from spoold.agents.adapters.adapter import Errand
from spoold.agents.profiles import Profile
from spoold.agents.telemetry.receiving import Receiver
from spoold.agents.turns import Scene

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_ELSEWHERE = (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@contextmanager
def listening(
    profile: Profile, errand: Errand, scene: Scene, result: dict[str, Any], say: Callable[[str], None]
) -> Iterator[tuple[Errand, Scene]]:
    """Inside, an errand and its scene, whose agent tells its spans if its profile says so; at the end they are in
    `result`.
    """
    receiver = _receiver(profile, errand.env, say) if profile.trace else None
    if receiver is None:
        yield errand, scene
        return
    more = variables(receiver.url)
    try:
        # What an adapter says counts more than the scene, and not every adapter says anything.
        told = replace(errand, trace=receiver.url, env={**errand.env, **more})
        yield told, replace(scene, env={**scene.env, **more})
    finally:
        result |= receiver.close()


def variables(url: str) -> dict[str, str]:
    """Return what tells a program where to send its spans; figures and logs are not taken."""
    return {
        ENDPOINT: url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }


def _receiver(profile: Profile, env: Mapping[str, str], say: Callable[[str], None]) -> Receiver | None:
    if confined.read(profile.sandbox, "the sandbox of the profile").asked().network != "host":
        say('its spans are not taken: its sandbox does not reach this machine (trace needs network = "host")')
        return None
    if name := next((name for name in _ELSEWHERE if env.get(name)), None):
        say(f"its spans are not taken: {name} has them sent elsewhere")
        return None
    try:
        return Receiver(scanning.masking())
    except OSError as error:
        say(f"its spans are not taken: there is no port for them ({error.strerror})")
        return None
