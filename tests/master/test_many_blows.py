"""Several things go wrong in one story, and it ends as it should.

What goes wrong is drawn from a seed, so that every run is the same: calls that fail in every way, crashes, frozen and
cut-off nodes, stops in the middle of a call, and people who pause, halt, drain, reap and archive meanwhile. Fifty
seeds are played here, and two thousand with `SPOOLD_EVERY_CALL=1`, which takes two minutes.
"""

import errno
import os
from random import Random

import pytest

from tests.support.faults import How
from tests.support.story import Story

SEEDS = 2000 if os.environ.get("SPOOLD_EVERY_CALL") == "1" else 50
PEACE_FROM = 60
CODES = (errno.EIO, errno.ESTALE, errno.ENOSPC, errno.EACCES, errno.EHOSTDOWN, errno.ENOENT)
VERBS = ("", "rename", "rename", "list", "read", "write", "unlink", "mkdir", "rmdir")
HOWS: tuple[How, ...] = ("refused", "done", "late")
REQUESTS = (
    ("gc", "+all"),
    ("drain", "w1"),
    ("drain", "w2"),
    ("reap", "w1"),
    ("reap", "w2"),
    ("pause", "+all"),
    ("pause", "command"),
    ("halt", "+all"),
    ("resume", "+all"),
    ("resume", "+all"),
    ("undrain", "+all"),
)


class Harm:
    """What is done to a story, round by round, until there is peace."""

    def __init__(self, story: Story, seed: int) -> None:
        self._story = story
        self._random = Random(seed)
        self._blows = self._random.choice((1, 2, 4, 8))

    def __call__(self, round_: int) -> None:
        nodes = list(self._story.cluster.nodes.values())
        for node in nodes:
            if node.fs.waiting and self._random.random() < 0.3:
                node.fs.deliver()
        if round_ >= PEACE_FROM:
            for node in nodes:
                node.fs.faults.clear()
                node.fs.off = node.frozen = False
            if round_ == PEACE_FROM:
                self._ask(("resume", "+all"), round_)
            return
        if self._random.random() < 0.15:
            self._ask(self._random.choice(REQUESTS), round_)
        if self._blows and self._random.random() < 0.5:
            self._blows -= 1
            self._strike()

    def _ask(self, request: tuple[str, str], round_: int) -> None:
        path = f"control/{'.'.join(request)}.{round_}.json"
        self._story.cluster.fs.write(path, b"{}", durable=False)

    def _strike(self) -> None:
        random, cluster = self._random, self._story.cluster
        node = random.choice(list(cluster.nodes.values()))
        kind = random.choice(("error", "error", "error", "crash", "freeze", "cut", "hang"))
        if kind == "error":
            times, after = random.choice((1, 1, 3)), random.randrange(30)
            node.fs.fail(random.choice(VERBS), "", random.choice(CODES), random.choice(HOWS), times, after)
        elif kind == "crash":
            node.fs.crash_after, node.fs.last_words = random.randrange(60), random.random() < 0.5
        elif kind == "freeze":
            node.frozen = not node.frozen
        elif kind == "cut":
            node.fs.off = not node.fs.off
        else:
            length = random.choice((1, 4, 8))
            cluster.during(node.name, random.choice(VERBS[2:5]), "", lambda: cluster.advance(length))


@pytest.mark.parametrize("tens", range(SEEDS // 10))
def test_many_blows(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        story = Story()
        try:
            story.play(Harm(story, seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
