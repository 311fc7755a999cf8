"""Fills in the parts that a program's source lacks, from its scheduled HLO text.

A dump with a buffer assignment gets exact live ranges, positions and uses ("derived"). HLO
text alone also gets allocations and places of its own ("estimated").
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DumpError
from .assigned_ranges import ranges_of
from .derived import Derived
from .derived_tables import exact_tables, value_rows
from .numbered_program import NONE, Ints
from .parts import BufferAssignment, LiveRange, Parts, UsedValues
from .placement import CONSTANT, OUTPUT, PARAMETER, TEMP, THREAD_LOCAL
from .reported_peak import NO_PEAK, reported_peak
from .sharing import Estimate, estimate


def completed(
    parts: Parts, derived: Derived, *, platform: str | None = None
) -> tuple[Parts, str | None]:
    """The parts with what the HLO text gives in addition, and why nothing could be added.

    Parts that were dumped stay as they are. `platform` is what the file names say.
    """
    if parts.hlo is None or _is_whole(parts):
        return parts, None
    try:
        if parts.buffer_assignment is None:
            if parts.used_values is not None or parts.live_range is not None:
                return parts, None
            found = estimate(parts.hlo, derived, platform=platform)
            parts = replace(parts, buffer_assignment=_estimated(derived, found))
            # The heap counts a value that lies within its user until just before the user.
            derived = replace(derived, liveness=replace(derived.liveness, end=found.ends))
        elif unassigned := _unassigned(parts.buffer_assignment, derived):
            return parts, unassigned
        return _derived(parts, derived), None
    except DumpError as error:
        return parts, str(error)


def _unassigned(assignment: BufferAssignment, derived: Derived) -> str | None:
    """Whether values of the text lack an allocation: then the assignment is cut short."""
    has_range = derived.liveness.ranges_table()
    held = ranges_of(derived, assignment.values)
    lost = len(has_range) - len(held)
    return f"{lost} values of the HLO text are not in BufferAssignment" if lost > 0 else None


def _is_whole(parts: Parts) -> bool:
    return None not in (parts.buffer_assignment, parts.used_values, parts.live_range)


def _derived(parts: Parts, derived: Derived) -> Parts:
    """The parts with live ranges, positions and uses of the values that are assigned."""
    assignment = parts.buffer_assignment
    assert assignment is not None
    if parts.live_range is None:
        ranges = ranges_of(derived, assignment.values)
        rows = pc.index_in(
            ranges["value_id"], value_set=assignment.values["value_id"].combine_chunks()
        )
        order = derived.schedule.order
        names = derived.program.names.take(pa.array(order))
        # An estimate's values are not XLA's, so XLA reported no such peak.
        is_xla = assignment.origin == "dumped"
        peak_time, peak = reported_peak(derived) if is_xla else (None, NO_PEAK)
        parts.live_range = LiveRange(
            schedule_length=len(order),
            schedule=pa.table(
                {"schedule_time": pa.array(np.arange(len(order)), pa.int32()), "instruction": names}
            ),
            ranges=pa.table(
                {
                    "instruction": assignment.values["instruction"].take(rows),
                    "shape_index": assignment.values["shape_index"].take(rows),
                    "start_time": ranges["start_time"],
                    "end_time": ranges["end_time"],
                }
            ),
            peak_time=peak_time,
            peak=peak,
            origin="derived",
        )
    if parts.used_values is None:
        parts.used_values = used_values(assignment, derived)
    return parts


def used_values(assignment: BufferAssignment, derived: Derived) -> UsedValues:
    """The positions and uses of the assigned values, by the assignment's numbers."""
    tables = exact_tables(derived)
    ours = _plain(derived.dataflow.values_table())
    names = derived.program.names
    # Equal columns on both sides: the instruction's name and the index.
    ours = ours.append_column("instruction", names.take(ours["instruction_id"].combine_chunks()))
    theirs = assignment.values.select(["value_id", "instruction", "shape_index"])
    joined = ours.select(["value_id", "instruction", "shape_index"]).join(
        theirs.rename_columns(["assigned_id", "instruction", "shape_index"]),
        keys=["instruction", "shape_index"],
        join_type="inner",
    )

    def renumbered(table: pa.Table) -> pa.Table:
        at = pc.index_in(table["value_id"], value_set=joined["value_id"].combine_chunks())
        kept = table.filter(pc.is_valid(at))
        assigned = joined["assigned_id"].take(at.drop_null())
        kept = kept.set_column(0, "value_id", assigned)
        named = names.take(kept["instruction_id"].combine_chunks())
        place = kept.schema.get_field_index("instruction_id")
        return kept.set_column(place, "instruction", named)

    columns = ["value_id", "instruction", "shape_index", "is_phi", "memory_space"]
    is_xla = assignment.origin == "dumped"
    return UsedValues(
        # XLA prints the sum of all allocations.
        total_bytes=pc.sum(assignment.allocations["size_bytes"]).as_py() if is_xla else None,
        values=assignment.values.select(columns),
        positions=renumbered(_plain(tables["positions"])),
        uses=renumbered(_plain(tables["uses"])),
        origin="derived",
    )


