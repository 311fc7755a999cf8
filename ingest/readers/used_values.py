"""Reader of `Total bytes used` and `Used values:`: the positions and uses of values."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.columns.parts import NotUnderstoods, UsedValues
from ...xla.errors import LARGEST_SIZE, DumpError
from .buffer_assignment import value_names
from .hlo_text import (
    joined_lines,
    read_instructions,
    read_the_rest,
    split_instructions,
    unread_lines,
)
from .lines import Lines, Positions, as_numpy, divided, lines_of
from .newer_text import before_newer_sections, newer_lines, newer_words

_TOTAL = r"^Total bytes used: (?P<total_bytes>\d+)"
_POSITION = r"^  (?P<instruction>[^ ,]+)(?: (?P<shape_index>\{[\d,]*\}))?$"
_USE = (
    r"^  (?P<instruction>[^ ,]+), operand (?P<operand_number>\d+)"
    r"(?: (?P<operand_shape_index>\{[\d,]*\}))?$"
)
_DEFINITION = " from instruction:"
# Another list of a value, beside its positions and uses: ` NAME:`.
_LIST = r"^ [a-z][a-z ]*:$"
# In seed 000 the line end after the definition is missing, so the next value follows directly.
_GLUED = r"(<\d+ [^ >]+(?: \(phi\))? @\d+>)$"


def read_used_values(section: Lines) -> UsedValues:
    """Read the part of a dump from `Total bytes used` through its used values.

    The definitions are most of the text and repeat the HLO text. `read_definitions` reads them
    if the HLO text is missing. Raises DumpError.
    """
    try:
        (found,) = read_all_used_values(section, section.starts[:1])
    except DumpError:
        joined = _joined_definitions(section)
        if len(joined) == len(section):
            raise
        (found,) = read_all_used_values(joined, joined.starts[:1])
    return found


def _joined_definitions(section: Lines) -> Lines:
    """The lines, with each definition of several lines on one."""
    return joined_lines(section, section.starting(_DEFINITION), section.starting("<"))


def read_all_used_values(lines: Lines, starts: Positions) -> list[UsedValues]:
    """Read such parts of several dumps, which start at these positions of the lines' content.

    Raises DumpError if one of several says what is not known, too.
    """
    totals, body, newer = _heading(lines, starts)
    is_value = body.starting("<")
    is_positions = body.equal(" positions:")
    if np.count_nonzero(is_value) != np.count_nonzero(is_positions):
        if len(starts) > 1:
            raise DumpError("a value follows a definition without a line end")
        body = _unglued(body)
        is_value, is_positions = body.starting("<"), body.equal(" positions:")
    is_uses = body.equal(" uses:")
    is_definition = body.starting(_DEFINITION)
    is_list = body.starting(" ") & ~body.starting("  ") & body.ending(":")
    is_list &= ~(is_positions | is_uses | is_definition)
    if is_list.any():
        lists = body.where(is_list)
        is_list[is_list] = as_numpy(pc.match_substring_regex(lists.text, _LIST))
        lists = body.where(is_list)
        newer += newer_words(lists, pc.utf8_trim_whitespace(lists.text), "list of a value")
    _check_order(body, is_value, is_positions, is_uses, is_definition)

    is_item = body.starting("  ") & ~body.equal("  (none)")
    # An item's index counts from the ` positions:` or ` uses:` line above the item.
    line = np.arange(len(body))
    marks = is_value | is_positions | is_uses | is_definition | is_list
    mark = np.maximum.accumulate(np.where(marks, line, 0))
    other = ~(
        is_value
        | is_positions
        | is_uses
        | is_definition
        | (is_item & ~is_definition[mark])
        | is_list
        | body.equal("")
        | body.equal("  (none)")
    )
    if other.any():
        body.refuse(other, "expected a position or a use of a value")
    values = body.where(is_value)
    value_columns = pa.table(value_names(values, values.text))

    owner = np.cumsum(is_value) - 1

    def items(below: npt.NDArray[np.bool_]) -> _Items:
        mask = is_item & below[mark]
        value_id = value_columns["value_id"].take(pa.array(owner[mask]))
        return _Items(body.where(mask), value_id, (line - mark - 1)[mask])

    positions, uses = items(is_positions), items(is_uses)
    if len(starts) == 1:
        # An unglued body has a content of its own.
        starts = np.zeros(1, np.int64)
    return [
        UsedValues(*columns, not_understood=newer)
        for columns in zip(
            totals,
            divided(value_columns, values.bounds(starts)),
            divided(_positions(positions), positions.lines.bounds(starts)),
            divided(_uses(uses), uses.lines.bounds(starts)),
            strict=True,
        )
    ]


def read_definitions(section: Lines, used: UsedValues) -> UsedValues:
    """`used` with the definitions of its instructions that can be read. Raises DumpError."""
    joined = _joined_definitions(section)
    _, body, _ = _heading(joined, joined.starts[:1])
    if np.count_nonzero(body.starting("<")) != len(used.values):
        body = _unglued(body)
    is_definition = body.starting(_DEFINITION)
    lines = _definitions(body, is_definition, used.values["instruction"])
    definitions, errors = read_the_rest(
        lines, lambda lines: read_instructions(split_instructions(lines))
    )
    unread = unread_lines(errors, len(definitions), "instructions")
    return replace(used, definitions=definitions, unread=unread)


class _Items(NamedTuple):
    """The lines below ` positions:` or ` uses:`, each with its value and its index."""

    lines: Lines
    value_id: pa.ChunkedArray
    number: npt.NDArray[np.int64]


def _heading(lines: Lines, starts: Positions) -> tuple[list[int], Lines, NotUnderstoods]:
    """`Total bytes used`, the lines of the values, and what is not known before and after."""
    bounds = lines.bounds(starts)
    first, stop = bounds[:-1], bounds[1:]
    headings = lines.where(first)
    found = headings.extract(_TOTAL, "'Total bytes used: N'")
    totals = headings.integers(found["total_bytes"], most=LARGEST_SIZE).to_pylist()
    at = np.append(np.flatnonzero(lines.equal("Used values:")), len(lines))
    opening = at[np.searchsorted(at, first)]
    for last in stop[opening >= stop][:1].tolist():
        raise DumpError(
            "the file ends before 'Used values:': dump the program again",
            int(lines.numbers[last - 1]),
        )
    newer = newer_lines(lines.runs(first + 1, opening))
    body = lines.runs(opening + 1, stop)
    if not body.ending(":").any():
        return totals, body, newer
    known = body.starting("<") | body.starting(_DEFINITION)
    body, sections = before_newer_sections(body, known)
    return totals, body, newer + sections


def _unglued(body: Lines) -> Lines:
    """The lines, split where a value follows a definition on the same line."""
    cut = pc.replace_substring_regex(
        body.text, pattern=r"^( from instruction:.*?)" + _GLUED, replacement="\\1\n\\2"
    )
    parts = pc.split_pattern(cut, pattern="\n")
    counts = pc.list_value_length(parts).to_numpy()
    return lines_of(parts.flatten(), np.repeat(body.numbers, counts))


def _check_order(body: Lines, *marks: npt.NDArray[np.bool_]) -> None:
    """Raise DumpError if a value's positions, uses and definition do not follow the value."""
    # 0 value, 1 positions, 2 uses, 3 definition: the lines must repeat in this order.
    marked = np.flatnonzero(np.logical_or.reduce(marks))
    kinds = np.select([mark[marked] for mark in marks], range(len(marks)))
    wrong = kinds != np.arange(len(kinds)) % len(marks)
    if wrong.any():
        mask = np.zeros(len(body), bool)
        mask[marked[np.argmax(wrong)]] = True
        body.refuse(mask, "a value's positions, uses and instruction are not in order")
    if len(kinds) % len(marks):
        raise DumpError(
            "the file ends within a value: it is cut short, dump the program again",
            int(body.numbers[-1]),
        )


