"""A view beside a whole cluster: whatever happens, it ends up with what a listing of everything shows."""

import random
from functools import partial

import pytest

from spoold.client.spool.spool_status import status
from spoold.client.view import AGES, Query
from spoold.client.view.refresh import Filling, Quiet
from spoold.protocol.names import SnapshotName
from spoold.protocol.request import Verb
from spoold.store import snapshots
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.client.view.watched import Watched

SETTINGS = "[types.command]\nmax_retries = 1\n[retry]\nbackoff_s = 1\n"


def test_a_task_is_followed_through_its_states_without_another_listing() -> None:
    watched = Watched()
    watched.drop("one.json", {"id": "one", "batch": "b", "type": "build", "priority": "high"})
    watched.look()
    card = watched.view.card("ONE")
    assert card is not None
    assert (card.state, card.type, card.batch, card.worker, card.attempt) == ("claimed", "build", "b", "w-0001", 1)
    assert card.priority > 0
    watched.mount.clear()
    watched.cluster.finish("one", exit_code=0)
    watched.look()
    assert (card.state, card.worker) == ("completed", "w-0001")
    # Only the new snapshots, journals and the log of what ran were read.
    assert {room for _, room in watched.mount.calls} <= {"status", "events", "logs", ""}
    assert watched.view.settled


def test_what_was_there_before_is_known_with_its_words() -> None:
    watched = Watched(settings=SETTINGS)
    watched.drop("all.jsonl", {"id": "a", "batch": "b"}, {"id": "c", "dependencies": ["a"]}, {"id": "bad"})
    watched.cluster.advance(3)
    watched.cluster.finish("a", exit_code=0)
    watched.cluster.finish("bad", exit_code=3)
    watched.cluster.advance(5)
    later = watched.open()
    later.look()
    assert watched.seen(later) == watched.listed()
    [bad] = [later.card("bad")]
    assert bad is not None
    assert (bad.code, bad.attempt, bad.type) == ("EXIT_NONZERO", 2, "command")
    a = later.card("a")
    assert a is not None
    assert (a.batch, a.code) == ("b", "")
    assert a.since is not None
    assert [(row.batch, row.counts) for row in later.batches()] == [("b", {"completed": 1})]


@pytest.mark.parametrize("remote", [False, True], ids=["local", "share"])
@pytest.mark.parametrize("seed", range(6))
def test_after_any_history_the_view_is_what_a_listing_shows(seed: int, remote: bool) -> None:
    chance = random.Random(seed)
    watched = Watched(remote=remote, settings=SETTINGS, slots=3)
    cluster, made = watched.cluster, 0
    for turn in range(40):
        match chance.randrange(8):
            case 0 | 1:
                ids = [f"t{made + number}" for number in range(chance.randrange(1, 6))]
                made += len(ids)
                after = [{"dependencies": [ids[0]]} if number % 2 else {} for number in range(len(ids))]
                watched.drop(f"{turn}.jsonl", *({"id": i, **more} for i, more in zip(ids, after, strict=True)))
            case 2 | 3 | 4:
                runners = [node.runner for node in cluster.nodes.values() if node.runner is not None]
                for runner, live in [(runner, sorted(runner.live)) for runner in runners]:
                    for attempt in live[: chance.randrange(3)]:
                        runner.finish(attempt, exit_code=chance.choice([0, 0, 1]))
            case 5:
                cluster.submit(f"bad{turn}.json", "{")
            case 6 if made:
                target = f"t{chance.randrange(made)}"
                watched.ask(chance.choice([Verb.CANCEL, Verb.RETRY]), target, f"u{turn}")
            case 7 if chance.random() < 0.4:
                name = next(name for name in list(cluster.nodes) if name.startswith("w"))
                cluster.crash(name)
                cluster.worker(f"w-{turn + 2:04}", 3)
            case _:
                pass
        watched.look(chance.randrange(1, 5))
    watched.look(200)  # a dead worker is reaped, its tasks go on, and a difference is listed again
    assert watched.seen() == watched.listed()
    assert watched.view.settled
    assert {state: number for state, number in watched.view.counts().items() if number} == {
        state: number
        for state, number in watched.view.picture.tasks.model_dump().items()  # type: ignore[union-attr]
        if number
    }


