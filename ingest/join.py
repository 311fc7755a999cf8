"""Joins the parts of a module into the rows of the warehouse's tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.arrow import module_rows, module_schema
from ..xla.agreement import contradictions, difference, disagreements, match_live_ranges
from ..xla.attribution import Attribution, attribute
from ..xla.columns.bridge import plain_analysis, plain_program
from ..xla.columns.bridge_e import at_peak, completed, main_memory, memory_tables, peak_parts
from ..xla.columns.bridge_o import with_own_lines
from ..xla.columns.bridge_w import kernel_parts, plain_parts, skeleton, work_columns
from ..xla.columns.liveness import derive_all
from ..xla.columns.parts import (
    HloAttributes,
    HloText,
    LiveRange,
    Origin,
    Parts,
    Unread,
    UsedValues,
    memory_spaces,
    with_spaces,
)
from ..xla.columns.program import (
    NONE,
    Ints,
    Mask,
    Names,
    NumberedProgram,
    combined,
    number_program,
)
from ..xla.compiler_passes import MAX_BUFFERS, MIN_SHARE, follow
from ..xla.errors import DumpError
from ..xla.owners.candidates import RULES
from ..xla.parts import Parts as PlainParts
from ..xla.pass_programs import is_forwarding
from ..xla.passes import PASSES
from ..xla.program_id import program_id
from ..xla.roles import ROLES, idle_stretches, last_uses
from ..xla.runs import rows_of
from ..xla.shifts import Divided, Shifts
from ..xla.traits import traits_of
from .rows import Module, Rows

# The lives of values in temp allocations.


@dataclass(frozen=True)
class Lives:
    """Of each value of a module: its live range, and the peak time of its memory space.

    `counts` marks the values that lie in a temp allocation and have a live range.
    """

    start: Ints
    end: Ints
    peak: Ints
    counts: Mask


def lives_of(values: pa.Table, ranges: pa.Table, allocations: pa.Table, figures: pa.Table) -> Lives:
    """The lives of a module's values.

    `ranges` has value_id, start_time and end_time; `allocations` allocation_index and is_temp;
    `figures` memory_space and peak_time.
    """
    at = rows_of(ranges["value_id"], values["value_id"])
    start, end = (_or_none(ranges[name].take(at)) for name in ("start_time", "end_time"))
    temps = allocations["allocation_index"].filter(allocations["is_temp"]).combine_chunks()
    is_temp = pc.is_in(values["allocation_index"], value_set=temps)
    place = pc.index_in(values["memory_space"], value_set=figures["memory_space"].combine_chunks())
    peak = _or_none(figures["peak_time"].take(place))
    counts = (start != NONE) & is_temp.to_numpy()
    return Lives(start, end, peak, counts)


def _or_none(column: pa.ChunkedArray) -> Ints:
    found: Ints = pc.fill_null(column, NONE).to_numpy().astype(np.int64)
    return found


# Which value an allocation is for, where it holds others too: XLA reuses outputs as scratch.


@dataclass(frozen=True)
class Ends:
    """Of each value: whether it is an argument of the program, and part of its result."""

    is_argument: Mask
    lives_out: Mask


def ends_of(attribution: Attribution, number: Ints) -> Ends:
    """What the HLO text says; `number` is each value's number there, NONE if it has none."""
    has = number != NONE
    return Ends(attribution.is_argument[number] & has, attribution.lives_out[number] & has)


def guessed_ends(
    values: pa.Table, instructions: pa.Table, ranges: pa.Table | None, live_range: LiveRange | None
) -> Ends:
    """Without HLO text: parameters are taken for arguments, what lives until the end for results.

    `instructions` are by instruction_id, `ranges` the live ranges by value_id.
    """
    is_argument = lives_out = np.zeros(len(values), bool)
    if "opcode" in instructions.column_names and len(values):
        opcode = instructions["opcode"].take(values["instruction_id"].combine_chunks())
        is_argument = pc.fill_null(pc.equal(opcode, "parameter"), False).to_numpy()
    if ranges is not None and live_range is not None:
        at_end = pc.equal(ranges["end_time"], live_range.schedule_length)
        ids = ranges["value_id"].filter(at_end).combine_chunks()
        lives_out = pc.is_in(values["value_id"], value_set=ids).to_numpy()
    return Ends(is_argument, lives_out)


