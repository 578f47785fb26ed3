"""Makes a spool: the tree, the token of leadership, settings to edit, and the marker.

Law: the marker comes last: a directory with a marker is a whole spool, and a half-made one can be made again. Nothing
is made in a directory that has entries of another kind, and nothing is restored where the marker is missing.
"""

from __future__ import annotations

from collections.abc import Collection

from spoold.protocol import codec, layout
from spoold.protocol.doctor_report import Strategy
from spoold.protocol.errors import Unavailable
from spoold.protocol.names import NOBODY, LeaseName
from spoold.protocol.settings import Marker
from spoold.store.leader_files import list_leases
from spoold.store.path_conflicts import obstacles
from spoold.store.store import make_directory, stamp
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem

UNFINISHED = f"{layout.MARKER}.new"

SETTINGS_TEMPLATE = b"""\
# Settings of this spool, read by every node when it starts. Times are in seconds.
# Each line shows the default; only [types.review], [limits.api], [classes.critical], [budgets.nightly] and lines that
# say so are examples: there are no limits, classes and budgets, and no type has settings, until you write some.
# timeout = 1800            # one attempt of a task that does not say otherwise

# [heartbeat]
# interval_s = 5
# misses = 3                # a node is dead after this many beats that did not come

# [types.review]            # what holds for tasks of type "review" that do not say otherwise
# timeout = 120
# max_retries = 3
# max_concurrent = 5        # in the whole cluster
# lost_share = "freeze"     # when the share is silent for longer than a lease: "freeze", "stop" or "continue"
# uses = ["api"]            # limits that it uses; {api = 2} for two units
# breaker = {failures = 5, open_s = 60}  # so many failures in a row: nothing of it starts for so long, then one tries
# model = "big-1"           # of agents, where a worker's profile names none; a task may, where the profile allows it
# max_tokens = 8000         # of one answer of an agent's model
# temperature = 0.2
# priority = "high"         # an integer (larger is more urgent), or critical, high, normal, low, background

# [limits.api]              # what tasks that use "api" may use together
# max = 5                   # units at once
# per = "pool"              # "worker": each worker counts its own
# rate = {count = 120, per_s = 60}  # units that begin within so many seconds
# quota_max_s = 21600       # the longest time for which an attempt that finds a quota used up closes it

# [classes.critical]        # slots that are reserved for tasks of the class "critical"
# slots = 3
# borrow = true             # it may use what other classes leave idle

# [budgets.nightly]         # what attempts of tasks that draw on "nightly" may come to together
# cost_usd = 5.0
# tokens = 1000000
# task_s = 36000            # seconds that attempts ran
# per = "day"               # "total", "day", "batch" or "type"
# over = "hold"             # "fail": a task that does not fit fails
# unknown = "count_as_zero" # "refuse": nothing starts whose cost is not known

# [children]                # tasks that running tasks submit
# max_depth = 5
# max_per_task = 1000

# [locks]
# reserve_s = 1800          # how long a reservation stands if its author names no end
# max_reserve_s = 86400

# [retry]
# max = 3
# backoff_s = 1
# factor = 2
# jitter = 0.25
# max_backoff_s = 3600
# max_retry_after_s = 86400 # the longest rest that an attempt may ask for
# crash_limit = 3           # a task under which this many workers died is failed
# max_later = 100           # once so many attempts have charged nothing, exit code 75 fails the task
# memory_factor = 1         # after an attempt ran out of memory, the next asks for so many times as much

# [drop]
# grace_s = 10              # how long an unfinished drop may rest before it is rejected
# empty_grace_s = 60        # the same for an empty one on a share: NFS shows nothing before its writer closes it
# watch_s = 600             # how long a slow writer's file is watched for more, admitted or rejected
# max_bytes = 16777216
# max_batch_bytes = 1073741824

# [retention]
# completed_s = 86400       # then it moves to archive/
# failed_s = 604800
# keep = 10000              # at most this many in completed/ and failed/ each
# archive_s = 2592000       # then it is deleted
# events_s = 2592000
# tmp_s = 86400             # what a client that died left in tmp/ is then removed

# [ready]
# window = 256              # tasks per lane that stand ready to be claimed

# [fair]
# by = "batch"              # of one priority, batches take turns; "owner": users; "none": first come, first served

# [disk]
# warn = 0.80               # of the share in use
# stop = 0.95               # nothing is admitted and nothing starts, unless enough_free_mb are free
# enough_free_mb = 1024

# [alerts]                  # what people are told of; a line with an example is off until you write it
# failure_rate = 0.1        # example: more than this part of the last 100 attempts failed
# memory = 0.8              # example: more than this part of a node's memory is in use
# queue = 100               # example: more tasks than this wait or are ready
# budget = 0.8              # this part of a budget is spent
# stuck_s = 600             # tasks are ready, a worker has nothing to do, and nothing starts for so long; 0: off
# dead_s = 600              # how long the alert of a dead node stands; 0: off
# followers = 0             # fewer workers on other hosts and standbys than this
# limits = true             # a limit is closed
# breakers = true           # the breaker of a type is open
# disk = true               # the share is fuller than [disk] warn, and than stop
# after_s = 10              # how long memory, queue or followers are out of bounds before that is an alert
# task = {type = "notify"}  # example: each alert becomes one task of this type, with the alert as its input

# [durability]
# fsync = true

# [poll]
# busy_s = 0.1
# idle_s = 0.5
# hinted_s = 2.0            # idle, on a local file system that tells of changes
"""