def test_what_no_journal_tells_is_listed_again() -> None:
    watched = Watched()
    watched.drop("one.json", {"id": "one"})
    watched.look()
    watched.cluster.finish("one", exit_code=0)
    watched.look()
    [file] = [path for path in watched.cluster.fs.files() if path.startswith("completed/")]
    watched.cluster.witness.losses_allowed = True  # a person removes it
    watched.cluster.fs.unlink(file)
    watched.look(120)
    assert watched.seen() == watched.listed() == {}


def test_at_rest_a_look_is_one_listing_and_on_a_share_the_allowance_holds() -> None:
    watched = Watched(remote=True)
    watched.drop("all.jsonl", *({"id": f"t{number}", "after_any": ["none"]} for number in range(300)))
    watched.look(60)
    spent = watched.view.round_trips
    watched.look(120)
    assert (watched.view.round_trips - spent) / 120 < 4
    assert watched.view.settled
    local = Watched()
    local.look(40)
    local.mount.clear()
    local.view.look()
    assert sum(local.mount.verbs().values()) <= 4


def test_however_many_ask_the_share_is_asked_once() -> None:
    watched = Watched(remote=True)
    watched.drop("one.json", {"id": "one"})
    watched.look(5)
    watched.view.info("one")
    spent = watched.view.round_trips
    for _ in range(50):
        watched.view.info("ONE")
        watched.view.log("one")
    assert watched.view.round_trips - spent <= 8


def test_nothing_is_written_to_the_spool() -> None:
    watched = Watched(settings=SETTINGS)
    watched.drop("all.jsonl", {"id": "a"}, {"id": "b", "dependencies": ["a"]})
    watched.look(5)
    view = watched.view
    for ask in (view.reasons, view.questions, view.running, view.ages, view.batches, view.failures):
        ask()
    view.info("a"), view.explain("b"), view.history("a"), view.scene(None), view.log("a"), view.logs("a")
    assert set(watched.mount.verbs()) <= {"list", "read", "stat", "usage", "has_writer"}


def test_reasons_are_counted_by_the_gates_that_the_leader_asks() -> None:
    watched = Watched(settings="[types.slow]\nmax_concurrent = 1\n", slots=1)
    watched.drop(
        "all.jsonl",
        *({"id": f"s{number}", "type": "slow"} for number in range(5)),
        {"id": "child", "dependencies": ["s0"]},
        {"id": "never", "dependencies": ["nobody"]},
        {"id": "later", "not_before": "2100-01-01T00:00:00Z"},
    )
    watched.look(10)
    found = {reason.gate: reason.count for reason in watched.view.reasons()}
    assert found == {"limit": 4, "dependencies": 2, "not_before": 1}
    assert sum(row.total for row in watched.view.ages()) == 7
    assert len(watched.view.ages()[0].counts) == len(AGES)


def test_a_budget_of_a_type_is_the_reason_of_its_tasks_which_have_no_conditions_of_their_own() -> None:
    watched = Watched(settings='[budgets.nightly]\ncost_usd = 0\n[types.review]\nbudgets = ["nightly"]\n')
    watched.drop("all.jsonl", *({"id": f"r{number}", "type": "review"} for number in range(3)), {"id": "free"})
    watched.look(10)
    assert {reason.gate: reason.count for reason in watched.view.reasons()} == {"budget": 3}


def test_facets_count_what_choosing_them_would_give_and_pages_meet_every_task_once() -> None:
    watched = Watched()
    watched.drop("all.jsonl", *({"id": f"t{n:03}", "type": "ab"[n % 2], "batch": "xyz"[n % 3]} for n in range(90)))
    watched.look(5)
    found = watched.view.find(Query(types=("a",), batches=("x",)), limit=4)
    assert (found.matches, found.total) == (15, 90)
    assert found.facets["type"] == {"a": 15, "b": 15}
    assert found.facets["batch"] == {"x": 15, "y": 15, "z": 15}
    for sort in ("id", "-id", "-since", "admitted", "type"):
        ids, cursor = [], ""
        while True:
            page = watched.view.find(Query(types=("a",), batches=("x",), sort=sort), cursor=cursor, limit=4)
            ids += [card.id for card in page.cards]
            if not (cursor := page.cursor):
                break
        assert sorted(ids) == watched.view.keys(Query(types=("a",), batches=("x",))), sort
    assert watched.view.find(Query(text="T08")).matches == 10