def shown_values(allocations: pa.Table, values: pa.Table, ends: Ends) -> pa.Int32Array:
    """The value that each allocation is for, null for temps and where there is none.

    An argument's allocation is for the argument, an output's for what lives out, a constant's
    for the constant; of several such values for the largest array. `allocations` and `values`
    have the columns of the warehouse.
    """
    place = pc.index_in(
        values["allocation_index"], value_set=allocations["allocation_index"].combine_chunks()
    )
    held = np.flatnonzero(pc.is_valid(place).to_numpy())
    at = place.drop_null().to_numpy()
    shared = pc.or_(allocations["is_temp"], allocations["is_thread_local"]).to_numpy()
    held, at = held[~shared[at]], at[~shared[at]]
    of_argument = allocations["is_parameter"].to_numpy()[at]
    of_output = allocations["maybe_live_out"].to_numpy()[at]
    fits = np.where(of_argument, ends.is_argument[held], ~of_output | ends.lives_out[held])
    is_array = pc.is_valid(values["element_type"]).to_numpy()[held]
    size = values["size_bytes"].to_numpy()[held]
    number = values["value_id"].to_numpy()[held]
    order = np.lexsort((number, -size, ~is_array, ~fits, at))
    owner, first = np.unique(at[order], return_index=True)
    found = np.full(len(allocations), -1)
    found[owner] = number[order[first]]
    return pa.array(found, pa.int32(), mask=found < 0)


# An attribution as columns and rows of the warehouse's tables.


def numbers_of(attribution: Attribution, values: pa.Table) -> Ints:
    """The number in the dataflow of each of a module's values; NONE where the text has none.

    `values` has the columns instruction_id and shape_index.
    """
    derived = attribution.derived
    slots, defined_at = derived.dataflow.slots, derived.dataflow.defined_at
    indices = slots.trees.index_texts
    width = len(indices)
    ours = slots.instruction[defined_at] * width + slots.trees.index[slots.node[defined_at]]
    codes = pc.index_in(values["shape_index"], value_set=pa.array(indices, pa.large_string()))
    known = pc.is_valid(codes).to_numpy()
    rows = values["instruction_id"].to_numpy().astype(np.int64)
    theirs = rows * width + pc.fill_null(codes, 0).to_numpy()
    order = np.argsort(ours)
    at = np.minimum(np.searchsorted(ours, theirs, sorter=order), max(len(ours) - 1, 0))
    found = known & (ours[order[at]] == theirs) if len(ours) else np.zeros(len(theirs), bool)
    return np.where(found, order[at] if len(ours) else NONE, NONE)


def instruction_columns(attribution: Attribution, count: int) -> dict[str, pa.Array]:
    """The columns scope_id and pass of `count` instructions, those of the text first."""
    passes = attribution.passes.codes.astype(np.int64)
    return {
        "scope_id": _padded(attribution.scope, count),
        "pass": _texts(_padded(passes, count), PASSES),
    }


def value_columns(attribution: Attribution, values: pa.Table, number: Ints) -> dict[str, pa.Array]:
    """The columns of `values` that an attribution gives; `number` is that of `numbers_of`."""
    value_id = values["value_id"].to_numpy()
    # The id of a set is the smallest of its values that the module has.
    alias_set = _taken(attribution.derived.liveness.alias_set, number)
    smallest = np.full(len(attribution.derived.dataflow) + 1, np.iinfo(np.int32).max)
    np.minimum.at(smallest, alias_set, value_id)
    last_use = last_uses(attribution.touches, len(attribution.derived.dataflow))
    if not attribution.is_scheduled:
        last_use[:] = NONE
    origins = attribution.origins
    return {
        "origin_instruction_id": _known(_taken(origins.instruction, number)),
        "origin_rule": _texts(_known(_taken(origins.rule, number)), RULES),
        "pass": _texts(_known(_taken(attribution.value_pass, number)), PASSES),
        "role": _texts(_known(_taken(attribution.roles, number)), ROLES),
        "alias_set": _known(np.where(alias_set == NONE, NONE, smallest[alias_set])),
        "residual_id": _known(_taken(attribution.residuals.of, number)),
        "last_use_time": _known(_taken(last_use, number)),
    }


def buffer_tables(
    attribution: Attribution, values: pa.Table, number: Ints, lives: Lives
) -> dict[str, pa.Table]:
    """The rows of `alias_sets` and `residuals`: of values in temp allocations that have a life.

    `values` has the columns value_id, size_bytes, alias_set and residual_id.
    """
    alias_set, residual = (
        pc.fill_null(values[name], NONE).to_numpy().astype(np.int64)
        for name in ("alias_set", "residual_id")
    )
    found, owner = attribution.residuals, attribution.origins.instruction
    set_rows, _ = _stretches(attribution, values, number, lives, alias_set)
    # A buffer may also hold what the backward pass makes: that is not the residual.
    is_made = _taken(owner, number) == _taken(owner, _taken(found.value, residual))
    residual_rows, of = _stretches(attribution, values, number, lives, residual, is_made)
    names = {"group": "alias_set"}
    alias_sets = pa.table({names.get(name, name): column for name, column in set_rows.items()})
    residuals = pa.table(
        {
            "residual_id": residual_rows.pop("group"),
            "layers": pa.array(found.layers[of], pa.int32()),
            "made_instruction_id": _known(owner[found.value[of]]),
            "read_instruction_id": _known(found.reader[of]),
            **residual_rows,
        }
    )
    return {"alias_sets": alias_sets, "residuals": residuals}