def _positions(items: _Items) -> pa.Table:
    found = items.lines.extract(_POSITION, "a position")
    return pa.table(
        {
            "value_id": items.value_id,
            "position_index": items.number,
            "instruction": found["instruction"],
            "shape_index": _index(found["shape_index"]),
        }
    )


def _uses(items: _Items) -> pa.Table:
    found = items.lines.extract(_USE, "a use")
    return pa.table(
        {
            "value_id": items.value_id,
            "use_index": items.number,
            "instruction": found["instruction"],
            "operand_number": items.lines.integers(found["operand_number"]),
            "operand_shape_index": _index(found["operand_shape_index"]),
        }
    )


def _index(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """A shape index; an empty text means the whole, `{}`."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar("{}", texts.type), texts)


def _definitions(body: Lines, mask: npt.NDArray[np.bool_], instruction: pa.ChunkedArray) -> Lines:
    """Each defining instruction once, because each element of a tuple repeats its line."""
    codes = instruction.combine_chunks().dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    chosen = np.zeros(len(codes), bool)
    chosen[first] = True
    kept = mask.copy()
    kept[mask] = chosen
    lines = body.where(kept)
    text = pc.utf8_ltrim_whitespace(pc.utf8_slice_codeunits(lines.text, len(_DEFINITION)))
    return lines_of(text, lines.numbers)
