"""The slot of the caller's task: lent while a call waits, asked for once, and never waited for without end."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from spoold.client.in_task import LEND_AFTER_S, SlotLoan
from spoold.faces.mcp.session import Slot
from spoold.system.slot_loans import LocalLoans


def slot_in(tmp_path: Path) -> tuple[Slot, LocalLoans]:
    """A slot of a task, and the worker's end of its loans."""
    loans = LocalLoans(str(tmp_path / "loans"))
    environ = {"SPOOL_SLOT_DIR": loans.directory, "SPOOL_TASK_ID": "t", "SPOOL_ATTEMPT": "1"}
    return Slot(SlotLoan(environ)), loans


def test_a_slot_is_lent_asked_for_and_here_again(tmp_path: Path) -> None:
    slot, loans = slot_in(tmp_path)

    async def waits() -> None:
        async with slot.lent() as pause:
            await pause(LEND_AFTER_S)
            assert loans.look() == []
            await pause(0)
            assert [(loan.attempt, loan.back) for loan in loans.look()] == [("t.1", False)]
            assert await slot.back(0), "others still wait"
        (asked,) = loans.look()
        assert asked.back
        assert not await slot.back(0.1)
        # A wait that begins meanwhile lends nothing new.
        async with slot.lent() as pause:
            await pause(LEND_AFTER_S)
            await pause(0)
            assert loans.look() == [asked]
        loans.settle(asked)
        assert await slot.back(0)
        async with slot.lent() as pause:
            await pause(LEND_AFTER_S)
            await pause(0)
            assert [loan.back for loan in loans.look()] == [False]

    anyio.run(waits)


def test_a_wait_that_is_over_at_once_lends_nothing(tmp_path: Path) -> None:
    slot, loans = slot_in(tmp_path)

    async def waits() -> None:
        async with slot.lent() as pause:
            await pause(0)
        assert await slot.back(0)
        assert os.listdir(loans.directory) == []

    anyio.run(waits)


def test_outside_of_tasks_there_is_nothing_to_lend() -> None:
    slot = Slot(SlotLoan({}))

    async def waits() -> None:
        async with slot.lent() as pause:
            await pause(LEND_AFTER_S)
            await pause(0)
        assert await slot.back(0)

    anyio.run(waits)
