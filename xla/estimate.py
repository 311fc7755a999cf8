"""What a dump without a buffer assignment would hold: an estimate from its HLO text alone."""

import heapq
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns.dataflow import TPU, Dataflow, Sizes, platform_of, value_sizes
from .columns.liveness import Derived, reordered
from .columns.parts import BufferAssignment, HloText, LiveRange, Parts, UsedValues
from .columns.program import NONE, Ints, Mask
from .errors import DumpError
from .occupancy import Extents, occupied_changes
from .placement import CONSTANT, OUTPUT, PARAMETER, TEMP, THREAD_LOCAL, Placement, place
from .runs import followed
from .shapes import Shape, TupleShape, logical_bytes, shape_columns
from .sharing import Sharing, recorded_sharing

# XLA's own account of the peak, worked out where the source does not print it.
#
# `HloLiveRange` in XLA adds up logical sizes over the schedule, in all memory spaces at once.
# Each value counts as the whole result of the instruction that defines it, and a tuple as its
# table of pointers, so the figure is not the peak of any memory.

_POINTER_BYTES = 8  # on all platforms


def reported_peak(derived: Derived) -> tuple[int | None, pa.Table]:
    """The peak's time, and a row for each value live then, the largest first.

    Columns as in `LiveRange.peak`. Without a time if a shape has no size.
    """
    dataflow, liveness = derived.dataflow, derived.liveness
    slots, row = dataflow.slots, dataflow.instruction
    live = np.flatnonzero(liveness.start != NONE)
    start, end = liveness.start[live], liveness.end[live]
    shapes = slots.trees.shapes
    try:
        counted = _sizes(shapes, slots.root[row[live]])
        shown = _sizes(shapes, slots.node[dataflow.defined_at[live]])
    except ValueError:
        return None, NO_PEAK
    if not len(live):
        return None, NO_PEAK
    change = np.zeros(int(end.max()) + 3, np.int64)
    np.add.at(change, start, counted)
    # XLA takes a value away one step after its end, and only after adding what begins then.
    np.subtract.at(change, end + 2, counted)
    time = int(np.argmax(np.cumsum(change)))
    at = np.flatnonzero((start <= time) & (time <= end))
    values = live[at]
    index = slots.index.dictionary.take(
        slots.index.indices.take(pa.array(dataflow.defined_at[values]))
    )
    peak = pa.table(
        {
            "instruction": derived.program.names.take(pa.array(row[values])),
            "shape_index": index,
            "size_bytes": pa.array(shown[at]),
        }
    ).sort_by([("size_bytes", "descending"), ("instruction", "ascending")])
    return time, peak.add_column(0, "rank", pa.array(np.arange(len(at))))


def _sizes(shapes: list[Shape], nodes: Ints) -> Ints:
    """The bytes of each of these shapes. Raises ValueError for one that is unbounded."""
    distinct, code = np.unique(nodes, return_inverse=True)
    sizes = [_size(shapes[node]) for node in distinct.tolist()]
    found: Ints = np.array(sizes, np.int64)[code]
    return found


def _size(shape: Shape) -> int:
    if isinstance(shape, TupleShape):
        return _POINTER_BYTES * len(shape.elements)
    return logical_bytes(shape)


NO_PEAK = pa.schema(
    [
        ("rank", pa.int64()),
        ("instruction", pa.large_string()),
        ("shape_index", pa.large_string()),
        ("size_bytes", pa.int64()),
    ]
).empty_table()


# What shares memory with what, from HLO text alone: an estimate.
#
# XLA's heap simulator replays the schedule: a result may take the place of an operand that ends
# as the result begins, values that must alias lie in one place, and all others get a place of
# their own. A peak needs only who shares a place, and no offsets.

_VMEM = 1


@dataclass(frozen=True)
class Estimate:
    """What a program occupies: each value's size, space, kind of allocation and place.

    `group` is the number of the value that first had a temp value's place; values of one group
    share it. `ends` are the ends of the live ranges as the heap counts them.
    """

    platform: str
    sizes: Sizes
    placement: Placement
    group: Ints
    ends: Ints


