"""The specification says what the code does: its tables, tree, diagram, examples and names are held to it."""

import ast
import re
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from pydantic import AliasChoices, BaseModel

from spoold.protocol import admission_names, agent_fields, codec, layout, names
from spoold.protocol.context_entry import Entry, parse_entry
from spoold.protocol.doctor_report import Remark, Report, parse_report
from spoold.protocol.event import Event
from spoold.protocol.feed_checkpoint import Checkpoint, parse_checkpoint
from spoold.protocol.heartbeat import Capabilities, Heartbeat, HostId, Lasted, MountFacts, Running
from spoold.protocol.lanes import LANE_MAX, parse_lane
from spoold.protocol.lifecycle import DIRECTORIES, MOVES
from spoold.protocol.names import BACKUPS, PRIORITIES, UNFINISHED, UNIQUE, WHOLE
from spoold.protocol.request import Verb, parse_request
from spoold.protocol.request_body import RequestBody
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.settings import Marker, Settings, TypeSettings
from spoold.protocol.settings_change import CHANGEABLE, Change, parse_change
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.step import Step, parse_step
from spoold.protocol.task import DEPENDENCIES_MAX, Requires, Retry, Task
from spoold.protocol.toml_file import load_settings
from spoold.rules.attempts import attempt_outcome, retry_rule
from spoold.rules.attempts.task_policy import retry_policy
from spoold.rules.entry import admission
from spoold.rules.gates.registry import TASK_GATES, TYPE_GATES
from spoold.store import settings_revisions
from tests.house.sources import CHECKOUT, modules
from tests.support import specification

