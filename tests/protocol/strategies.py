"""Values of the protocol for hypothesis: legal ones of every kind, and text that only looks like it."""

from hypothesis import strategies as st

from spoold.protocol.admission_names import BatchName, DoorName, OriginalName
from spoold.protocol.feed_checkpoint import CheckpointName
from spoold.protocol.lanes import Lane
from spoold.protocol.names import (
    BASE36,
    DELAY_MAX_MS,
    BeatName,
    EndedName,
    EventsName,
    LeaseName,
    SnapshotName,
    TaskName,
    encode_order,
    is_id,
    is_node,
)
from spoold.protocol.request import EVERYTHING, Request, Verb, parse_request
from spoold.protocol.settings_change import ChangeName

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
WITHIN_ID = f"{LETTERS}{LETTERS.upper()}{DIGITS}_=+,.-"
WITHIN_WORD = f"{LETTERS}{DIGITS}_.-"
# What separates and what tempts: devices, dots, digits of another script, signs, newlines.
TEMPTING = "acdfr.0123456789-_=+,jsonlgnulCONé٣²+ \n/"

ids = st.from_regex(rf"\A[{LETTERS}{LETTERS.upper()}{DIGITS}][{WITHIN_ID}]{{0,119}}\Z").filter(is_id)
nodes = st.from_regex(rf"\A[{LETTERS}{DIGITS}][a-z0-9_-]{{0,39}}\Z").filter(is_node)
orders = st.builds(encode_order, st.integers(0, 36**10 - 1), st.integers(0, 36**6 - 1))
numbers9 = st.integers(0, 10**9 - 1)
numbers12 = st.integers(0, 10**12 - 1)
numbers15 = st.integers(0, 10**15 - 1)
words = st.from_regex(rf"\A[{LETTERS}{DIGITS}](?:[{WITHIN_WORD}]{{0,46}}[a-z0-9_-])?\Z")
uniques = st.text(f"{LETTERS}{DIGITS}-", min_size=1, max_size=40)

task_names = st.builds(
    TaskName,
    rank=st.integers(0, 9999),
    order=orders,
    id=ids,
    attempt=numbers9,
    failures=numbers9,
    crashes=numbers9,
    delay_ms=st.integers(0, DELAY_MAX_MS),
    conditional=st.booleans(),
)
ended_names = st.builds(EndedName, ids, numbers9, nodes)
beat_names = st.builds(BeatName, nodes, numbers15) | st.builds(
    lambda node, said, later: BeatName(node, said + later, said),
    nodes,
    st.integers(0, 10**14),
    st.integers(1, 10**14),
)
lease_names = st.builds(LeaseName, numbers12, numbers15, nodes)
snapshot_names = st.builds(SnapshotName, numbers12, numbers15)
checkpoint_names = st.builds(CheckpointName, numbers12, numbers15)
events_names = st.builds(EventsName, nodes, numbers9)
change_names = st.builds(ChangeName, numbers9, nodes)
batch_names = st.builds(BatchName, orders, ids) | st.builds(
    BatchName, orders, ids, st.integers(0, 10**12 - 1), st.integers(0, 10**12 - 1)
)
original_names = st.builds(OriginalName, orders, ids)
door_names = st.builds(DoorName, st.integers(0, 10**12 - 1), nodes, st.integers(0, 10**9 - 1))
requests = st.builds(Request, st.sampled_from(Verb), st.one_of(ids, st.just(EVERYTHING)), uniques).filter(
    lambda request: parse_request(f"{request.verb}.{request.target}.{request.unique}.json") is not None
)

milli_cpus = st.integers(0, 9_999_999).map(lambda n: n / 1000)
modules = st.from_regex(r"\A[a-z_][a-z0-9_]{0,20}(?:\.[a-z_][a-z0-9_]{0,20}){0,2}\Z")
lanes = st.builds(
    Lane,
    type=words,
    run=st.sampled_from(["handler", "command", "python"]),
    pool=st.one_of(st.just(""), words),
    cpus=milli_cpus,
    mem_mb=st.integers(0, 10**9 - 1),
    gpus=st.integers(0, 9999),
    need=st.lists(words, max_size=3).map(tuple),
    module=st.one_of(st.just(""), modules),
)

texts = st.one_of(
    st.text(max_size=60),
    st.text(TEMPTING, max_size=60),
    st.builds(
        lambda rank, order, name, tail, end: f"{rank}.{order}.{name}.{tail}{end}",
        st.text(DIGITS + "٣", max_size=5),
        st.one_of(orders, st.text(BASE36 + "-", max_size=20)),
        st.one_of(ids, st.text(TEMPTING, max_size=12)),
        st.from_regex(r"\Aa\d{1,10}f\d{1,10}c\d{1,10}(?:r\d{1,13})?d?\Z"),
        st.sampled_from([".json", ".w1.json", ".jsonl", ".log", "", ".json\n"]),
    ),
    st.builds(
        lambda name, number, node, end: f"{name}.{number}.{node}{end}",
        st.one_of(ids, nodes, st.sampled_from(["con", "nul.x", "COM1", "0", "00"])),
        st.from_regex(r"\A\d{1,16}\Z"),
        st.one_of(nodes, st.text(TEMPTING, max_size=8)),
        st.sampled_from([".json", ".log", "", ".completed.json", ".jsonl"]),
    ),
    st.builds(lambda a, b: f"{a}-{b}.json", st.from_regex(r"\A\d{0,13}\Z"), st.from_regex(r"\A\d{0,16}\Z")),
    st.builds(
        lambda verb, target, unique: f"{verb}.{target}.{unique}.json",
        st.sampled_from([*Verb, "Cancel", "stop"]),
        st.text(TEMPTING, max_size=12),
        st.text(TEMPTING, max_size=12),
    ),
)

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
json_values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
)