def estimate(hlo: HloText, derived: Derived, *, platform: str | None = None) -> Estimate:
    """Estimate what a program occupies. Raises DumpError for an unbounded shape.

    `platform` is cpu, gpu or tpu, if the file names tell; otherwise the text tells.
    """
    platform = platform or platform_of(hlo)
    sizes = value_sizes(derived.dataflow, platform)
    sharing = Sharing(
        derived.program,
        derived.schedule,
        derived.dataflow,
        derived.liveness,
        platform,
        recorded_sharing(
            hlo.attributes().aliasing_operands, derived.program, derived.dataflow.slots
        ),
    )
    placement = place(derived, sizes, sharing)
    group = _temp_groups(derived, sizes, placement, sharing)
    ends = _heap_ends(derived, sharing)
    return Estimate(platform, sizes, placement, group, ends)


def _temp_groups(derived: Derived, sizes: Sizes, placement: Placement, sharing: Sharing) -> Ints:
    """Which temp values lie in one place: the number of the place's first value.

    A value takes the place of the first operand that ends now, is temp and is not taken yet;
    otherwise that of its alias set, if a value of the set came before.
    """
    liveness, dataflow = derived.liveness, derived.dataflow
    is_array = dataflow.slots.array[dataflow.defined_at] != NONE
    temp = placement.kind == TEMP
    pointer = _first_of_set(temp, liveness.start, liveness.alias_set)
    later, earlier = _handovers(derived, sizes, temp & is_array, sharing)
    taken: set[int] = set()
    shared: set[int] = set()
    for value, operand in zip(later.tolist(), earlier.tolist(), strict=True):
        if value not in shared and operand not in taken:
            shared.add(value)
            taken.add(operand)
            pointer[value] = operand
    return followed(pointer)


def _first_of_set(temp: Mask, start: Ints, alias_set: Ints) -> Ints:
    """For each temp value the first temp value of its alias set; itself for other values."""
    pointer = np.arange(len(temp))
    at = np.flatnonzero(temp)
    at = at[np.lexsort((at, start[at], alias_set[at]))]
    head = np.concatenate([[True], alias_set[at[1:]] != alias_set[at[:-1]]])[: len(at)]
    pointer[at] = at[np.maximum.accumulate(np.where(head, np.arange(len(at)), 0))]
    return pointer


def _handovers(derived: Derived, sizes: Sizes, temp: Mask, sharing: Sharing) -> tuple[Ints, Ints]:
    """Pairs (value, operand's value) that may share, in the order in which XLA tries them."""
    program, dataflow, liveness = derived.program, derived.dataflow, derived.liveness
    slots = dataflow.slots
    values = np.flatnonzero(temp)
    row = dataflow.instruction[values]
    values = values[~program.opcode.is_one_of("parameter")[row]]
    row = dataflow.instruction[values]
    count = program.operand_count[row]
    value = np.repeat(values, count)
    user = np.repeat(row, count)
    number = np.arange(len(value)) - np.repeat(np.cumsum(count) - count, count)
    operand = program.operands[program.operand_start[user] + number]
    position = slots.start[operand]
    held = dataflow.value[position]
    ends = (held != NONE) & (liveness.end[held] == liveness.start[value])
    ends &= temp[held] & (sizes.space[held] == sizes.space[value])
    # In VMEM a TPU looks at the operand itself, elsewhere at the instruction that defines it.
    # XLA's heap leaves values alone that must alias others.
    alone = np.bincount(liveness.alias_set, minlength=len(dataflow))[liveness.alias_set] == 1
    may = (dataflow.defined_at[held] == position) & alone[value] & alone[held]
    if sharing.platform == TPU:
        may |= sizes.space[held] == _VMEM
    at = np.flatnonzero(ends & may)
    # Of an operand that the instruction names several times, XLA looks at the first.
    _, first = np.unique(value[at] * len(slots) + position[at], return_index=True)
    at = at[np.sort(first)]
    at = at[sharing.can_share(user[at], number[at], position[at], dataflow.defined_at[value[at]])]
    # Values that begin together are results of one instruction, in the order of their ends.
    order = np.lexsort((number[at], value[at], liveness.end[value[at]], liveness.start[value[at]]))
    return value[at][order], held[at][order]