def _stretches(
    attribution: Attribution,
    values: pa.Table,
    number: Ints,
    lives: Lives,
    group: Ints,
    first: Mask | None = None,
) -> tuple[dict[str, pa.Array], Ints]:
    """A row for each group of values: its largest value, its life, when it is idle.

    The value is one of those that are `first`, if the group has such.
    """
    held = np.flatnonzero(lives.counts & (group != NONE) & (number != NONE))
    groups, place = np.unique(group[held], return_inverse=True)
    start, end = np.full(len(groups), np.iinfo(np.int32).max), np.zeros(len(groups), np.int64)
    np.minimum.at(start, place, lives.start[held])
    np.maximum.at(end, place, lives.end[held])
    is_later = np.zeros(len(held), bool) if first is None else ~first[held]
    by_size = np.lexsort((held, -values["size_bytes"].to_numpy()[held], is_later, place))
    largest = held[by_size[np.searchsorted(place[by_size], np.arange(len(groups)))]]
    of = np.full(len(attribution.derived.dataflow), NONE)
    of[number[held]] = place
    # What lives out is not read after the program's last instruction.
    derived = attribution.derived
    program = derived.program
    of_program = program.program_of[derived.dataflow.instruction[number[largest]]]
    last = np.minimum(end, derived.schedule.span_end[program.entries][of_program] - 1)
    idle = idle_stretches(attribution.touches, of, last, lives.peak[largest])
    rows = {
        "group": groups,
        "value_id": values["value_id"].to_numpy()[largest],
        "start_time": start,
        "end_time": end,
        "idle_start_time": idle.start,
        "idle_end_time": idle.end,
        "peak_idle_time": idle.at_peak,
    }
    return {name: pa.array(column, pa.int32()) for name, column in rows.items()}, groups


def _taken(column: Ints, number: Ints) -> Ints:
    """The column's entries at these numbers; NONE at NONE."""
    found: Ints = np.append(column, NONE)[number]
    return found


def _known(column: Ints) -> pa.Array:
    return pa.array(column, pa.int32(), mask=column == NONE)


def _padded(column: Ints, count: int) -> pa.Array:
    """The column with nulls for NONE and at its end."""
    rest = np.full(count - len(column), NONE)
    return _known(np.concatenate([column, rest]))


def _texts(codes: pa.Array, texts: tuple[str, ...]) -> pa.Array:
    """Numbers as texts."""
    return pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.large_string()))


# The elements of tuples that the HLO text leaves out: their names and places, as dumped.
#
# The reader of HLO text calls them `x#1`. The lists of positions and uses tell their own names:
# such an instruction uses the tuple x, and the value of its element 1 is there. The schedule
# tells when it runs.

_ELEMENT = r"^(?P<instruction>[^#]+)(?P<tuple>(?:#[0-9]+)*)(?P<element>#[0-9]+)$"


def with_dumped_elements(parts: Parts) -> Parts:
    """The parts, with the elements in the HLO text called and placed as in the rest of the dump.

    Without positions, or without a schedule, they keep the names or the places that they have.
    """
    hlo = parts.hlo
    if hlo is None or not pc.any(pc.match_substring(hlo.instructions["instruction"], "#")).as_py():
        return parts
    if parts.used_values is not None:
        hlo = _renamed(hlo, parts.used_values, parts.live_range)
    if parts.live_range is not None:
        hlo = _scheduled(hlo, parts.live_range)
    return replace(parts, hlo=hlo)


def _renamed(hlo: HloText, used: UsedValues, live_range: LiveRange | None) -> HloText:
    """The text with the dump's names of its elements.

    Of several names of one element it has the one that is scheduled first: the text does not tell
    which of them an instruction uses.
    """
    instructions = combined(hlo.instructions["instruction"])
    elements = instructions.filter(pc.match_substring(instructions, "#"))
    of = pc.extract_regex(elements, pattern=_ELEMENT)
    names = used.positions.filter(
        pc.and_(
            pc.equal(used.positions["shape_index"], "{}"),
            pc.invert(pc.is_in(used.positions["instruction"], value_set=instructions)),
        )
    )
    if live_range is not None:
        scheduled = combined(live_range.schedule["instruction"])
        names = names.take(
            pc.array_sort_indices(pc.index_in(combined(names["instruction"]), value_set=scheduled))
        )
    ours, theirs = _paired(_values_of_elements(of, used), _values_of_names(names, used))
    old, new = elements.take(ours), combined(names["instruction"]).take(theirs)

    def renamed(table: pa.Table, column: str) -> pa.Table:
        texts = combined(table[column])
        at = pc.index_in(texts, value_set=old)
        found = pc.if_else(pc.is_valid(at), new.take(at), texts)
        return table.set_column(table.schema.get_field_index(column), column, found)

    return replace(
        hlo,
        instructions=renamed(hlo.instructions, "instruction"),
        operands=renamed(renamed(hlo.operands, "instruction"), "operand"),
    )


