"""Reader of the instructions' attributes.

What makes the program is stored, see `program_columns`. What only liveness needs is read on
demand, see `HloText.attributes`.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.limits import LARGEST_ID
from ...xla.parts import HloAttributes
from .backend_configs import aliasing_operands, placed
from .instructions import InstructionLines
from .lines import Bytes, Mask, Positions, slices, standing, words

_Source = TypeVar("_Source")

_MOST_DIGITS = 10
_KIND = r"^(?P<text>k[A-Za-z]+)"
# The attributes of `attributes`, by what has them; XLA prints them in this order.
DIMENSION_ATTRIBUTES = (
    "dimensions",
    "iota_dimension",
    "slice",
    "padding",
    "dynamic_slice_sizes",
    "window",
    "dim_labels",
    "feature_group_count",
    "batch_group_count",
    "lhs_batch_dims",
    "lhs_contracting_dims",
    "rhs_batch_dims",
    "rhs_contracting_dims",
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "index_vector_dim",
    "slice_sizes",
    "output_to_operand_aliasing",
)
# The instructions with such attributes; any may have `output_to_operand_aliasing`.
_DIMENSIONED = [
    "all-gather",
    "all-gather-start",
    "all-to-all",
    "broadcast",
    "concatenate",
    "convolution",
    "custom-call",
    "dot",
    "dynamic-slice",
    "gather",
    "get-dimension-size",
    "iota",
    "map",
    "pad",
    "reduce",
    "reduce-scatter",
    "reduce-window",
    "reverse",
    "scatter",
    "select-and-scatter",
    "set-dimension-size",
    "slice",
    "sort",
    "transpose",
]
# What follows these is no such attribute, and differs from line to line.
_BEHIND = (b"metadata=", b"calls=", b"to_apply=", b"select=", b"sharding=", b"backend_config=")
_ATTRIBUTE = re.compile(
    rf"(?:^|, )((?:{'|'.join(DIMENSION_ATTRIBUTES)})="
    r"(?:\{(?:[^{}]|\{[^{}]*\})*\}|[^ ,{}]+))"
)
_QUOTES = re.compile(r'"(?:[^"\\]|\\.)*"')
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
    _, configs = instructions.backend_configs
    late = _contains(configs.dictionary, '"dma_priority":')
    return HloAttributes(
        pa.array(instructions.lines.numbers),
        _aliasing_operands(instructions),
        _is_gpu(instructions),
        late,
    )


def program_columns(instructions: InstructionLines) -> dict[str, pa.Array]:
    """The columns of the table `instructions` from is_root to attributes.

    What an instruction does not say is null. Raises DumpError.
    """
    return {
        "is_root": pa.array(_is_root(instructions)),
        "parameter_number": _parameter_numbers(instructions),
        "tuple_index": _tuple_indices(instructions),
        "fusion_kind": _fusion_kinds(instructions),
        "attributes": _dimension_attributes(instructions),
    }


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


def _fusion_kinds(instructions: InstructionLines) -> pa.Array:
    """The kind of each fusion, a dictionary."""
    lines = instructions.lines
    rows, starts = instructions.attribute("kind")
    value = slices(lines.content, starts, lines.ends[rows])
    # struct_field keeps null what does not match.
    found = pc.struct_field(pc.extract_regex(value, pattern=_KIND), "text").dictionary_encode()
    return placed(found, rows, len(lines))


def _dimension_attributes(instructions: InstructionLines) -> pa.Array:
    """What each line says of DIMENSION_ATTRIBUTES, as XLA prints it: a dictionary."""
    lines, content = instructions.lines, instructions.lines.content
    chosen = instructions.has_opcode(_DIMENSIONED)
    chosen[instructions.attribute("output_to_operand_aliasing")[0]] = True
    at = np.flatnonzero(chosen[instructions.comma_rows])
    rows, commas = instructions.comma_rows[at], instructions.commas[at]
    first = words(content, commas + 1)
    # The operands' parenthesis closes before the first attribute.
    is_first = content[commas - 2] == ord(")")
    is_behind = np.logical_or.reduce(
        [standing(content, commas + 1, name, first) for name in _BEHIND]
    )
    begin = np.flatnonzero(is_first)
    begin = begin[np.append(True, rows[begin][1:] != rows[begin][:-1])[: len(begin)]]
    owner = rows[begin]
    stop = np.append(commas - 1, len(content))[_next(is_behind, begin)]
    starts = commas[begin] + 1
    texts = slices(content, starts, np.maximum(starts, np.minimum(stop, lines.ends[owner])))
    encoded = texts.dictionary_encode()
    # Few texts are distinct, so a Python loop is fast enough.
    named = [
        ", ".join(_ATTRIBUTE.findall(_QUOTES.sub("", text))) or None
        for text in encoded.dictionary.to_pylist()
    ]
    found = pa.array(named, pa.large_string()).take(encoded.indices).dictionary_encode()
    return placed(found, owner, len(lines))


def _next(mask: Mask, at: Positions) -> Positions:
    """The first place of the mask at or behind each of these; its length if there is none."""
    places = np.flatnonzero(mask)
    found: Positions = np.append(places, len(mask))[np.searchsorted(places, at)]
    return found