def _heap_ends(derived: Derived, sharing: Sharing) -> Ints:
    """The end of each value's range as the heap counts it.

    The operands of a TPU's ConcatBitcast lie within its result, so that they end one earlier.
    """
    end = derived.liveness.end
    return np.where(sharing.is_within_result, end - 1, end) if sharing.platform == TPU else end


def peaks(derived: Derived, found: Estimate) -> dict[int, int]:
    """The peak of each memory space, as `figures.memory_tables` finds it in the estimate's rows."""
    kind, space = found.placement.kind, found.sizes.space
    numbers = np.arange(len(derived.dataflow))
    is_temp = kind == TEMP
    own = (found.placement.allocation == numbers) & np.isin(kind, (CONSTANT, PARAMETER, OUTPUT))
    low, _ = _places(found, is_temp, np.unique(space[is_temp]))
    at_peak = {}
    for number in np.unique(space[own | is_temp]).tolist():
        here = is_temp & (space == number) & (derived.liveness.start != NONE)
        extents = Extents(
            low[here],
            (low + found.sizes.size)[here],
            derived.liveness.start[here],
            found.ends[here],
        )
        fixed = int(found.placement.set_size[own & (space == number)].sum())
        at_peak[number] = fixed + int(occupied_changes(extents)[1].max(initial=0))
    return at_peak


# The live ranges that the HLO text gives to the values of a dump.


def ranges_of(derived: Derived, values: pa.Table) -> pa.Table:
    """The live ranges of a dump's values, found by instruction and index.

    `values` has the columns value_id, instruction, shape_index; the result has value_id,
    start_time, end_time for each value that has a range.
    """
    indices = derived.dataflow.slots.trees.index_texts
    codes = pc.index_in(values["shape_index"], value_set=pa.array(indices, pa.large_string()))
    rows = pc.index_in(values["instruction"], value_set=derived.program.names)
    known = pc.and_(pc.is_valid(codes), pc.is_valid(rows))
    values, codes, rows = values.filter(known), codes.filter(known), rows.filter(known)
    slots, defined_at = derived.dataflow.slots, derived.dataflow.defined_at
    width = len(indices)
    ours = slots.instruction[defined_at] * width + slots.trees.index[slots.node[defined_at]]
    theirs = rows.to_numpy().astype(np.int64) * width + codes.to_numpy()
    at = pc.index_in(pa.array(theirs), value_set=pa.array(ours))
    table = derived.liveness.ranges_table()
    found = table.take(pc.index_in(at, value_set=table["value_id"].combine_chunks()))
    return pa.table(
        {
            "value_id": values["value_id"],
            "start_time": found["start_time"],
            "end_time": found["end_time"],
        }
    ).drop_null()


# The rows that a module's HLO text alone gives, with the columns of the warehouse's tables.
#
# An instruction_id is the instruction's row in the text, as where names are numbered in the
# order of the text. A value_id is the value's place in the text: XLA's own numbers are not in
# it.


def exact_tables(derived: Derived) -> dict[str, pa.Table]:
    """The tables that agree with XLA's to the row, but for the order of positions and uses.

    schedule (schedule_time, instruction_id), positions, uses, live_ranges.
    """
    order = derived.schedule.order
    dataflow = derived.dataflow
    return {
        "schedule": pa.table(
            {
                "schedule_time": pa.array(np.arange(len(order)), pa.int32()),
                "instruction_id": pa.array(order, pa.int32()),
            }
        ),
        "positions": _numbered(_defining_first(dataflow), "position_index"),
        "uses": _numbered(dataflow.uses_table(), "use_index"),
        "live_ranges": derived.liveness.ranges_table(),
    }


