"""Reader of the instructions' attributes that only dataflow and liveness need.

The warehouse does not store these attributes, so they are read only on demand: see
`HloText.attributes`.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.limits import LARGEST_ID
from ...xla.parts import HloAttributes
from .backend_configs import aliasing_operands
from .instructions import InstructionLines
from .lines import Bytes, Mask, Positions, slices, standing

_Source = TypeVar("_Source")

_MOST_DIGITS = 10
_FIRST_START = r"^\{\[(?P<start>[0-9]{1,18}):"
_ALIASES = r"^\{(?P<text>(?:[^{}]|\{[^{}]*\})*)\}"
# What only a GPU's compiler writes into metadata and backend_config.
GPU_WORDS = (
    b"operation_queue_id",
    b"scheduling_name",
    b"fusion_backend_config",
    b"__cublas",
    b"__triton",
)


def read_attributes(instructions: InstructionLines) -> HloAttributes:
    """Read the attributes; what an instruction does not say is null. Raises DumpError."""
    table = pa.table(
        {
            "line": pa.array(instructions.lines.numbers),
            "is_root": pa.array(_is_root(instructions)),
            "parameter_number": _parameter_numbers(instructions),
            "tuple_index": _tuple_indices(instructions),
            "slice_start": _slice_starts(instructions),
            "fusion_kind": _texts(instructions, "kind", r"^(?P<text>k[A-Za-z]+)"),
            "output_to_operand_aliasing": _texts(
                instructions, "output_to_operand_aliasing", _ALIASES
            ),
        }
    )
    _, configs = instructions.backend_configs
    late = _contains(configs.dictionary, '"dma_priority":')
    return HloAttributes(table, _aliasing_operands(instructions), _is_gpu(instructions), late)


def read_once(
    read: Callable[[_Source], HloAttributes], source: _Source
) -> Callable[[], HloAttributes]:
    """A function that reads the attributes when first called, and then frees the source."""
    sources = [source]

    @cache
    def attributes() -> HloAttributes:
        found = read(sources[0])
        sources.clear()
        return found

    return attributes


def _is_gpu(instructions: InstructionLines) -> bool:
    """Whether a GPU's compiler wrote the attributes."""
    _, metadata = instructions.metadata
    _, configs = instructions.backend_configs
    places = metadata.dictionary, configs.dictionary, instructions.custom_call_targets.unique()
    return any(_contains(texts, word.decode()) for texts in places for word in GPU_WORDS)


def _contains(texts: pa.LargeStringArray, word: str) -> bool:
    return bool(pc.any(pc.match_substring(texts, word)).as_py())


def _aliasing_operands(instructions: InstructionLines) -> pa.Table:
    """The instructions whose backend_config says which operands share memory: row, lists."""
    rows, configs = instructions.backend_configs
    found = aliasing_operands(np.arange(len(configs.dictionary)), configs.dictionary)
    saying = np.full(len(configs.dictionary), -1)
    saying[found["row"].to_numpy()] = np.arange(len(found))
    at = saying[configs.indices.to_numpy()]
    lists = found["lists"].combine_chunks().take(pa.array(at[at >= 0]))
    return pa.table({"row": rows[at >= 0], "lists": lists})


def _is_root(instructions: InstructionLines) -> Mask:
    """Which lines start with `ROOT `, and are not of an instruction called ROOT."""
    lines = instructions.lines
    at = lines.starts + 2 * lines.starting("  ")
    return standing(lines.content, at, b"ROOT ") & ~standing(lines.content, at, b"ROOT =")


def _byte(content: Bytes, at: Positions) -> Bytes:
    """The bytes at these positions; the last one for a position beyond the end."""
    found: Bytes = content[np.minimum(at, len(content) - 1)]
    return found


def _parameter_numbers(instructions: InstructionLines) -> pa.Int32Array:
    rows = np.flatnonzero(instructions.has_opcode(["parameter"]))
    return _numbers(instructions, rows, instructions.operands[rows])


def _tuple_indices(instructions: InstructionLines) -> pa.Int32Array:
    rows, starts = instructions.attribute("index")
    chosen = instructions.has_opcode(["get-tuple-element"])[rows]
    return _numbers(instructions, rows[chosen], starts[chosen])


def _slice_starts(instructions: InstructionLines) -> pa.Int64Array:
    """Where each slice begins in the first dimension: `slice={[START:STOP], ...}`.

    Null of what has no such number: it only tells which part of a concatenation is cut out.
    """
    lines = instructions.lines
    rows, starts = instructions.attribute("slice")
    chosen = instructions.has_opcode(["slice"])[rows]
    rows, starts = rows[chosen], starts[chosen]
    value = slices(lines.content, starts, lines.ends[rows])
    found = pc.struct_field(pc.extract_regex(value, pattern=_FIRST_START), "start")
    at = np.full(len(lines), -1)
    at[rows] = np.arange(len(rows))
    return found.cast(pa.int64()).take(pa.array(at, mask=at < 0))


def _numbers(instructions: InstructionLines, rows: Positions, starts: Positions) -> pa.Int32Array:
    """The decimal numbers that start at these bytes, in a column of all lines.

    Raises DumpError at the first that is not a number.
    """
    lines = instructions.lines
    numbers = np.zeros(len(rows), np.int64)
    digits = np.zeros(len(rows), np.int64)
    open_ = np.arange(len(rows))
    for place in range(_MOST_DIGITS):
        digit = _byte(lines.content, starts[open_] + place).astype(np.int64) - ord("0")
        is_digit = (digit >= 0) & (digit <= 9)
        open_, digit = open_[is_digit], digit[is_digit]
        numbers[open_] = numbers[open_] * 10 + digit
        digits[open_] = place + 1
    wrong = (digits == 0) | (digits == _MOST_DIGITS) | (numbers > LARGEST_ID)
    if wrong.any():
        lines.where(rows).refuse(wrong, "expected a number of at most nine digits")
    column = np.zeros(len(lines), np.int32)
    column[rows] = numbers
    missing = np.ones(len(lines), bool)
    missing[rows] = False
    return pa.array(column, mask=missing)


def _texts(instructions: InstructionLines, name: str, pattern: str) -> pa.Array:
    """An attribute's value as the group `text` of a pattern finds it, null where it does not.

    A column of few distinct texts: a dictionary.
    """
    lines = instructions.lines
    rows, starts = instructions.attribute(name)
    value = slices(lines.content, starts, lines.ends[rows])
    # struct_field keeps null what does not match.
    found = pc.struct_field(pc.extract_regex(value, pattern=pattern), "text").dictionary_encode()
    at = np.full(len(lines), -1)
    at[rows] = np.arange(len(rows))
    return found.take(pa.array(at, mask=at < 0))
