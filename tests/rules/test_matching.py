"""May this worker run what is in this lane? If never, the words say what would change that."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.lanes import Lane
from spoold.rules.workers.matching import Free, allows, fits, free, promises, runs_no_commands, unfit

WORKER = Capabilities(
    cpus=4,
    mem_mb=8192,
    gpus=1,
    labels=("docker",),
    handlers=("review",),
    pools=("gpu",),
    allow_command=True,
    python=("pkg",),
)
PLAIN = Capabilities(cpus=1, mem_mb=100)


@pytest.mark.parametrize(
    "lane",
    [
        Lane("review"),
        Lane("any", run="command"),
        Lane("any", run="python", module="pkg"),
        Lane("any", run="python", module="pkg.jobs.x"),
        Lane("review", pool="gpu", cpus=4, mem_mb=8192, gpus=1, need=("docker",)),
    ],
    ids=str,
)
def test_a_worker_serves_what_it_has_everything_for(lane: Lane) -> None:
    assert unfit(lane, WORKER) is None


@pytest.mark.parametrize(
    ("lane", "words"),
    [
        (Lane("any"), "[handlers.any]"),
        (Lane("any", run="python", module="pkgs"), "[python] allow"),
        (Lane("review", pool="cpu"), "it is not in pool cpu"),
        (Lane("review", need=("docker", "b", "a")), "it has no label a, b (--labels)"),
        (Lane("review", cpus=4.5), "it has 4 cpus, the task requires 4.5"),
        (Lane("review", mem_mb=8193), "it has 8192 MiB memory, the task requires 8193 MiB"),
        (Lane("review", gpus=2), "it has 1 gpus, the task requires 2"),
    ],
    ids=str,
)
def test_a_worker_that_cannot_says_what_would_change_that(lane: Lane, words: str) -> None:
    found = unfit(lane, WORKER)
    assert found is not None
    assert words in found


def test_a_worker_that_runs_no_commands_says_what_it_takes() -> None:
    assert runs_no_commands(PLAIN) == (
        "runs no commands: no --allow-command and no handlers; it takes no task: start it with --allow-command, "
        "or with --config FILE that names handlers"
    )
    python = PLAIN.model_copy(update={"python": ("pkg.", "lib")})
    assert runs_no_commands(python).endswith("; it takes only calls of Python functions in pkg., lib")
    for some in ({"allow_command": True}, {"handlers": ("review",)}):
        assert runs_no_commands(PLAIN.model_copy(update=some)) == ""


def test_raw_commands_and_modules_need_leave() -> None:
    assert "--allow-command" in (unfit(Lane("a", run="command"), PLAIN) or "")
    assert "[python] allow" in (unfit(Lane("a", run="python", module="os"), PLAIN) or "")


def test_a_worker_that_names_its_types_takes_no_others() -> None:
    picky = replace_types(WORKER, ("review",))
    assert unfit(Lane("review"), picky) is None
    assert "takes only types review" in (unfit(Lane("other", run="command"), picky) or "")


def replace_types(worker: Capabilities, types: tuple[str, ...]) -> Capabilities:
    return worker.model_copy(update={"types": types})


@pytest.mark.parametrize(
    ("module", "prefixes", "allowed"),
    [
        ("Pkg.jobs", ("*",), True),
        ("Pkg.jobs", ("Pkg",), True),
        ("Pkg.jobs", ("Pkg.jobs",), True),
        ("Pkg.jobs", ("Pkg.",), True),
        ("Pkg.jobs", ("pkg",), False),
        ("Pkgs", ("Pkg",), False),
        ("Pkg", ("Pkg.jobs",), False),
        ("Pkg", (), False),
        ("Pkg", ("",), False),
    ],
)
def test_a_module_is_allowed_exactly_as_it_is_spelled(module: str, prefixes: tuple[str, ...], allowed: bool) -> None:
    assert allows(module, prefixes) is allowed
    if allowed:
        assert (
            unfit(Lane("a", run="python", module=module.lower()), WORKER.model_copy(update={"python": prefixes}))
            is None
        )


@pytest.mark.parametrize(
    ("module", "prefixes", "promised"),
    [
        ("Pkg.jobs", ("pkg",), True),
        ("pkg.jobs", ("Pkg.Jobs",), True),
        ("pkg", ("PKG.",), False),
        ("pkgs", ("Pkg",), False),
        ("pkg", ("*",), True),
    ],
)
def test_a_lane_promises_a_module_in_any_case(module: str, prefixes: tuple[str, ...], promised: bool) -> None:
    assert promises(module, prefixes) is promised
    lane = Lane("a", run="python", module=module.lower())
    assert (unfit(lane, WORKER.model_copy(update={"python": prefixes})) is None) is promised


lanes = st.builds(
    Lane, st.just("review"), cpus=st.integers(0, 3), mem_mb=st.integers(0, 5000), gpus=st.integers(0, 1)
)


@given(st.lists(lanes, max_size=8))
def test_what_is_taken_while_it_fits_is_never_more_than_there_is(wanted: list[Lane]) -> None:
    running: list[Lane] = []
    for lane in wanted:
        if fits(lane, free(WORKER, running)):
            running.append(lane)
    left = free(WORKER, running)
    assert all(left.without(lane) == free(WORKER, [*running, lane]) for lane in running)
    assert min(left.cpus, left.mem_mb, left.gpus) >= 0
    refused = [lane for lane in wanted if lane not in running]
    assert all(not fits(lane, left) for lane in refused)


def test_each_kind_of_room_is_asked_for() -> None:
    lane, room = Lane("a", cpus=1, mem_mb=1, gpus=1), Free(1, 1, 1)
    assert fits(lane, room)
    assert not fits(lane, replace(room, cpus=0.5))
    assert not fits(lane, replace(room, mem_mb=0))
    assert not fits(lane, replace(room, gpus=0))