def value_rows(dataflow: Dataflow, sizes: Sizes) -> pa.Table:
    """The values with their sizes: columns as in `values`, without allocation and offset."""
    slots = dataflow.slots
    nodes, at = np.unique(slots.node[dataflow.defined_at], return_inverse=True)
    texts = pa.array([str(slots.trees.shapes[node]) for node in nodes], pa.large_string())
    details = shape_columns(texts)
    taken = pa.array(at)
    size = pa.array(sizes.size, pa.int64())
    columns = {
        "memory_space": pa.array(sizes.space, pa.int32()),
        "size_bytes": size,
        "logical_bytes": pc.coalesce(details["logical_bytes"].take(taken), size),
        "shape": texts.take(taken),
        "element_type": details["element_type"].take(taken),
    }
    table = dataflow.values_table()
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _defining_first(dataflow: Dataflow) -> pa.Table:
    """The positions by value, the defining one first."""
    table = dataflow.positions_table()
    value = table["value_id"].to_numpy()
    slots, held = dataflow.slots, np.flatnonzero(dataflow.value >= 0)
    held = held[np.argsort(dataflow.value[held], kind="stable")]
    assert len(held) == len(table) <= len(slots)
    order = np.lexsort((held != dataflow.defined_at[value], value))
    return table.take(pa.array(order))


def _numbered(table: pa.Table, column: str) -> pa.Table:
    """The table, sorted by value, with each row's place among its value's rows."""
    value = table["value_id"].to_numpy()
    count = np.bincount(value) if len(value) else np.array([], np.int64)
    place: Ints = np.arange(len(value)) - np.repeat(np.cumsum(count) - count, count)
    return table.add_column(1, column, pa.array(place, pa.int32()))


# Fills in the parts that a program's source lacks, from its scheduled HLO text.
#
# A dump with a buffer assignment gets exact live ranges, positions and uses ("derived"). HLO
# text alone also gets allocations and places of its own ("estimated").


def completed(
    parts: Parts, derived: Derived, *, platform: str | None = None
) -> tuple[Parts, Derived, str | None]:
    """The parts with what the HLO text gives in addition, and why nothing could be added.

    Parts that were dumped stay as they are. `platform` is what the file names say. A text that
    is not scheduled alone gets a schedule, which the Derived beside the parts has.
    """
    if parts.hlo is None or _is_whole(parts):
        return parts, derived, None
    others = (parts.buffer_assignment, parts.used_values, parts.live_range)
    is_alone = others == (None, None, None)
    if not parts.hlo.header["is_scheduled"] and not is_alone:
        return (
            parts,
            derived,
            (
                "the HLO text is not scheduled (no is_scheduled=true): "
                "dump the text after optimizations, or use compiled.as_text()"
            ),
        )
    try:
        if parts.buffer_assignment is None:
            if not is_alone:
                return parts, derived, None
            found = estimate(parts.hlo, derived, platform=platform)
            peak_high: dict[int, int] = {}
            if not parts.hlo.header["is_scheduled"]:
                derived, found, peak_high = _best_order(parts.hlo, derived, found)
            assignment = _estimated(derived, found)
            parts = replace(parts, buffer_assignment=replace(assignment, peak_high=peak_high))
            # The heap counts a value that lies within its user until just before the user.
            ends = replace(derived, liveness=replace(derived.liveness, end=found.ends))
            return _derived(parts, ends), derived, None
        if unassigned := _unassigned(parts.buffer_assignment, derived):
            return parts, derived, unassigned
        return _derived(parts, derived), derived, None
    except DumpError as error:
        return parts, derived, str(error)


def _best_order(
    hlo: HloText, in_text_order: Derived, found: Estimate
) -> tuple[Derived, Estimate, dict[int, int]]:
    """The better of two orders for a text without a schedule, and the peaks of the other one.

    The better one has the lower peak in the main memory, the one of all spaces that XLA's
    schedulers look at.
    """
    other = list_scheduled(in_text_order, found.sizes)
    choices = [
        (each, said, peaks(each, said))
        for each, said in (
            (in_text_order, found),
            (other, estimate(hlo, other, platform=found.platform)),
        )
    ]
    (best, of_best, low), (_, _, high) = sorted(choices, key=lambda choice: choice[2].get(0, 0))
    return best, of_best, {space: max(low[space], high.get(space, 0)) for space in low}


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


