"""The elements of tuples that the HLO text leaves out: their names and places, as dumped.

The reader of HLO text calls them `x#1`. The lists of positions and uses tell their own names:
such an instruction uses the tuple x, and the value of its element 1 is there. The schedule tells
when it runs.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .numbered_program import Ints, combined
from .parts import HloAttributes, HloText, LiveRange, Parts, UsedValues

_ELEMENT = r"^(?P<instruction>[^#]+)(?P<tuple>(?:#[0-9]+)*)(?P<element>#[0-9]+)$"


def with_dumped_elements(parts: Parts) -> Parts:
    """The parts, with the elements in the HLO text called and placed as in the rest of the dump.

    Without positions, or without a schedule, they keep the names or the places that they have.
    """
    hlo = parts.hlo
    if hlo is None or not pc.any(pc.match_substring(hlo.instructions["instruction"], "#")).as_py():
        return parts
    if parts.used_values is not None:
        hlo = _renamed(hlo, parts.used_values)
    if parts.live_range is not None:
        hlo = _scheduled(hlo, parts.live_range)
    return replace(parts, hlo=hlo)


def _renamed(hlo: HloText, used: UsedValues) -> HloText:
    """The text with the dump's names of its elements."""
    instructions = combined(hlo.instructions["instruction"])
    elements = instructions.filter(pc.match_substring(instructions, "#"))
    of = pc.extract_regex(elements, pattern=_ELEMENT)
    names = used.positions.filter(
        pc.and_(
            pc.equal(used.positions["shape_index"], "{}"),
            pc.invert(pc.is_in(used.positions["instruction"], value_set=instructions)),
        )
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
        return _taken(stand["value_id"], pc.index_in(wanted, value_set=places))

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
    return _taken(reads["value_id"], at), names["value_id"].to_numpy()


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
        aliasing = found.aliasing_operands
        rows = pa.array(place[aliasing["row"].to_numpy()])
        at = aliasing.schema.get_field_index("row")
        return replace(
            found,
            instructions=found.instructions.take(pa.array(order)),
            aliasing_operands=aliasing.set_column(at, "row", rows),
        )

    return reordered


def _joined(*texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*texts, pa.scalar("", texts[0].type))


def _taken(values: pa.ChunkedArray, at: pa.Array) -> Ints:
    found: Ints = pc.fill_null(combined(values).take(at), -1).to_numpy().astype(np.int64)
    return found