def _values_of_elements(of: pa.StructArray, used: UsedValues) -> tuple[Ints, Ints]:
    """The value of each element's tuple, and the element's own value; -1 if not listed."""
    instruction, within, element = of.flatten()
    stand = used.positions.filter(
        pc.is_in(used.positions["instruction"], value_set=pc.unique(instruction))
    )
    places = _joined(combined(stand["instruction"]), combined(stand["shape_index"]))

    def value(path: pa.Array) -> Ints:
        """The value at an index such as `#1#0`, which positions print as `{1,0}`."""
        index = pc.utf8_slice_codeunits(pc.replace_substring(path, "#", ","), 1)
        opening, closing = pa.scalar("{", index.type), pa.scalar("}", index.type)
        wanted = _joined(instruction, _joined(opening, index, closing))
        return _taken_names(stand["value_id"], pc.index_in(wanted, value_set=places))

    return value(within), value(_joined(within, element))


def _values_of_names(names: pa.Table, used: UsedValues) -> tuple[Ints, Ints]:
    """The value that the instruction at each of these positions uses as a tuple, and that there.

    -1 if it uses none.
    """
    reads = used.uses.filter(
        pc.and_(
            pc.and_(
                pc.equal(used.uses["operand_number"], 0),
                pc.equal(used.uses["operand_shape_index"], "{}"),
            ),
            pc.is_in(used.uses["instruction"], value_set=combined(names["instruction"])),
        )
    )
    at = pc.index_in(combined(names["instruction"]), value_set=combined(reads["instruction"]))
    return _taken_names(reads["value_id"], at), names["value_id"].to_numpy()


def _paired(ours: tuple[Ints, Ints], theirs: tuple[Ints, Ints]) -> tuple[pa.Array, pa.Array]:
    """The rows of both that have the same tuple and value; of several the first with the first."""
    count = len(ours[0])
    tuples, values = (np.concatenate(pair) for pair in zip(ours, theirs, strict=True))
    is_theirs = np.arange(len(tuples)) >= count
    # A stable order, so that several of the same stay in theirs.
    order = np.lexsort((is_theirs, values, tuples))
    keys = np.stack([tuples, values, is_theirs])[:, order]
    starts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    _, codes = np.unique(np.stack([tuples, values, rank]), axis=1, return_inverse=True)
    codes = np.where((tuples < 0) | (values < 0), -1 - is_theirs, codes.ravel())
    _, mine, other = np.intersect1d(codes[:count], codes[count:], return_indices=True)
    return pa.array(mine), pa.array(other)


def _scheduled(hlo: HloText, live_range: LiveRange) -> HloText:
    """The text with the instructions of each scheduled computation in the order of the schedule."""
    instructions = combined(hlo.instructions["instruction"])
    at = pc.index_in(instructions, value_set=combined(live_range.schedule["instruction"]))
    time = pc.fill_null(at, -1).to_numpy()
    computation = combined(hlo.instructions["computation"]).dictionary_encode().indices.to_numpy()
    is_whole = np.ones(computation.max(initial=0) + 1, bool)
    is_whole[computation[time < 0]] = False
    order = np.lexsort((np.where(is_whole[computation], time, np.arange(len(time))), computation))
    if np.array_equal(order, np.arange(len(order))):
        return hlo
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    operators = pc.index_in(
        combined(hlo.operands["instruction"]), value_set=instructions
    ).to_numpy()
    return replace(
        hlo,
        instructions=hlo.instructions.take(pa.array(order)),
        operands=hlo.operands.take(pa.array(np.argsort(place[operators], kind="stable"))),
        attributes=_reordered(hlo.attributes, order, place),
    )


def _reordered(
    attributes: Callable[[], HloAttributes], order: Ints, place: Ints
) -> Callable[[], HloAttributes]:
    """A function that gives the attributes for instructions in another order."""

    def reordered() -> HloAttributes:
        found = attributes()
        return replace(
            found,
            lines=found.lines.take(pa.array(order)),
            aliasing_operands=placed_anew(found.aliasing_operands),
            loop_facts=placed_anew(found.loop_facts),
        )

    def placed_anew(table: pa.Table) -> pa.Table:
        rows = pa.array(place[table["row"].to_numpy()])
        return table.set_column(table.schema.get_field_index("row"), "row", rows)

    return reordered


def _joined(*texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*texts, pa.scalar("", texts[0].type))


def _taken_names(values: pa.ChunkedArray, at: pa.Array) -> Ints:
    found: Ints = pc.fill_null(combined(values).take(at), -1).to_numpy().astype(np.int64)
    return found


# All that a module's HLO text says beyond what was dumped: worked out once.


@dataclass(frozen=True)
class WorkedOut:
    """The parts with what they lacked, and what the text says about them.

    `names` are the numbers of all names of the parts. `why_not` says why what the parts lack
    could not be worked out, `no_owners` why there is no attribution. `program` is the text as
    numbers, None if it says less than it should. `unread` says which instructions of a text that
    was read whole are damaged.
    """

    parts: Parts
    names: Names
    program: NumberedProgram | None = None
    attribution: Attribution | None = None
    why_not: str | None = None
    no_owners: str | None = None
    unread: Unread | None = None

    @staticmethod
    def of(parts: Parts) -> "WorkedOut":
        """The parts, of which nothing is worked out."""
        return WorkedOut(parts, Names.of(parts))


