"""What donating arguments changes: outputs lie in the arguments' memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...xla.occupancy import Ints
from .asked_program import Program
from .foreseen_copies import Foreseen
from .free_memory import FreeMemory, values_share_allocations, values_that_move
from .replay import Change, Piece, saving
from .space_layout import Layout


@dataclass(frozen=True)
class Donation:
    """What donating brings: by how many bytes the peak falls, with XLA's own copies and without.

    change: with these copies; without_copies: without them. Where XLA reuses more memory with
    copies than without, both are that.
    """

    change: Change
    without_copies: Change
    most_bytes: int
    least_bytes: int


def donate(program: Program, foreseen: Sequence[Foreseen]) -> Donation:
    """Replay the program with each pair's output in its argument's memory."""
    change = _change(program, foreseen, with_copies=False)
    most = saving(program.layout, change)
    if not any(each.is_copied for each in foreseen):
        return Donation(change, change, most, most)
    copied = _change(program, foreseen, with_copies=True)
    least = saving(program.layout, copied)
    if least > most:
        return Donation(copied, copied, least, most)
    # The copies can be bounded only roughly, but they never took more than donation saved.
    return Donation(copied if least > 0 else Change(), change, most, max(0, least))


def _change(program: Program, foreseen: Sequence[Foreseen], *, with_copies: bool) -> Change:
    layout = program.layout
    freed = frozenset(each.pair.output.allocation_index for each in foreseen)
    gone: set[int] = set()
    free: list[FreeMemory] = []
    copies: list[Piece] = []
    for number, each in enumerate(foreseen):
        rows = _rows_of_output(layout, each)
        size = each.pair.argument.padded_bytes
        taken = _times(layout, rows)
        free_from = each.last_read + (not each.is_written_over)
        if with_copies and each.copies_argument:
            # The copy is there before its original is written over.
            free_from = min(each.first_read, *(start for start, _ in taken))
            # A CPU's schedule may have all copies at its beginning.
            made = 0 if program.platform == "cpu" else free_from
            copies.append(Piece(number, size, made, each.last_read))
        if with_copies and each.copies_output:
            # The output stays where it is, but as a temp, and is copied at the end.
            taken = [(layout.schedule_length, layout.schedule_length)]
        else:
            rows = np.union1d(rows, _rows_of_borrowers(layout, each, free_from))
            gone.update(layout.value_id[rows].tolist())
            taken = _times(layout, rows)
        # The output itself stays until the end.
        until = min(start for start, end in taken if end == layout.schedule_length)
        free.append(FreeMemory(size, free_from, until - 1, taken))
    # Some versions of a TPU's compiler keep temps apart from arguments and results.
    if program.platform != "tpu" or values_share_allocations(layout):
        gone |= values_that_move(layout, free, freed, gone)
    return Change(frozenset(gone), freed, tuple(copies))


def _rows_of_output(layout: Layout, foreseen: Foreseen) -> Ints:
    """The rows of the values that share the output's memory as one."""
    own = layout.alias_set[layout.rows_of(np.array([foreseen.pair.output.value_id]))]
    return np.flatnonzero(np.isin(layout.alias_set, own))


def _rows_of_borrowers(layout: Layout, foreseen: Foreseen, free_from: int) -> Ints:
    """The rows of values that lie in the output's memory while it is free, and come along."""
    within = layout.allocation == foreseen.pair.output.allocation_index
    early = layout.alias_set[within & (layout.start < free_from)]
    return np.flatnonzero(within & ~np.isin(layout.alias_set, early))


def _times(layout: Layout, rows: Ints) -> list[tuple[int, int]]:
    return list(zip(layout.start[rows].tolist(), layout.end[rows].tolist(), strict=True))
