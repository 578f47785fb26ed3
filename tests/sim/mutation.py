"""One law broken: a function or method of the product replaced for the duration of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

Swap = tuple[Any, str, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A break of a law. swaps gives what is replaced: owner, name, substitute; harmless: it breaks policy alone.

    world: where it is hunted, one of worlds.WORLDS.
    """

    name: str
    law: str
    says: str
    swaps: Callable[[], list[Swap]]
    harmless: bool = False
    world: str = "fit"

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The product is broken in this way inside, and whole again afterwards."""
        with ExitStack() as stack:
            for owner, name, substitute in self.swaps():
                # Not getattr: a property or a static method has to be put back as what it is.
                before = vars(owner)[name]
                setattr(owner, name, substitute)
                stack.callback(setattr, owner, name, before)
            yield


class Mutations:
    """The mutants of one room, in the order in which they are told."""

    def __init__(self, world: str = "fit") -> None:
        self.world = world
        self.all: list[Mutant] = []

    def add(self, law: str, says: str, *, harmless: bool = False) -> Callable[[Callable[[], list[Swap]]], None]:
        """A decorator: the function's name is the mutant's, what it returns are its swaps."""

        def keep(swaps: Callable[[], list[Swap]]) -> None:
            self.all.append(Mutant(swaps.__name__.replace("_", "-"), law, says, swaps, harmless, self.world))

        return keep
