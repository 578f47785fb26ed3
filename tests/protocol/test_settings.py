"""Settings: the defaults stand without a file, and what follows from them holds for every legal file."""

from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.settings import Heartbeats, Settings, TypeSettings
from spoold.protocol.toml_file import load_settings


def test_an_empty_file_is_the_defaults() -> None:
    assert load_settings(b"", "spool.toml") == Settings()


@given(interval_s=st.floats(0.05, 3600), misses=st.integers(2, 1000))
def test_a_worker_stops_its_tasks_before_others_start_them_again(interval_s: float, misses: int) -> None:
    beat = Heartbeats(interval_s=interval_s, misses=misses)
    assert interval_s < beat.lease_s < beat.dead_after_s


def test_a_type_without_settings_has_none() -> None:
    settings = load_settings(b'[types."code_review"]\nmax_concurrent = 2\npriority = "high"', "spool.toml")
    assert settings.of("code_review") == TypeSettings(max_concurrent=2, priority=10)
    assert settings.of("other") == TypeSettings()