@dataclass(frozen=True)
class Told:
    """The parts of a program, and what is told beside them.

    `platform` and `changelist` are what the file names say. What the parts lack is filled in only
    if the text `completes` them: what a damaged file should have said is not made up.
    """

    parts: Parts
    platform: str | None = None
    changelist: int | None = None
    completes: bool = True


def work_out(told: Told) -> WorkedOut:
    """Work out liveness and attribution from the HLO text of a program, if it has one."""
    parts = with_dumped_elements(told.parts)
    hlo, names = parts.hlo, Names.of(parts)
    if hlo is None:
        return WorkedOut(parts, names)
    why_not = None
    try:
        program = number_program(hlo, names)
    except DumpError as error:
        why_not = str(error) if told.completes else None
        return WorkedOut(parts, names, why_not=why_not, no_owners=str(error))
    unread = None if hlo.unread else program.unread
    is_whole = program.unread is None and not hlo.unread
    completes = told.completes and is_whole
    if not is_whole and parts.buffer_assignment is None:
        why_not = "the text is damaged"
    try:
        derived = derive_all([hlo], program, [told.changelist], [parts.live_range])
    except DumpError as error:
        why_not = str(error) if completes else why_not
        return WorkedOut(parts, names, why_not=why_not, no_owners=str(error), unread=unread)
    is_scheduled = bool(hlo.header["is_scheduled"])
    if completes:
        parts, derived, why_not = completed(parts, derived, platform=told.platform)
        names.add(parts)
        assignment = parts.buffer_assignment
        is_scheduled |= assignment is not None and bool(assignment.peak_high)
    attribution = no_owners = None
    try:
        # Whose memory values are does not depend on the schedule, only on what computes them.
        attribution = attribute(hlo, derived, is_scheduled=is_scheduled)
    except DumpError as error:
        no_owners = str(error)
    whole = program if completes else None
    return WorkedOut(parts, names, whole, attribution, why_not, no_owners, unread)


def join(told: Told, mine: Sequence[str] = ()) -> tuple[WorkedOut, Module]:
    """Work out what the text of a program says, and make its rows: see `join_parts`."""
    found = work_out(told)
    return found, join_parts(found, mine, told.platform)


# Joins the parts of a module into the rows of the warehouse's tables.


# The tables whose rows are in a memory space.
_IN_SPACES = frozenset({"allocations", "values", "occupancy", "module_memory"})


def join_parts(found: WorkedOut, mine: Sequence[str] = (), platform: str | None = None) -> Module:
    """Number the instructions, find each live range's value, and compute the figures.

    If a part is missing or contradicts another part, the figures that depend on it are null.
    `mine` are patterns of files that are the user's code, see `frames.are_library`. `platform`
    tells what a memory space is called. Without an attribution nothing says whose memory a value
    is, and without a program the module has no program_id.
    """
    parts = found.parts
    length = len(parts.live_range.schedule) if parts.live_range is not None else 0
    (module,) = _modules(
        [parts],
        parts,
        found.attribution,
        found.program,
        found.names,
        Shifts.alone(length),
        mine,
        [platform],
    )
    return module


