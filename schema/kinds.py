"""How a DuckDB file stores instructions: what each has for itself, and the kinds that they are of.

A large program has few kinds of instructions, and most names differ in a number alone:

    name                 before    number    after
    fusion.12            fusion.   12
    mul.12.clone.3       mul.      12        .clone.3
    x.007                x.00      7
    x                    x
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..xla.runs import Ints, joined, starts_of
from .arrow import stored_columns

# A number, and what XLA appends to the names of copies.
_NUMBER = r"(?:0|[1-9][0-9]{0,8})(?:\.clone|\.[0-9])*\z"
_MOST_DIGITS = 9
_MOST_CODES = 2**62
_ZERO = ord("0")


def rows_and_kinds(instructions: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The tables that store rows of `instructions`, with their names."""
    before, number, after = name_parts(instructions["instruction"])
    of_rows = stored_columns()["_instructions"]
    own = [name for name in instructions.column_names if name in of_rows]
    kinds = instructions.drop_columns([*{*own} - {"module_id"}, "instruction"])
    kinds = kinds.append_column("before", before).append_column("after", after)
    kind, first = _numbered(kinds.columns)
    kinds = kinds.take(first)
    # From 0 in each module.
    modules = kinds["module_id"].to_numpy()
    order = np.argsort(modules, kind="stable")
    _, start, count = np.unique(modules[order], return_index=True, return_counts=True)
    kind_id = np.empty(len(kinds), np.int32)
    kind_id[order] = np.arange(len(kinds)) - np.repeat(start, count)
    yield "_instruction_kinds", kinds.append_column("kind_id", pa.array(kind_id))
    rows = instructions.select(own).append_column("kind_id", pa.array(kind_id[kind]))
    yield "_instructions", rows.append_column("number", number)


def name_parts(names: pa.ChunkedArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """What stands before each name's number, the number, and what stands after it.

    The three together are the name, whatever it is. Of a name without a number all stands before.
    """
    array = names.cast(pa.large_string()).combine_chunks()
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    start, stop = ends[:-1], ends[1:]
    # A name that ends with its number is read one place beyond.
    text = np.append(np.frombuffer(data or b"", np.uint8), np.uint8(0))
    found = pc.find_substring_regex(array, _NUMBER).to_numpy()
    has = found >= 0
    at = np.where(has, start + found, stop)
    after = at.copy()
    number = np.zeros(len(array), np.int64)
    for _ in range(_MOST_DIGITS):
        # Less than 0 is more than 9, too.
        digit = text[after] - np.uint8(_ZERO)
        is_digit = (digit <= 9) & (after < stop)
        number = np.where(is_digit, number * 10 + digit, number)
        after += is_digit
    numbers = pa.array(number, pa.int32(), mask=~has)
    return _cut(text, start, at), numbers, _cut(text, after, stop)


def _cut(text: npt.NDArray[np.uint8], start: Ints, stop: Ints) -> pa.Array:
    """The pieces of a text."""
    length = stop - start
    buffers = [None, pa.py_buffer(starts_of(length)), pa.py_buffer(text[joined(start, length)])]
    return pa.Array.from_buffers(pa.large_string(), len(length), buffers)


def _numbered(columns: Iterable[pa.ChunkedArray]) -> tuple[Ints, Ints]:
    """Of each row the number of its kind, from 0 as they come, and the first row of each kind."""
    kind, kinds = np.zeros(1, np.int64), 1
    for column in columns:
        codes, count = _codes(column.combine_chunks())
        if kinds * count > _MOST_CODES:
            kind, kinds = _codes(pa.array(kind))
        kind, kinds = kind * count + codes, kinds * count
    kind, kinds = _codes(pa.array(kind))
    first = np.empty(kinds, np.int64)
    first[kind[::-1]] = np.arange(len(kind))[::-1]
    return kind, first


def _codes(column: pa.Array) -> tuple[Ints, int]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