def _estimated(derived: Derived, found: Estimate) -> BufferAssignment:
    """Allocations and values as an assignment would have them, with places for addresses.

    Values that share a place have one offset. Places follow each other in the order of the
    text: their order is not XLA's packing, so the temp's size says nothing.
    """
    dataflow, placement, sizes = derived.dataflow, found.placement, found.sizes
    kind, space = placement.kind, sizes.space
    numbers = np.arange(len(dataflow))
    own = (placement.allocation == numbers) & np.isin(kind, (CONSTANT, PARAMETER, OUTPUT))
    fixed = np.flatnonzero(own)
    is_temp = kind == TEMP
    temp_spaces = np.unique(space[is_temp])
    index_of = np.full(len(dataflow), NONE)
    index_of[fixed] = np.arange(len(fixed))
    at = np.where(placement.allocation != NONE, index_of[placement.allocation], NONE)
    at[is_temp] = len(fixed) + np.searchsorted(temp_spaces, space[is_temp])
    offset, temp_sizes = _places(found, is_temp, temp_spaces)
    values = _plain(value_rows(dataflow, sizes))
    number, shape_index, shape = _parameters(derived, fixed, values["shape"])
    names = derived.program.names.take(values["instruction_id"].combine_chunks())
    values = values.set_column(
        values.schema.get_field_index("instruction_id"), "instruction", names
    )
    values = values.append_column("allocation_index", pa.array(at, pa.int32(), mask=at == NONE))
    values = values.append_column("offset_bytes", pa.array(offset, pa.int64()))
    # Values of regions belong to the computations within an instruction, not to the program.
    values = values.filter(pa.array((at != NONE) & (kind != THREAD_LOCAL)))
    count = len(fixed) + len(temp_spaces)
    of_fixed = np.concatenate([kind[fixed], np.full(len(temp_spaces), TEMP)])
    lives_out = np.concatenate([placement.lives_out[fixed], np.zeros(len(temp_spaces), bool)])
    none = pa.nulls(count, pa.int64())
    allocations = pa.table(
        {
            "allocation_index": pa.array(np.arange(count), pa.int32()),
            "memory_space": pa.array(np.concatenate([space[fixed], temp_spaces]), pa.int32()),
            "size_bytes": pa.array(np.concatenate([placement.set_size[fixed], temp_sizes])),
            "is_parameter": pa.array(of_fixed == PARAMETER),
            "parameter_number": _padded(number, count),
            "parameter_shape_index": _padded(shape_index, count),
            "is_output": pa.array(np.zeros(count, bool)),
            "is_constant": pa.array(of_fixed == CONSTANT),
            "is_thread_local": pa.array(np.zeros(count, bool)),
            "maybe_live_out": pa.array(lives_out & (of_fixed != CONSTANT)),
            "is_temp": pa.array(of_fixed == TEMP),
            "shape": _padded(shape, count),
            "address": none,
        }
    )
    return BufferAssignment(allocations, values, origin="estimated")


def _places(found: Estimate, is_temp: Ints, spaces: Ints) -> tuple[Ints, Ints]:
    """Each value's offset, and the bytes of all places in each of the spaces."""
    offset = np.zeros(len(found.group), np.int64)
    totals = []
    for space in spaces.tolist():
        here = np.flatnonzero(is_temp & (found.sizes.space == space))
        places, place = np.unique(found.group[here], return_inverse=True)
        largest = np.zeros(len(places), np.int64)
        np.maximum.at(largest, place, found.sizes.size[here])
        ends = np.cumsum(largest)
        offset[here] = (ends - largest)[place]
        totals.append(int(ends[-1]))
    return offset, np.array(totals, np.int64)


def _parameters(
    derived: Derived, fixed: Ints, shapes: pa.ChunkedArray
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The argument that each fixed allocation holds: number, index and shape, null for others."""
    program, dataflow = derived.program, derived.dataflow
    alias_set = derived.liveness.alias_set
    row = dataflow.instruction
    is_argument = (program.parameter_number[row] != NONE) & (
        program.computation[row] == program.entry
    )
    values = np.flatnonzero(is_argument)
    of_set = np.full(len(dataflow), NONE)
    of_set[alias_set[values[::-1]]] = values[::-1]
    value = of_set[alias_set[fixed]]
    at = pa.array(value, mask=value == NONE)
    number = pa.array(program.parameter_number[row], pa.int32()).take(at)
    index = _plain(dataflow.values_table())["shape_index"].combine_chunks().take(at)
    shape = pc.replace_substring_regex(shapes.combine_chunks().take(at), r"\{.*", "")
    return number, index, shape


def _plain(table: pa.Table) -> pa.Table:
    """The table with its texts as texts: the analyses keep them by dictionaries."""
    return table.cast(
        pa.schema(
            [
                pa.field(f.name, pa.large_string()) if pa.types.is_dictionary(f.type) else f
                for f in table.schema
            ]
        )
    )


def _padded(column: pa.Array, count: int) -> pa.Array:
    """The column with nulls at its end, for the temp allocations."""
    return pa.concat_arrays([column, pa.nulls(count - len(column), column.type)])