CONFIGURATION = (CHECKOUT / "docs/configuration.md").read_text(encoding="utf-8")
TEXT = specification.TEXT
BLOCKS = re.findall(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PROSE = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
QUOTED = re.findall(r"`([^`\n]+)`", PROSE)

PARSERS: dict[str, Callable[[str], Any]] = {
    "task": names.parse_task,
    "returned": names.parse_returned,
    "ended": names.parse_ended,
    "log": names.parse_log,
    "archived": names.parse_archived,
    "beat": names.parse_beat,
    "lease": names.parse_lease,
    "snapshot": names.parse_snapshot,
    "checkpoint": parse_checkpoint,
    "report": parse_report,
    "change": parse_change,
    "entry": parse_entry,
    "step": parse_step,
    "events": names.parse_events,
    "door": admission_names.parse_door,
    "batch": admission_names.parse_batch,
    "original": admission_names.parse_original,
    "request": parse_request,
    "lane": parse_lane,
}
MODELS: dict[str, type[BaseModel]] = {
    "task": Task,
    "result": Result,
    "heartbeat": Heartbeat,
    "request": RequestBody,
    "marker": Marker,
    "report": Report,
    "event": Event,
    "snapshot": Snapshot,
    "checkpoint": Checkpoint,
    "change": Change,
    "entry": Entry,
    "step": Step,
}


def block(kind: str) -> str:
    """The one block of that kind."""
    [text] = [str(text) for language, _, text in BLOCKS if language == kind]
    return text


def table(*head: str, within: str | None = None) -> list[list[str]]:
    """The rows of the one table with these first columns, cells trimmed."""
    pattern = rf"^\| {re.escape(' | '.join(head))}[^\n]*\|\n\|[-|]+\|\n((?:\|[^\n]*\|\n)+)"
    [rows] = re.findall(pattern, TEXT if within is None else within, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines()]


def section(title: str) -> str:
    """The text under a heading, up to the next one of its rank or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^\#{{1,3}} |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return str(found[2])


def quoted(cells: list[str]) -> set[str]:
    """Every word in backticks within these cells."""
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def accepted(model: type[BaseModel]) -> set[str]:
    """Every name under which a field of the model may be given."""
    found: set[str] = set()
    for name, info in model.model_fields.items():
        alias = info.validation_alias
        found |= {name, *(map(str, alias.choices) if isinstance(alias, AliasChoices) else ())}
    return found


def test_the_glossary_is_short_and_says_each_term_once() -> None:
    terms = [row[0] for row in table("term", "meaning")]
    assert len(set(terms)) == len(terms) <= 40


def test_the_tree_is_the_tree() -> None:
    lines = [re.fullmatch(r"(\S+) +(.+)", line) for line in block("tree").splitlines()]
    told = {line[1]: line[2] for line in lines if line is not None}
    assert len(told) == len(lines)
    assert {name.removesuffix("/"): purpose for name, purpose in told.items() if name.endswith("/")} == layout.TREE
    assert {name for name in told if not name.endswith("/")} == {layout.MARKER, layout.SETTINGS, layout.LOCK}


def test_the_states_are_the_states() -> None:
    told = {re.match(r"`(\w+)/", row[0]) for row in table("the token is in")} - {None}
    assert {match[1] for match in told if match} == {*DIRECTORIES, layout.ADMITTING}


def test_the_table_of_moves_is_the_table_of_moves() -> None:
    rows = [
        row for title in ("The moves", "Moves of fsck") for row in table("from", "to", "who", within=section(title))
    ]
    assert [tuple(row) for row in rows] == [
        (f"{move.source}/", f"{move.target}/", move.mover, move.event, move.when) for move in MOVES
    ]


def test_every_event_of_a_move_is_noted_but_for_those_that_are_said_to_be_in_no_journal() -> None:
    said = section("The moves").partition("Three events stand in no journal:")[2].split("\n\n")[0]
    silent = set(re.findall(r"\b[A-Z]{5,}\b(?= \()", said))
    assert silent == {"SUBMITTED", "RECEIVED", "REPAIRED"}
    nodes = [
        node
        for path, _, tree in modules()
        if path.startswith(("spoold/master", "spoold/worker"))
        for node in ast.walk(tree)
    ]
    # What a move is checked by is not yet noted.
    moves = {
        id(word)
        for call in nodes
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in ("move", "attempt")
        for word in call.args
    }
    constants = {node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in moves}
    events = {move.event for move in MOVES}
    assert events - constants == silent
    assert silent.isdisjoint(constants)


def test_the_diagram_is_drawn_from_the_table() -> None:
    edges = [f"    {move.source} --> {move.target}: {move.mover} {move.event}" for move in MOVES]
    drawn = (
        (CHECKOUT / "docs/internals.md").read_text(encoding="utf-8").partition("```mermaid\n")[2].partition("```")[0]
    )
    assert drawn.splitlines() == ["stateDiagram-v2", *edges]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for language, kind, text in BLOCKS if language == "json"])
def test_every_example_is_what_it_says(kind: str, text: str) -> None:
    loaded = codec.load_model(MODELS[kind], text.encode(), f"example of a {kind}")
    assert not loaded.model_extra
    assert codec.load_model(MODELS[kind], codec.dump(loaded), kind) == loaded
    said = orjson.loads(text)
    for name, value in (agent_fields.expanded(said) if kind == "task" else said).items():
        assert name in accepted(MODELS[kind]), value


def test_the_fields_of_a_task_for_an_agent_are_those_that_are_read() -> None:
    assert quoted([row[0] for row in table("field of a task for an agent")]) == {
        agent_fields.AGENT,
        *agent_fields.CHECKS,
    }


def test_every_kind_of_file_has_an_example() -> None:
    assert {kind for language, kind, _ in BLOCKS if language == "json"} == set(MODELS)
    assert {language for language, _, _ in BLOCKS} == {"json", "toml", "tree"}


def test_the_example_of_settings_is_settings() -> None:
    settings = load_settings(block("toml").encode(), "example")
    assert set(settings.of("code_review").model_dump(exclude_none=True)) == set(TypeSettings.model_fields)


@pytest.mark.parametrize("row", table("kind", "where", "grammar"), ids=lambda row: row[0])
def test_every_name_is_read_and_written_as_it_stands(row: list[str]) -> None:
    kind, where, _, example = row
    assert where.startswith(("`", "under `"))
    value = PARSERS[kind](example.strip("`"))
    assert value is not None
    assert _written(kind, value) == example.strip("`")


def _written(kind: str, value: Any) -> str:
    if kind == "returned":
        return str(value[0].encode_returned(value[1]))
    if kind == "archived":
        return str(value[0].archived(value[1]))
    return str(value.log() if kind == "log" else value.encode())


def test_the_variables_of_an_attempt_are_all_told() -> None:
    made = [path for path, _, _ in modules() if path.endswith(("/job_preparation.py", "/attempts/starting.py"))]
    texts = [(CHECKOUT / path).read_text(encoding="utf-8") for path in made]
    told = quoted([row[0] for row in table("`SPOOL_*` variable", "value")])
    assert told == {name for text in texts for name in re.findall(r'"(SPOOL_[A-Z_]+)"', text)}
    [passed] = [found for text in texts if (found := re.search(r"^_PASSED = (\(.*\))$", text, re.MULTILINE))]
    [said] = re.findall(r"own variables an attempt gets (.*?), and those", TEXT, re.DOTALL)
    assert quoted([said]) == set(ast.literal_eval(passed[1]))


def test_every_kind_of_name_is_told() -> None:
    assert [row[0] for row in table("kind", "where", "grammar")] == list(PARSERS)


KIND_IN = {
    layout.WAITING: "task",
    layout.READY: "task",
    layout.CLAIMED: "task",
    layout.RETURNED: "returned",
    layout.COMPLETED: "ended",
    layout.FAILED: "ended",
    layout.RESULTS: "ended",
    layout.ARCHIVE: "archived",
    layout.HEARTBEATS: "beat",
}
PATHS = [word for word in QUOTED if re.fullmatch(r"[a-z]+/.*[0-9a-z]\.\S*json", word)]


@pytest.mark.parametrize("path", PATHS)
def test_every_path_leads_to_where_such_a_file_is(path: str) -> None:
    directory, _, name = path.partition("/")
    if directory == layout.PENDING:
        assert admission.judge_kind(name, "file", 1, Settings()) is None
        return
    branch, _, last = name.rpartition("/")
    assert PARSERS[KIND_IN[directory]](last) is not None
    if directory in (layout.WAITING, layout.READY):
        assert parse_lane(branch) is not None
    elif directory == layout.CLAIMED:
        assert names.is_node(branch)


def test_the_life_of_one_task_is_what_the_rules_make_of_it() -> None:
    settings, drop = Settings(), "review.json"
    order, made = admission.settle(drop, 1_770_022_800_000_000, 3)
    admit = admission.judge_content(drop, b'{"type": "code_review", "priority": "high"}', order, made, settings)
    assert isinstance(admit, admission.Admit)
    policy = retry_policy(admit.task, settings)
    first = admit.name
    second = retry_rule.decide(first, attempt_outcome.of_exit(1, policy.on, policy.never), policy)
    assert isinstance(second, retry_rule.Again)
    third = retry_rule.decide(second.name, attempt_outcome.worker_died("gone"), policy)
    assert isinstance(third, retry_rule.Again)
    one, two, three = first.encode(), second.name.encode(), third.name.encode()
    last = third.name.ended("laptop1-7f3a")
    ended = [first.ended("laptop1-7f3a"), second.name.ended("master-9z9z"), last]
    results = [f"results/{name.encode()}" for name in ended]
    original = admission_names.OriginalName(order, made).encode()
    beat = "heartbeats/laptop2-00ff.97.json"
    expected = {
        "Drop": [f"pending/{drop}"],
        "Door": [f"admitting/{admission_names.DoorName(3, 'master-9z9z', 1).encode()}/{original}"],
        "Admission": [layout.ready(admit.lane, one)],
        "Claim": [layout.claimed("laptop1-7f3a", one)],
        "Failure": [*results[:1], f"returned/{second.name.encode_returned('laptop1-7f3a')}"],
        "Backoff": [*results[:1], layout.waiting(admit.lane, two)],
        "Ready again": [*results[:1], layout.ready(admit.lane, two)],
        "Second claim": [beat, *results[:1], layout.claimed("laptop2-00ff", two)],
        "Reaping": [*results[:2], f"returned/{third.name.encode_returned('master-9z9z')}"],
        "Third claim": [*results[:2], layout.claimed("laptop1-7f3a", three)],
        "Result": [*results[:2], layout.claimed("laptop1-7f3a", three), results[2]],
        "Commit": [*results, f"completed/{last.encode()}"],
        "Fence": [],
        "Retention": [
            f"{layout.bucket(made)}/{file}"
            for file in (*(name.archived("result") for name in ended), last.archived("completed"))
        ],
    }
    steps = re.findall(r"^\d+\. \*\*(.+?)\.\*\*(.*?)(?=^\d+\. |\Z)", section("The life of one task"), re.M | re.S)
    told = {title: re.findall(r"`([a-z]+/[^`]*(?:json|original))`", text) for title, text in steps}
    assert told == expected
    assert f"{second.name.delay_ms / 1000} s" in dict(steps)["Failure"]
    assert f"After {settings.heartbeat.dead_after_s:g} s" in dict(steps)["Reaping"]


@pytest.mark.parametrize(
    ("head", "model"),
    [
        (("`retry` field", "type"), Retry),
        (("`requires` field", "type"), Requires),
    ],
)
def test_the_fields_within_a_task_are_all_told(head: tuple[str, ...], model: type[BaseModel]) -> None:
    assert quoted([row[0] for row in table(*head)]) == accepted(model)


@pytest.mark.parametrize(
    ("title", "model", "parts"),
    [
        ("Fields of a task", Task, ()),
        ("Fields of a result", Result, (Error,)),
        ("Fields of a heartbeat", Heartbeat, (HostId, Running, Capabilities, MountFacts)),
        ("Reports of the doctor", Report, (Remark,)),
    ],
)
def test_the_fields_of_every_file_are_all_told(
    title: str, model: type[BaseModel], parts: tuple[type[BaseModel], ...]
) -> None:
    rows = re.search(r"^\| field \|[^\n]*\n\|[-|]+\|\n((?:\|[^\n]*\n)+)", section(title), re.MULTILINE)
    assert rows is not None
    cells = [row.strip("|").split(" | ") for row in rows[1].splitlines()]
    assert quoted([cell[0] for cell in cells]) == accepted(model)
    said = quoted([cell[-1] for cell in cells])
    for part in parts:
        assert accepted(part) <= said | {"code", "message", "cause"}


def test_the_ranges_of_the_numbers_of_a_beat_are_all_told() -> None:
    told: dict[str, tuple[float, float]] = {}
    for named, *ends in table("number", "least", "most"):
        least, most = (
            eval(re.sub(r"<sup>(\d+)</sup>", r"**\1", end).replace("−", "-"))  # figures of ours, such as 2**31 - 1
            for end in ends
        )
        told |= dict.fromkeys(quoted([named]) - {"spent"}, (least, most))
    real: dict[str, tuple[float, float]] = {}
    for model in (Heartbeat, Running, Capabilities, Lasted):
        for name, field in model.model_fields.items():
            ends = re.findall(r"[gl]e=(-?[0-9]+)", repr(field))
            if ends:
                real[name] = (float(ends[0]), float(ends[1]))
    assert {name: told[name] for name in real} == real
    assert told.keys() == real.keys()


def test_what_must_be_there_is_what_readers_insist_on() -> None:
    must: dict[str, type[BaseModel]] = {"Result": Result, "Events": Event}
    for title, model in must.items():
        said = re.search(r"must hold\s+(.*?)[;.]", section(title), re.DOTALL)
        assert said is not None, title
        assert quoted([said[1]]) == {name for name, field in model.model_fields.items() if field.is_required()}, title
    assert "`error` must hold `code`" in section("Result")
    assert {name for name, field in Error.model_fields.items() if field.is_required()} == {"code"}
    parts: list[type[BaseModel]] = [Heartbeat, HostId, Capabilities]
    required = [name for part in parts for name, field in part.model_fields.items() if field.is_required()]
    assert required == ["node", "beat"]
    assert "every one may be missing" in section("Heartbeat")


def test_the_fields_of_the_small_files_are_in_their_examples() -> None:
    for kind in ("request", "marker", "event", "snapshot", "checkpoint", "change"):
        [text] = [text for language, name, text in BLOCKS if (language, name) == ("json", kind)]
        assert set(orjson.loads(text)) == set(MODELS[kind].model_fields)
    for kind in ("checkpoint", "change"):
        assert quoted([row[0] for row in table(f"{kind} field", "type")]) == set(MODELS[kind].model_fields)


def test_what_can_be_changed_while_nodes_run_is_told() -> None:
    said = re.search(r"Changeable are (.+?)\.", _flat("Change"))
    assert said is not None
    assert quoted([said[1]]) == set(CHANGEABLE)
    told = re.search(r"\n(`timeout` and the sections .+?) can also change while nodes run", CONFIGURATION)
    assert told is not None
    assert quoted([told[1]]) == set(CHANGEABLE)
    assert f"At most {settings_revisions.FILES_MAX:,} files count" in _flat("Change")
    assert f"at most {settings_revisions.BYTES_MAX >> 10} KiB" in _flat("Change")


def test_the_settings_and_their_defaults_are_all_told() -> None:
    told = {row[0].strip("`"): row[1] for row in table("setting", "default", "unit")}
    real: dict[str, Any] = {}
    for name, value in Settings().model_dump().items():
        if isinstance(value, dict) and value:
            real |= {f"{name}.{inner}": default for inner, default in value.items()}
        else:
            real[name] = value
    assert told.keys() == real.keys()
    for name, default in told.items():
        assert orjson.loads(default) == real[name], name
    assert set(TypeSettings.model_fields) <= quoted([row[3] for row in table("setting", "default", "unit")])


def test_the_codes_statuses_verbs_and_priorities_are_all_told() -> None:
    assert [row[0].strip("`") for row in table("code", "meaning")] == list(Code)
    assert [row[0].strip("`") for row in table("verb", "target")] == list(Verb)
    [said] = re.findall(r"\| `status` \| word \| (.+) \|", TEXT)
    assert re.split(", | or ", said) == list(Status)
    [said] = re.findall(r"\| `priority` \| integer or word \| .*urgent; (.+) \|", TEXT)
    told = re.findall(r"(\w+)(?: and (\w+))? (−?\d+)", said)
    spelled = {word: int(number.replace("−", "-")) for *words, number in told for word in words if word}
    assert spelled == PRIORITIES


def test_the_exit_codes_are_told() -> None:
    rows = {row[0]: row for row in table("outcome", "charge")}
    for text, codes in (
        ("exit code 75", {attempt_outcome.TRY_LATER}),
        ("exit code 64, 65, 77 or 78", set(attempt_outcome.PERMANENT)),
        ("exit code 126 or 127", set(attempt_outcome.CANNOT_RUN)),
    ):
        assert {int(number) for number in re.findall(r"\d+", text)} == codes
        for code in codes:
            found = attempt_outcome.of_exit(code, frozenset(), frozenset())
            assert found.charge in rows[text][1]
            assert found.final == ("whatever the budget" in rows[text][2])
    charges = {row[1].removeprefix("a ") for row in rows.values()}
    assert charges == set(attempt_outcome.Charge)


def test_every_gate_is_told() -> None:
    """A gate that people cannot read about is one that they cannot explain to themselves."""
    said = _flat("Gates")
    for gate in (*TASK_GATES, *TYPE_GATES):
        assert gate.document in said, f"`docs/spec/gates.md` does not say: {gate.document}"
    told = {name.strip("`"): passes for name, passes in table("gate", "passes when")}
    assert told == {gate.name: gate.document for gate in (*TASK_GATES, *TYPE_GATES)}


def test_every_field_of_a_reason_is_told() -> None:
    [tree] = [tree for path, _, tree in modules() if path == "spoold/master/state/rejecting.py"]
    [reason] = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "reason"
    ]
    written = {
        key.value
        for made in ast.walk(reason)
        if isinstance(made, ast.Dict)
        for key in made.keys
        if isinstance(key, ast.Constant)
    }
    assert quoted([row[0] for row in table("reason field", "type")]) == written


@pytest.mark.parametrize(
    ("part", "read", "name"),
    [
        ("A, ATTEMPT", names.parse_ended, "build.{}.laptop1-7f3a.json"),
        ("F, C", names.parse_task, "4990.hff58yhhc0-3.build.a2f{0}c{0}.json"),
        ("MS", names.parse_task, "4990.hff58yhhc0-3.build.a2f1c0r{}.json"),
        ("BEAT", names.parse_beat, "laptop1-7f3a.{}.json"),
        ("SAID", names.parse_beat, "laptop1-7f3a.999999999999999.{}.json"),
        ("EPOCH", names.parse_lease, "{}.master-9z9z.17"),
        ("EPOCH", names.parse_snapshot, "{}-1.json"),
        ("EPOCH", parse_checkpoint, "{}-1.feed.json"),
        ("EPOCH", admission_names.parse_door, "{}.master-9z9z.1"),
        ("SEQ", names.parse_snapshot, "3-{}.json"),
        ("SEQ", parse_checkpoint, "3-{}.feed.json"),
        ("SEGMENT", names.parse_events, "master-9z9z.{}.jsonl"),
        ("NUMBER", admission_names.parse_door, "3.master-9z9z.{}"),
        ("NUMBER", parse_change, "{}.cli-desk-0k2j9x.json"),
        ("NUMBER", parse_report, "{}.doctor-laptop1-7f3a0.json"),
        ("DONE, SIZE", admission_names.parse_batch, "hff58yhhc0-3.nightly-0a1b2c3d.{0}-{0}.growing"),
    ],
)
def test_no_number_in_a_name_has_more_digits_than_is_told(part: str, read: Callable[[str], Any], name: str) -> None:
    [digits] = [int(row[2]) for row in table("part of a name", "meaning") if row[0] == part]
    assert read(name.format("1" * digits)) is not None
    assert read(name.format("1" * (digits + 1))) is None


def test_the_numbers_are_the_numbers() -> None:
    assert f"at most {LANE_MAX} characters" in _flat("Names")
    assert f"1 to {names.ID_MAX}" in _flat("Names")
    assert f"1 to {names.NODE_MAX} characters" in _flat("Names")
    assert f"ids ≤ {DEPENDENCIES_MAX:,}" in TEXT
    assert f"at most {codec.DEPTH_MAX} levels" in _flat("Files")
    assert all(f"`{run}`" in _flat("Names") for run in ("command", "python"))
    assert f"format version {layout.FORMAT_VERSION}: " in TEXT
    for ending in UNFINISHED + BACKUPS:
        assert f"`{ending}`" in _flat("Names")
    assert f"`NAME{WHOLE}`" in _flat("Names")
    assert f"`WHEN.ID{UNIQUE}`" in _flat("Names")


def _flat(title: str) -> str:
    return " ".join(section(title).split())
