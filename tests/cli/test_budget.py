"""`spool budget`, and raises, through the command line, with a leader that is stepped by hand."""

import json
from pathlib import Path

import pytest

from tests.cli.command import leader, make, opened, spool

SETTINGS = '[budgets.nightly]\ncost_usd = 1.5\n[budgets.day]\ntokens = 100\nper = "day"\n[budgets.free]\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = make(tmp_path / "s")
    (made / "spool.toml").write_text(SETTINGS)
    return made


def test_a_spool_without_budgets_says_how_to_make_one(tmp_path: Path) -> None:
    done = spool(make(tmp_path / "s"), "budget")
    assert done.exit_code == 0
    assert "[budgets.NAME]" in done.output
    assert json.loads(spool(make(tmp_path / "other"), "budget", "--json").stdout) == {}


def test_what_is_left_is_shown_as_the_leader_said_it_last(root: Path) -> None:
    assert "1.50" in spool(root, "budget").stdout, "no leader has said anything yet"
    led = leader(root)
    task = {"id": "a", "command": ["work"], "budgets": ["nightly"], "budget": {"cost_usd": 0.25}}
    (root / "pending" / "a.json").write_text(json.dumps(task))
    for _ in range(3):
        led.step()
    said = json.loads(spool(root, "budget", "nightly", "--json").stdout)["nightly"]
    assert said["limits"] == {"cost_usd": 1.5}
    lines = [line.split() for line in spool(root, "budget").stdout.splitlines()]
    assert ["nightly", "total", "USD", "1.50"] in [line[:4] for line in lines]
    assert ["free", "total", "USD", "-"] in [line[:4] for line in lines]
    led.close()


def test_what_is_left_after_a_raise_is_right_at_once(root: Path) -> None:
    """Until the leader's next heartbeat it was what the limit before had left."""
    led = leader(root)
    for _ in range(3):
        led.step()
    led.close()
    spool(root, "budget", "raise", "nightly", "--cost-usd", "5")
    [period] = json.loads(spool(root, "budget", "nightly", "--json").stdout)["nightly"]["periods"]
    assert period["left"] == {"cost_usd": 6.5}
    lines = [line.split() for line in spool(root, "budget").stdout.splitlines()]
    assert next(line for line in lines if line[:2] == ["nightly", "total"])[3:7] == ["6.50", "0.00", "0.00", "6.50"]


def test_raises_add_up_and_say_what_holds_then(root: Path) -> None:
    done = spool(root, "budget", "raise", "nightly", "--cost-usd", "5", "--reason", "more")
    assert done.exit_code == 0
    assert "the limit is 6.50 USD" in done.output
    assert json.loads(spool(root, "budget", "raise", "NIGHTLY", "--cost-usd", "0.1", "--json").stdout) == {
        "cost_usd": 6.6
    }
    assert "the limit is 130 tokens" in spool(root, "budget", "raise", "day", "--tokens", "30").output
    [first, *_] = sorted((root / "settings").iterdir())
    said = json.loads(first.read_text())
    assert said["reason"] == "more"
    assert said["settings"] == {"budgets": {"nightly": {"add": {"cost_usd": 5.0}}}}


def test_two_raises_at_one_moment_both_count(root: Path) -> None:
    from spoold.store.settings_change import publish_change

    one, other = opened(root, "cli-one-1"), opened(root, "cli-two-2")
    for store in (one, other):
        store.open_tmp()
        store.revisions.look()
    numbers = [store.revisions.next_number() for store in (one, other)]
    assert numbers[0] == numbers[1], "neither sees the other's"
    for store in (one, other):
        store.revisions._given -= 1
        look, store.revisions.look = store.revisions.look, lambda: None  # type: ignore[method-assign]
        publish_change(store, {"budgets": {"nightly": {"add": {"cost_usd": 1}}}})
        store.revisions.look = look  # type: ignore[method-assign]
    assert len(list((root / "settings").iterdir())) == 2
    assert json.loads(spool(root, "budget", "nightly", "--json").stdout)["nightly"]["limits"] == {"cost_usd": 3.5}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nigthly",), 4, "did you mean 'nightly'?"),
        (("raise", "nigthly", "--cost-usd", "1"), 4, "did you mean 'nightly'?"),
        (("raise", "day", "--cost-usd", "1"), 2, "only what it limits can be raised"),
        (("raise", "nightly"), 2, "by how much?"),
        (("raise", "nightly", "--cost-usd", "-1"), 2, "too small"),
        (("raise",), 2, "names no single budget"),
        (("nightly", "day"), 2, "names no single budget"),
        (("nightly", "--tokens", "1"), 2, "adds to nothing"),
    ],
)
def test_what_is_wrong_says_the_fix(root: Path, words: tuple[str, ...], code: int, said: str) -> None:
    done = spool(root, "budget", *words)
    assert said in " ".join(done.output.split())
    assert done.exit_code == code


def test_a_settings_file_that_names_no_such_budget_is_refused_with_the_nearest(root: Path) -> None:
    (root / "spool.toml").write_text(SETTINGS + '[types.x]\nbudgets = ["nigtly"]\n')
    done = spool(root, "budget")
    assert done.exit_code == 2
    assert "types.x.budgets" in done.output
    assert "did you mean 'nightly'?" in " ".join(done.output.split())
    (root / "spool.toml").write_text("[budgets.a]\ncost_usd = 1\n[budgets.a.add]\ncost_usd = 1\n")
    assert "budgets.a.add: unknown field" in " ".join(spool(root, "budget").output.split())