def _modules(
    of_each: Sequence[Parts],
    parts: Parts,
    attribution: Attribution | None,
    program: NumberedProgram | None,
    names: Names,
    shifts: Shifts,
    mine: Sequence[str],
    platforms: Sequence[str | None],
) -> list[Module]:
    """The rows of programs: `parts` and what follows have all of them, with their numbers shifted.

    Raises DumpError if one of several is at odds with itself.
    """
    values = _values(parts, names)
    ranges = _live_ranges(parts.live_range, values, names)
    tables: dict[str, pa.Table] = {"instructions": _instructions(parts, names, mine)}
    # What has no numbers to shift.
    divided: dict[str, Divided] = {}
    number = None
    if attribution is not None and len(values):
        number = numbers_of(attribution, values)
        values = _with(values, value_columns(attribution, values, number))
    if attribution is not None:
        columns = instruction_columns(attribution, len(names.unique))
        tables["instructions"] = _with(tables["instructions"], columns)
        tables["scopes"] = attribution.scopes
    if len(values):
        tables["values"] = values
    if parts.used_values is not None:
        tables["positions"] = names.numbered(parts.used_values.positions, "positions")
        tables["uses"] = names.numbered(parts.used_values.uses, "uses")
    if ranges is not None:
        tables["live_ranges"] = ranges
    if parts.live_range is not None:
        peaks = [each.live_range.peak for each in of_each if each.live_range is not None]
        divided["reported_peak"] = Divided.of(peaks)
    if parts.hlo is not None:
        tables |= _hlo_tables(parts.hlo, names)
        texts = [each.hlo for each in of_each if each.hlo is not None]
        divided["computations"] = Divided.of([hlo.computations for hlo in texts])
        divided["entry_shapes"] = Divided.of(
            [pa.table({}) if hlo.entry_shapes is None else hlo.entry_shapes for hlo in texts]
        )
    dumped = plain_parts(parts)
    live_ranges, unmatched = match_live_ranges(dumped)
    contradicting = contradictions(dumped, live_ranges, unmatched)
    if parts.totals is not None:
        rows: list[dict[str, object]] = [
            {"memory_space": space, "total_bytes": size} for space, size in parts.totals.items()
        ]
        tables["module_memory"] = module_rows("module_memory", rows)
        if parts.buffer_assignment is not None:
            allocations = parts.buffer_assignment.allocations
            none = pa.nulls(len(allocations), pa.int32())
            tables["allocations"] = allocations.append_column("value_id", none)
    elif parts.buffer_assignment is not None:
        complete = not contradicting and parts.buffer_assignment.is_whole
        ranges = ranges if complete else None
        allocations = parts.buffer_assignment.allocations
        if attribution is not None and number is not None:
            ends = ends_of(attribution, number)
        else:
            ends = guessed_ends(values, tables["instructions"], ranges, parts.live_range)
        shown = shown_values(allocations, values, ends)
        tables |= memory_tables(
            allocations.append_column("value_id", shown),
            values,
            ranges,
            names.numbered(parts.live_range.schedule, "schedule") if parts.live_range else None,
            shifts,
            complete=complete,
            estimated=parts.buffer_assignment.origin == "estimated",
        )
        tables["module_memory"] = _with_high(
            tables["module_memory"], parts.buffer_assignment.peak_high
        )
        if (
            attribution is not None
            and attribution.is_scheduled
            and number is not None
            and ranges is not None
        ):
            lives = lives_of(values, ranges, tables["allocations"], tables["module_memory"])
            tables |= buffer_tables(attribution, values, number, lives)
    if "residual_id" in values.column_names:
        tables["values"] = _with_known_residuals(values, tables.get("residuals"))
    spaces = shifts.joined([memory_spaces(*each) for each in zip(of_each, platforms, strict=True)])
    tables["memory_spaces"] = spaces
    for name in _IN_SPACES & tables.keys():
        tables[name] = with_spaces(tables[name], spaces)
    if attribution is not None:
        divided["traits"] = traits_of(attribution, tables, shifts)
    if ranges is not None and "module_memory" in tables:
        peak = peak_parts(tables, shifts)
        if peak is not None:
            divided["peak_parts"] = peak
    headers = [_header(each) for each in of_each]
    header = headers[0]
    if attribution is not None and attribution.derived.assumed:
        header["assumed"] = opcode_counts(attribution.derived.assumed)
        if header["origin"] == "derived":
            header["origin"] = "estimated"
    for each, own in zip(of_each, headers, strict=True):
        if own["origin"] is not None:
            is_unscheduled = each.buffer_assignment is not None and each.buffer_assignment.peak_high
            own["grade"] = 2 if is_unscheduled else int(own["origin"] == "estimated")
    differs = None
    if attribution is not None and number is not None:
        differs = _difference(parts, dumped, attribution)
        headers = [own | {"liveness_difference": differs} for own in headers]
    if program is not None and not contradicting:
        headers[0]["program_id"] = program_id(
            plain_program(program, parts.hlo),
            dumped.assignment,
            None if ranges is None else live_ranges,
        )
    if program is not None and parts.hlo is not None:
        work, flops, trip_counts = work_columns(program, parts.hlo, len(names.unique))
        headers[0] |= {"flops": work.total_flops, "unknown_loops": work.unknown_loops}
        tables["instructions"] = _with(tables["instructions"], {"flops": flops})
        tables["calls"] = _with(tables["calls"], {"trip_count": trip_counts})
        computations, starts = divided["computations"]
        executed = _with(computations, {"executions": pa.array(work.executions, pa.int64())})
        divided["computations"] = Divided(executed, starts)
    messages = _disagreements(parts, dumped, names, program)
    if differs is not None:
        messages.insert(0, differs)
    divided |= {name: shifts.divided(table) for name, table in tables.items()}
    rows: Rows = {
        name: {column: each.table[column].to_pylist() for column in each.table.column_names}
        for name, each in divided.items()
        if len(each.table)
    }
    module = Module(headers[0], rows, contradicting, disagreements=messages)
    if of_each[0].pass_texts:
        module.rows |= _pass_rows(of_each[0], module)
    return [module]


def _disagreements(
    parts: Parts, dumped: PlainParts, names: Names, program: NumberedProgram | None
) -> list[str]:
    """Where the parts are at odds with the HLO text."""
    if parts.hlo is None:
        return []
    try:
        program = program or number_program(parts.hlo, names)
    except DumpError:
        return []
    values = dumped.assignment.values if dumped.assignment is not None else []
    return disagreements(
        plain_program(program, parts.hlo),
        names.unique.to_pylist(),
        sorted(values, key=lambda value: value.value_id),
    )