def test_a_share_that_cannot_be_read_is_told_and_what_is_known_stays() -> None:
    watched = Watched()
    watched.drop("one.json", {"id": "one"})
    watched.look()
    version = watched.view.version
    watched.mount.inner = MemoryFileSystem()
    watched.view.look()
    assert "status" in watched.view.problem
    assert watched.view.version > version
    assert watched.view.card("one") is not None
    watched.mount.inner = watched.cluster.fs
    watched.look()
    assert not watched.view.problem


def test_a_name_that_is_no_text_is_shown_as_text_and_found() -> None:
    watched = Watched()
    watched.cluster.fs.write("pending/keep\udcff.json", b'{"id": N', durable=False)
    watched.cluster.fs.write("rejected/bad\udcff.json", b"{", durable=False)
    later = watched.open()
    later.look()
    found = later.find(Query(sort="id"), limit=1)
    assert found.cursor
    second = later.find(Query(sort="id"), cursor=found.cursor)
    for card in [*found.cards, *second.cards]:
        card.id.encode()
        assert later.card(card.id) is card
        assert later.info(card.id).state == card.state


def test_a_rejected_drop_is_found_without_a_search() -> None:
    watched = Watched()
    watched.cluster.submit("bad.json", "{")
    watched.look(30)
    card = watched.view.card("bad.json")
    assert card is not None
    assert card.state == "rejected"
    watched.mount.clear()
    assert watched.view.info("bad.json").reason
    assert ("list", "waiting") not in watched.mount.calls


def test_a_report_that_changes_is_a_sign_of_life() -> None:
    watched = Watched()
    quiet = Quiet(watched.store)
    quiet.look([("a", 1, "w-0001", {"message": "turn 1"})], remote=False)
    assert quiet.seconds() == {}
    watched.cluster.pass_time(30)
    quiet.look([("a", 1, "w-0001", {"message": "turn 2"})], remote=False)
    watched.cluster.pass_time(7)
    quiet.look([("a", 1, "w-0001", {"message": "turn 2"})], remote=False)
    assert quiet.seconds() == {("a", 1): 7.0}


def test_a_leader_that_publishes_nothing_is_looked_for() -> None:
    watched = Watched()
    watched.look(20)
    watched.cluster.crash("m-0001")
    watched.cluster.submit("late.json", '{"id": "late", "command": ["true"]}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spoold.client.view.refresh.status", partial(status, sleep=watched.cluster.pass_time))
        for _ in range(30):
            watched.cluster.pass_time(1.0)
            watched.view.look()
    assert watched.view.picture is not None
    assert (watched.view.picture.source, watched.view.counts()["pending"]) == ("listing", 1)


def test_a_file_that_moved_on_before_it_was_read_is_wanted_again() -> None:
    watched = Watched()
    watched.drop("one.json", {"id": "one"})
    watched.look()
    card = watched.view.card("one")
    assert card is not None
    card.read = False
    filling = Filling(watched.store, watched.view._table)
    filling.take("one", card, None)
    filling.want("one", card)
    assert filling.some() == [("one", card)]


def test_a_snapshot_of_an_earlier_epoch_than_one_that_was_seen_is_passed_over() -> None:
    watched = Watched()
    watched.look()
    name = snapshots.list_snapshots(watched.cluster.fs)[0]
    said = watched.cluster.fs.read(f"status/{name.encode()}")
    for path in watched.cluster.fs.files("status"):
        watched.cluster.fs.unlink(path)
    older, newer = SnapshotName(name.epoch - 1, name.seq + 9), SnapshotName(name.epoch, name.seq + 1)
    for late, leader in ((older, "m-0001"), (newer, "m-0009")):
        forged = said.replace(b'"leader":"m-0001"', b'"leader":"m-0009"')
        assert forged != said
        watched.cluster.fs.write(f"status/{late.encode()}", forged, durable=False)
        watched.view.look()
        picture = watched.view.picture
        assert picture is not None
        assert picture.master.leader == leader
