"""Each state has a colour that everybody can tell from all others, and a glyph for those who see none."""

from __future__ import annotations

from itertools import combinations

import pytest

from spoold.pictures.palette import DARK, GLYPHS, LIGHT, LOST, ORDER, WORST, Scheme, mark
from spoold.pictures.picture_data import RUNNING, UNKNOWN
from spoold.protocol.lifecycle import SHOWN
from spoold.protocol.result import Status
from tests.pictures.colours import SIGHTS, ciede2000, contrast, distance

APART = 10.0
SCHEMES = pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])


@SCHEMES
@pytest.mark.parametrize("sight", SIGHTS)
def test_all_pairs_are_apart_for_every_sight(scheme: Scheme, sight: str) -> None:
    near = {
        (one, other): round(far, 1)
        for one, other in combinations(scheme.states, 2)
        if (far := distance(scheme.states[one].fill, scheme.states[other].fill, sight)) < APART
    }
    assert not near


@SCHEMES
def test_a_glyph_can_be_read_on_its_colour_and_text_on_its_ground(scheme: Scheme) -> None:
    for colour in scheme.states.values():
        assert contrast(colour.fill, colour.ink) >= 4.5
    for ground in (scheme.paper, scheme.card):
        assert contrast(scheme.ink, ground) >= 7
        assert contrast(scheme.mute, ground) >= 4.5


@SCHEMES
def test_every_state_has_a_colour_a_glyph_and_a_rank(scheme: Scheme) -> None:
    states = {*(state.value for state in SHOWN), LOST, UNKNOWN}
    assert states == set(scheme.states) == set(GLYPHS) == set(ORDER) == set(WORST)
    assert len(set(GLYPHS.values())) == len(GLYPHS)
    assert len(ORDER) == len(WORST) == len(states)


def test_every_end_of_an_attempt_has_a_colour() -> None:
    assert {mark(status) for status in Status} == {"completed", "failed", "skipped", LOST}
    assert mark(RUNNING) == "claimed"
    assert mark("a word of a later release") == UNKNOWN


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        # Of the test data of Sharma, Wu and Dalal (2005).
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0009), 7.1792),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
    ],
)
def test_the_distance_is_that_of_the_standard(
    one: tuple[float, float, float], other: tuple[float, float, float], far: float
) -> None:
    assert ciede2000(one, other) == pytest.approx(far, abs=1e-4)


def test_the_sights_differ() -> None:
    assert distance("#c0392b", "#6b7a1e", "normal") > 30
    assert distance("#c0392b", "#6b7a1e", "deuteranopia") < 25
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