def initialise(fs: FileSystem, clock: Clock, spool_id: str, where: str, claim: Strategy = "rename") -> Marker:
    """Make a spool in an empty directory. Errors: Unavailable if it is a spool, is not empty, or cannot be written.

    claim: how nodes make moves in this spool for ever. The marker comes last: a directory with a marker is a whole
    spool, and a half-made one can be made again.
    """
    try:
        names = fs.list("")
        if layout.MARKER in names:
            raise Unavailable(f"{where} is a spool already (it has {layout.MARKER}).")
        strange = [name for name in sorted(names) if not _may_be_there(name)]
        if strange:
            # A leader clears tmp/, events/ and archive/ by age: they must not be a person's own.
            raise Unavailable(f"{where} is not empty (it has {strange[0]}). Name a new or empty directory.")
        for directory in layout.TREE:
            make_directory(fs, directory)
        if blocked := obstacles(fs):
            raise Unavailable(f"{where} cannot become a spool: {'; '.join(blocked)}.")
        if not list_leases(fs):
            fs.write(layout.join(layout.MASTER, LeaseName(0, 0, NOBODY).encode()), b"", durable=True)
        if layout.SETTINGS not in fs.list(""):
            fs.write(layout.SETTINGS, SETTINGS_TEMPLATE, durable=True)
        if claim == "lock" and layout.LOCK not in fs.list(""):
            fs.write(layout.LOCK, b"", durable=True)
        marker = Marker.model_validate({"spool_id": spool_id, "claim": claim, "created_at": stamp(clock.wall())})
        fs.write(UNFINISHED, codec.dump(marker) + b"\n", durable=True)
        fs.rename(UNFINISHED, layout.MARKER)
        fs.sync("")
    except OSError as error:
        raise Unavailable(
            f"{where}: cannot make a spool: {error.strerror}. Check the permissions of the share."
        ) from error
    return marker


def _may_be_there(name: str) -> bool:
    """Whether a directory with this entry counts as empty: a half-made spool, or files that file servers hide."""
    ours = {*layout.TREE, layout.SETTINGS, layout.LOCK, UNFINISHED}
    return (
        name in ours or name.startswith((".", "@", "#", "$")) or name in ("lost+found", "System Volume Information")
    )


def restore(fs: FileSystem, wanted: Collection[str] = tuple(layout.TREE)) -> list[str]:
    """Make missing directories of the tree in an existing spool; return their names. Errors: OSError.

    Never without the marker: an empty mount point is not a spool that lost everything.
    """
    names = set(fs.list(""))
    missing = [name for name in wanted if name not in names] if layout.MARKER in names else []
    for name in missing:
        make_directory(fs, name)
    return missing