# Schedules for HLO text that has none: what XLA has not ordered yet can only be estimated.
#
# XLA orders an unscheduled module by the best of several heuristics. Two are tried here: the order
# of the text, which is a post order of the graph, and a list schedule that keeps little alive.


def list_scheduled(derived: Derived, sizes: Sizes) -> Derived:
    """The same program in an order that keeps few bytes alive.

    Of the instructions whose operands have been computed, the next is one that frees most bytes
    beyond those that it defines; of several the first in the text. Values that a computation
    gets from its caller, or gives back, are never freed in it.
    """
    program, dataflow = derived.program, derived.dataflow
    order = np.arange(len(program))
    defined = np.zeros(len(program), np.int64)
    np.add.at(defined, dataflow.instruction, sizes.size)
    # Each pair of a value and an instruction of the same computation that reads it, once.
    user, value = _distinct(dataflow.use_instruction, dataflow.use_value)
    computation = program.computation[dataflow.instruction]
    is_freed = ~program.opcode.is_one_of("parameter")[dataflow.instruction]
    roots = np.isin(user, program.root)
    is_freed[value[roots]] = False
    counts = is_freed[value] & (computation[value] == program.computation[user])
    user, value = user[counts], value[counts]
    for number in np.flatnonzero(derived.schedule.is_reached).tolist():
        first, stop = int(program.first[number]), int(program.stop[number])
        chosen = (user >= first) & (user < stop)
        order[first:stop] = _list_order(
            derived, first, stop, defined, sizes.size, user[chosen], value[chosen]
        )
    return reordered(derived, order)


def _list_order(
    derived: Derived, first: int, stop: int, defined: Ints, size: Ints, user: Ints, value: Ints
) -> list[int]:
    """The rows from `first` to `stop` in the order of a list schedule.

    (user, value) are the values that may be freed, and who reads them. A plain loop, because each
    choice depends on the ones before it; only text without a schedule takes this way.
    """
    program = derived.program
    values_of: dict[int, list[int]] = {}
    readers: dict[int, set[int]] = {}
    for row, number in zip(user.tolist(), value.tolist(), strict=True):
        values_of.setdefault(row, []).append(number)
        readers.setdefault(number, set()).add(row)
    bounds = program.operand_start[first : stop + 1].tolist()
    operands = program.operands[bounds[0] : bounds[-1]].tolist()
    waits_for: dict[int, int] = {}
    followers: dict[int, list[int]] = {}
    for row in range(first, stop):
        own = set(operands[bounds[row - first] - bounds[0] : bounds[row - first + 1] - bounds[0]])
        waits_for[row] = len(own)
        for operand in own:
            followers.setdefault(operand, []).append(row)

    def cost(row: int) -> int:
        """How many bytes more are alive after the instruction has run."""
        freed = sum(int(size[v]) for v in values_of.get(row, ()) if len(readers[v]) == 1)
        return int(defined[row]) - freed

    ready = [(cost(row), row) for row in range(first, stop) if not waits_for[row]]
    heapq.heapify(ready)
    order: list[int] = []
    done: set[int] = set()
    while ready:
        _, row = heapq.heappop(ready)
        if row in done:
            continue
        done.add(row)
        order.append(row)
        for number in values_of.get(row, ()):
            readers[number].discard(row)
            if len(readers[number]) == 1:
                # The last reader frees the value: it may be the better choice now.
                (last,) = readers[number]
                if not waits_for[last]:
                    heapq.heappush(ready, (cost(last), last))
        for follower in followers.get(row, ()):
            waits_for[follower] -= 1
            if not waits_for[follower]:
                heapq.heappush(ready, (cost(follower), follower))
    return order


def _distinct(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The distinct pairs of two columns."""
    width = int(right.max(initial=NONE)) + 1 or 1
    keys = np.unique(left * width + right)
    return keys // width, keys % width
