"""The order of a stored program's instructions, as `xla/order.py` asks it."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from ...xla.order import Buffers, Ordering
from ...xla.program import NONE, Ints
from .asked_program import Program

# Transfers and what touches another memory keep their mutual order: XLA hides their latency.
_MOVES = ("-start", "-done", "-update")


class StoredOrder(NamedTuple):
    """The orders of a program, and the values that each buffer holds."""

    ordering: Ordering
    values: list[list[int]]


def order_of(program: Program) -> StoredOrder:
    """The orders of a program's instructions. What they do must be known."""
    assert program.hlo is not None
    times = pc.fill_null(program.instructions["schedule_time"], NONE)
    schedule_time = times.to_numpy().astype(np.int64)
    values = program.rows(
        "SELECT value_id, instruction_id, alias_set, memory_space, size_bytes"
        ' FROM "values" WHERE module_id = $1 ORDER BY value_id'
    )
    value, row, space = (
        values[name].to_numpy().astype(np.int64)
        for name in ("value_id", "instruction_id", "memory_space")
    )
    defined = np.zeros(len(program.hlo), np.int64)
    np.add.at(defined, row, pc.fill_null(values["size_bytes"], 0).to_numpy().astype(np.int64))
    own = -1 - np.arange(len(values))
    alias_set = pc.fill_null(values["alias_set"], -1).to_numpy().astype(np.int64)
    set_of = dict(
        zip(value.tolist(), np.where(alias_set < 0, own, alias_set).tolist(), strict=True)
    )
    uses = list(
        zip(
            program.uses["value_id"].to_pylist(),
            program.uses["instruction_id"].to_pylist(),
            strict=True,
        )
    )
    in_place = [
        (set_of[each], at, True) for each, at in zip(value.tolist(), row.tolist(), strict=True)
    ]
    in_place += [(set_of[each], at, False) for each, at in uses if each in set_of]
    number, size = _temps(program, set_of)
    touches = sorted({(number[own], at) for own, at, _ in in_place if own in number})
    buffers = Buffers(
        size,
        np.array([buffer for buffer, _ in touches], np.int64),
        np.array([at for _, at in touches], np.int64),
        _shares(
            program, set_of, number, dict(zip(value.tolist(), row.tolist(), strict=True)), uses
        ),
        in_place,
        defined,
    )
    held: list[list[int]] = [[] for _ in number]
    for each in value.tolist():
        if set_of[each] in number:
            held[number[set_of[each]]].append(each)
    kept = _kept(program, row, space, uses, value)
    return StoredOrder(Ordering(program.hlo, schedule_time, buffers, kept), held)


def _temps(program: Program, set_of: dict[int, int]) -> tuple[dict[int, int], Ints]:
    """The sets that lie in temps alone, numbered, and their sizes."""
    layout = program.layout
    temps = set(layout.allocation_index[layout.is_temp].tolist())
    sizes: dict[int, int] = {}
    fixed = set()
    columns = (layout.value_id, layout.allocation, layout.size)
    for value, allocation, size in zip(*(each.tolist() for each in columns), strict=True):
        own = set_of[value]
        if allocation in temps:
            sizes[own] = max(size, sizes.get(own, 0))
        else:
            fixed.add(own)
    kept = sorted(own for own in sizes if own not in fixed)
    number = {own: at for at, own in enumerate(kept)}
    return number, np.array([sizes[own] for own in kept], np.int64)


def _shares(
    program: Program,
    set_of: dict[int, int],
    number: dict[int, int],
    row_of: dict[int, int],
    uses: list[tuple[int, int]],
) -> list[tuple[int, int, int]]:
    """Where a result lies in the place of an operand today."""
    layout = program.layout
    columns = (layout.value_id, layout.allocation, layout.offset, layout.size)
    place = {
        value: (allocation, low, low + size)
        for value, allocation, low, size in zip(*(each.tolist() for each in columns), strict=True)
        if set_of[value] in number
    }
    results = defaultdict(list)
    for value, row in row_of.items():
        if value in place:
            results[row].append(value)
    found = []
    for operand, row in uses:
        if operand not in place:
            continue
        memory, low, high = place[operand]
        for result in results.get(row, ()):
            other, start, stop = place[result]
            given, taken = number[set_of[operand]], number[set_of[result]]
            if given != taken and memory == other and max(low, start) < min(high, stop):
                found.append((row, given, taken))
    return sorted(set(found))


def _kept(
    program: Program,
    row: Ints,
    space: Ints,
    uses: list[tuple[int, int]],
    value: Ints,
) -> set[int]:
    """The instructions whose mutual order stays: on CPU none."""
    if program.platform == "cpu":
        return set()
    elsewhere = space != program.layout.memory_space
    away = set(value[elsewhere].tolist())
    opcodes = enumerate(program.graph.opcode)
    kept = {at for at, opcode in opcodes if opcode.endswith(_MOVES)}
    return kept | set(row[elsewhere].tolist()) | {at for each, at in uses if each in away}