def _with_high(memory: pa.Table, peak_high: Mapping[int, int]) -> pa.Table:
    """The rows of `module_memory` with the peaks of another order, and null where not known."""
    high = [peak_high.get(space) for space in memory["memory_space"].to_pylist()]
    columns = dict(zip(memory.column_names, memory.columns, strict=True))
    columns["peak_high_bytes"] = pa.array(high, pa.int64())
    return pa.table(
        {
            field.name: columns[field.name].cast(field.type)
            if field.name in columns
            else pa.nulls(len(memory), field.type)
            for field in module_schema("module_memory")
        }
    )


def _pass_rows(parts: Parts, module: Module) -> Rows:
    """What the compiler's passes did to the program and to the large buffers of its peak.

    The module notes the texts that cannot be read.
    """
    values, names = _followed_buffers(module.tables)
    rows, events, unread = follow(parts.pass_texts, names)
    module.unread_passes = [f"{text.step} ({text.compiler_pass or 'the last'})" for text in unread]
    tables = {
        "passes": module_rows("passes", [row._asdict() for row in rows]),
        "buffer_passes": module_rows(
            "buffer_passes",
            [
                {"value_id": value, "event_number": number, "step": step, **event._asdict()}
                for value, of_value in zip(values, events, strict=True)
                for number, (step, event) in enumerate(of_value)
            ],
        ),
    }
    return {
        name: {column: table[column].to_pylist() for column in table.column_names}
        for name, table in tables.items()
        if len(table)
    }


def _followed_buffers(tables: Mapping[str, pa.Table]) -> tuple[list[int], list[str]]:
    """The large values of the peak but for arguments, and the instructions that make them."""
    if not {"values", "live_ranges", "module_memory"} <= tables.keys():
        return [], []
    alone = Shifts.alone(0)
    if main_memory(tables, alone)["peak_time"] == NONE:
        return [], []
    place, size = at_peak(tables, alone)
    order = np.argsort(-size, kind="stable")
    order = order[(place[order] != NONE) & (size[order] >= MIN_SHARE * size.sum())]
    values = tables["values"].take(pa.array(place[order]))
    of_module = tables["instructions"]
    if "opcode" not in of_module.column_names:
        return [], []
    made = of_module.take(values["instruction_id"])
    if "origin_instruction_id" in values.column_names:
        # Of a loop's carry and the like, what is carried.
        opcodes = made["opcode"].to_pylist()
        forwards = pa.array([opcode is not None and is_forwarding(opcode) for opcode in opcodes])
        origin = pc.coalesce(values["origin_instruction_id"], values["instruction_id"])
        made = of_module.take(pc.if_else(forwards, origin, values["instruction_id"]))
    kept = [
        (value, name)
        for value, name, opcode in zip(
            values["value_id"].to_pylist(),
            made["instruction"].to_pylist(),
            made["opcode"].to_pylist(),
            strict=True,
        )
        if opcode not in (None, "parameter")
    ][:MAX_BUFFERS]
    return [value for value, _ in kept], [name for _, name in kept]


def opcode_counts(counts: Mapping[str, int]) -> str:
    """Opcodes, each with its number of instructions: `all-to-all-start (12)`."""
    return ", ".join(f"{opcode} ({count})" for opcode, count in counts.items())


def _difference(parts: Parts, dumped: PlainParts, attribution: Attribution) -> str | None:
    """Where dumped live ranges, positions or uses differ from the HLO text's; None if nowhere."""
    origins = (parts.buffer_assignment, parts.live_range, parts.used_values)
    if (
        not attribution.is_scheduled
        or attribution.derived.assumed
        or attribution.derived.program.unread is not None
        or any(p is None or p.origin != "dumped" for p in origins)
    ):
        return None
    return difference(dumped, plain_analysis(attribution.derived, parts.hlo))


def _with_known_residuals(values: pa.Table, residuals: pa.Table | None) -> pa.Table:
    """The values without the residuals that have no row: those outside of temps, or no times."""
    at = values.schema.get_field_index("residual_id")
    if residuals is None:
        return values.set_column(at, "residual_id", pa.nulls(len(values), pa.int32()))
    known = pc.is_in(values["residual_id"], value_set=residuals["residual_id"].combine_chunks())
    kept = pc.if_else(known, values["residual_id"], pa.scalar(None, pa.int32()))
    return values.set_column(at, "residual_id", kept)


