"""Holds a dump's live ranges, positions and uses against what follows from its HLO text."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .assigned_ranges import ranges_of
from .completion import used_values
from .derived import Derived
from .numbered_program import NONE, Ints
from .parts import Parts


def agrees(
    derived: Derived, number: Ints, values: pa.Table, tables: Mapping[str, pa.Table]
) -> bool:
    """Whether a module's live ranges, positions and uses are those of its HLO text.

    `values` are the module's values by value_id, `number` their numbers in the text;
    `tables` has live_ranges, positions and uses. Nearly all modules agree, so this compares
    numbers only; `difference` says where a module differs.
    """
    flow, liveness = derived.dataflow, derived.liveness
    ranges = tables["live_ranges"]
    named = _numbers(values, number, ranges)
    if (named == NONE).any():
        return False
    if not (
        np.array_equal(liveness.start[named], ranges["start_time"].to_numpy())
        and np.array_equal(liveness.end[named], ranges["end_time"].to_numpy())
    ):
        return False
    is_assigned = np.zeros(len(flow) + 1, bool)
    is_assigned[number] = True
    is_assigned[NONE] = False
    slots = flow.slots
    index = slots.trees.index[slots.node]
    held = np.flatnonzero(is_assigned[flow.value])
    used = np.flatnonzero(is_assigned[flow.use_value])
    positions, uses = tables["positions"], tables["uses"]
    return _same(
        (flow.value[held], slots.instruction[held], index[held]),
        (
            _numbers(values, number, positions),
            positions["instruction_id"].to_numpy(),
            _codes(slots.trees.index_texts, positions["shape_index"]),
        ),
    ) and _same(
        (
            flow.use_value[used],
            flow.use_instruction[used],
            flow.use_operand[used],
            index[flow.use_slot[used]],
        ),
        (
            _numbers(values, number, uses),
            uses["instruction_id"].to_numpy(),
            uses["operand_number"].to_numpy(),
            _codes(slots.trees.index_texts, uses["operand_shape_index"]),
        ),
    )


def _numbers(values: pa.Table, number: Ints, rows: pa.Table) -> Ints:
    """The number in the text of each row's value; NONE of a value that is not there."""
    ids, wanted = values["value_id"].to_numpy(), rows["value_id"].to_numpy()
    at = np.minimum(np.searchsorted(ids, wanted), max(len(ids) - 1, 0))
    return np.where(ids[at] == wanted, number[at], NONE)


def _codes(texts: list[str], column: pa.ChunkedArray) -> Ints:
    found = pc.index_in(column, value_set=pa.array(texts, pa.large_string()))
    codes: Ints = pc.fill_null(found, NONE).to_numpy()
    return codes


def _same(ours: tuple[Ints, ...], theirs: tuple[Ints, ...]) -> bool:
    """Whether two lists of rows, given by columns, are the same in whatever order."""
    if len(ours[0]) != len(theirs[0]) or any((column == NONE).any() for column in theirs):
        return False
    keys = [np.zeros(len(ours[0]), np.int64), np.zeros(len(ours[0]), np.int64)]
    for mine, other in zip(ours, theirs, strict=True):
        width = int(max(mine.max(initial=0), other.max(initial=0))) + 1
        keys = [key * width + column for key, column in zip(keys, (mine, other), strict=True)]
    return np.array_equal(np.sort(keys[0]), np.sort(keys[1]))


def difference(parts: Parts, derived: Derived) -> str | None:
    """The first value whose live range, positions or uses differ; None if all agree.

    None too if a part is missing.
    """
    if parts.buffer_assignment is None:
        return None
    if parts.live_range is None or parts.used_values is None:
        return None
    return _ranges(parts, derived) or _places(parts, derived)


def _ranges(parts: Parts, derived: Derived) -> str | None:
    assert parts.buffer_assignment is not None
    assert parts.live_range is not None
    values = parts.buffer_assignment.values
    ours = ranges_of(derived, values)
    at = pc.index_in(values["value_id"], value_set=ours["value_id"].combine_chunks())
    named = values.filter(pc.is_valid(at)).select(["instruction", "shape_index"])
    found = ours.take(at.drop_null())
    worked_out = named.append_column("start_time", found["start_time"]).append_column(
        "end_time", found["end_time"]
    )
    # Constants may lack a live range in the dump.
    differing = _only_in(parts.live_range.ranges, worked_out)
    if differing is None:
        return None
    name = f"{differing['instruction']}{differing['shape_index']}"
    lives = f"{differing['start_time']} to {differing['end_time']}"
    return f"{name} lives from {lives} in the dump, otherwise by the HLO text"


def _places(parts: Parts, derived: Derived) -> str | None:
    assert parts.buffer_assignment is not None
    assert parts.used_values is not None
    ours = used_values(parts.buffer_assignment, derived)
    for what, theirs, worked_out, number in (
        ("position", parts.used_values.positions, ours.positions, "position_index"),
        ("use", parts.used_values.uses, ours.uses, "use_index"),
    ):
        # The text does not say in which order XLA lists them.
        theirs, worked_out = theirs.drop_columns(number), worked_out.drop_columns(number)
        if _equal(theirs, worked_out):
            continue
        for row, where in (
            (_only_in(theirs, worked_out), "is in the dump and does not follow from the HLO text"),
            (_only_in(worked_out, theirs), "follows from the HLO text and is not in the dump"),
        ):
            if row is not None:
                return f"value {row['value_id']}: {what} {row['instruction']} {where}"
    return None


def _equal(rows: pa.Table, others: pa.Table) -> bool:
    """Whether two tables have the same rows, in whatever order.

    Nearly all modules agree, so this is quicker than to look for a row that differs.
    """
    if len(rows) != len(others):
        return False
    keys = np.zeros(len(rows) + len(others), np.int64)
    for name in rows.column_names:
        both = pa.chunked_array([*rows[name].chunks, *others[name].cast(rows[name].type).chunks])
        codes = both.combine_chunks().dictionary_encode().indices.to_numpy()
        keys = keys * (int(codes.max(initial=0)) + 1) + codes
        # Small numbers again, so that the next column has room.
        keys = np.unique(keys, return_inverse=True)[1]
    return np.array_equal(np.sort(keys[: len(rows)]), np.sort(keys[len(rows) :]))


def _only_in(rows: pa.Table, others: pa.Table) -> dict[str, object] | None:
    """The first row, by its order, that is not among the others; None if all are."""
    keys = rows.column_names
    counted = pa.Table.from_arrays(rows.columns, names=keys)
    numbered = counted.append_column("row", pa.array(range(len(rows)), pa.int64()))
    aligned = others.select(keys).cast(counted.schema)
    left = numbered.join(aligned, keys=keys, join_type="left anti")
    if not len(left):
        return None
    first = int(pc.min(left["row"]).as_py())
    found: dict[str, object] = rows.slice(first, 1).to_pylist()[0]
    return found