def _with(table: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """The table with more columns."""
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _origin(parts: Parts) -> Origin | None:
    """Where the module's figures come from; None if it has none."""
    if parts.totals is not None:
        return "estimated"
    if parts.buffer_assignment is None or parts.live_range is None:
        return None
    if parts.buffer_assignment.origin == "estimated":
        return "estimated"
    return parts.live_range.origin


def _header(parts: Parts) -> dict[str, object]:
    header: dict[str, object] = {"origin": _origin(parts)}
    if parts.hlo is not None:
        header |= parts.hlo.header
        header["skeleton_id"] = skeleton(parts.hlo.entry_shapes)
    if parts.totals is not None:
        header["reported_total_bytes"] = sum(parts.totals.values())
    if parts.used_values is not None:
        header["reported_total_bytes"] = parts.used_values.total_bytes
    if parts.live_range is not None:
        header["schedule_length"] = parts.live_range.schedule_length
        header["reported_peak_time"] = parts.live_range.peak_time
        if parts.live_range.peak_time is not None:
            header["reported_peak_bytes"] = pc.sum(parts.live_range.peak["size_bytes"]).as_py() or 0
    return header


def _values(parts: Parts, names: Names) -> pa.Table:
    """All values, in order of their ids; sizes are null without BufferAssignment."""
    tables = []
    if parts.buffer_assignment is not None:
        assigned = names.numbered(parts.buffer_assignment.values, "values")
        tables.append(assigned)
    if parts.used_values is not None:
        used = names.numbered(parts.used_values.values, "used_values")
        if tables:
            used = used.filter(pc.is_null(rows_of(tables[0]["value_id"], used["value_id"])))
        tables.append(used)
    if not tables:
        return pa.table({"value_id": pa.array([], pa.int32())})
    return pa.concat_tables(tables, promote_options="default").sort_by("value_id")


def _live_ranges(live_range: LiveRange | None, values: pa.Table, names: Names) -> pa.Table | None:
    """The ranges by value_id.

    XLA does not print value numbers here, so (instruction, shape index) identifies the value.
    """
    if live_range is None or "instruction_id" not in values.column_names:
        return None
    ranges = live_range.ranges
    indices = pc.unique(
        pa.chunked_array([*values["shape_index"].chunks, *ranges["shape_index"].chunks])
    )

    def key(instruction_id: pa.Array, shape_index: pa.ChunkedArray) -> pa.Array:
        code = pc.index_in(shape_index, value_set=indices).combine_chunks()
        return pc.add(
            pc.multiply(instruction_id.cast(pa.int64()), len(indices)), code.cast(pa.int64())
        )

    at = pc.index_in(
        key(names.numbers["ranges"], ranges["shape_index"]),
        value_set=key(values["instruction_id"].combine_chunks(), values["shape_index"]),
    )
    found = pa.table(
        {
            "value_id": values["value_id"].take(at),
            "start_time": ranges["start_time"],
            "end_time": ranges["end_time"],
        }
    )
    return found.drop_null().sort_by("value_id")


def _instructions(parts: Parts, names: Names, mine: Sequence[str]) -> pa.Table:
    """A row per name, with the columns of its definition and its time in the schedule."""
    table = pa.table(
        {
            "instruction_id": pa.array(np.arange(len(names.unique)), pa.int32()),
            "instruction": names.unique,
        }
    )
    if parts.live_range is not None:
        times = _first_rows(names.numbers["schedule"], len(table))
        table = table.append_column(
            "schedule_time", parts.live_range.schedule["schedule_time"].take(times)
        )
    if parts.hlo is not None:
        defined = parts.hlo.instructions
        at = _first_rows(names.numbers["definitions"], len(table))
    elif parts.used_values is not None and parts.used_values.definitions is not None:
        # Used values repeat the definitions of HLO text.
        defined = parts.used_values.definitions
        at = pc.index_in(names.unique, value_set=defined["instruction"].combine_chunks())
    else:
        return table
    # Nearly always the names are those of the text, in its order.
    is_whole = np.array_equal(at.to_numpy(zero_copy_only=False), np.arange(len(defined)))
    for column in defined.column_names:
        if column != "instruction":
            values = defined[column] if is_whole else defined[column].take(at)
            table = table.append_column(column, values)
    if "source_file" not in table.column_names:
        return table
    return with_own_lines(table, parts.hlo.stack_frames if parts.hlo is not None else None, mine)


def _first_rows(numbers: pa.Int32Array, count: int) -> pa.Int64Array:
    """The first row with each number below `count`; null if there is none."""
    rows = np.full(count, -1)
    rows[numbers.to_numpy()[::-1]] = np.arange(len(numbers))[::-1]
    return pa.array(rows, mask=rows < 0)


def _hlo_tables(hlo: HloText, names: Names) -> dict[str, pa.Table]:
    """The tables that only HLO text fills."""
    operands = names.numbered(hlo.operands, "operands")
    operand_at = operands.schema.get_field_index("operand")
    tables = {
        "operands": operands.set_column(
            operand_at, "operand_instruction_id", names.numbers["operand"]
        ),
        "calls": names.numbered(hlo.calls, "calls"),
        "stack_frames": hlo.stack_frames,
    }
    if len(hlo.control):
        controlled = names.numbered(hlo.control, "controlled")
        predecessors = names.numbers["predecessors"]
        tables["control_dependencies"] = controlled.set_column(
            1, "predecessor_instruction_id", predecessors
        )
    if len(hlo.kernels):
        tables["kernel_parts"] = kernel_parts(hlo, names)
    return tables
