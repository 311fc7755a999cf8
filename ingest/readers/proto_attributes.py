"""The attributes of a HloModuleProto's instructions that only dataflow and liveness need."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID
from ...xla.parts import HloAttributes
from .attributes import GPU_WORDS
from .backend_configs import aliasing_operands, placed
from .lines import Positions
from .proto_instructions import (
    ALIASES,
    FUSION_KIND,
    METADATA,
    PARAMETER,
    SLICES,
    TUPLE_INDEX,
    ProtoInstructions,
)
from .proto_tables import backend_configs
from .wire import read_messages
from .wire_bytes import distinct
from .wire_scalar import fields, numbers

_START = 1  # of SliceDimensions
_SCHEDULING_NAME = 16  # of OpMetadata
# Fields of OutputOperandAliasing.
_OUTPUT_INDEX, _OPERAND, _OPERAND_INDEX = 1, 2, 3


def read_proto_attributes(rows: ProtoInstructions) -> HloAttributes:
    """Read the attributes; what an instruction does not say is null. Raises DumpError.

    A binary has no lines: `line` counts the instructions.
    """
    is_root = np.zeros(len(rows), bool)
    is_root[rows.root] = True
    table = pa.table(
        {
            "line": pa.array(np.arange(1, len(rows) + 1)),
            "is_root": pa.array(is_root),
            "parameter_number": _numbers(rows, "parameter", PARAMETER),
            "tuple_index": _numbers(rows, "get-tuple-element", TUPLE_INDEX),
            "slice_start": _slice_starts(rows),
            "fusion_kind": _fusion_kinds(rows),
            "output_to_operand_aliasing": _aliasing(rows),
        }
    )
    at, _, configs = backend_configs(rows, b'"aliasing_operands":')
    order = np.argsort(at, kind="stable")
    recorded = aliasing_operands(at[order], configs.take(pa.array(order)))
    return HloAttributes(table, recorded, _is_gpu(rows), b'"dma_priority":' in rows.wire.data)


def _is_gpu(rows: ProtoInstructions) -> bool:
    """Whether the attributes are of a GPU's compiler; tiled layouts are a TPU's."""
    if any(":T(" in shape.text for shape in rows.shapes):
        return False
    return any(word in rows.wire.data for word in GPU_WORDS) or _has_scheduling_names(rows)


def _numbers(rows: ProtoInstructions, opcode: str, number: int) -> pa.Array:
    """A number that instructions of one opcode have; null of all others. Raises DumpError."""
    column = rows.messages.numbers(number)[rows.message_of]
    has = rows.has_opcode(opcode)
    wrong = has & ((column < 0) | (column > LARGEST_ID))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DumpError(
            f"{opcode} {rows.names[row]} at byte {rows.byte_of(row)} has the number {column[row]}"
        )
    return pa.array(np.where(has, column, 0), pa.int32(), mask=~has)


def _slice_starts(rows: ProtoInstructions) -> pa.Array:
    """Where each slice begins in the first dimension."""
    each = rows.messages.each(SLICES)
    first = each.at(np.append(True, each.message[1:] != each.message[:-1])[: len(each)])
    row = rows.row_of[first.message]
    chosen = rows.has_opcode("slice")[row]
    first, row = first.at(chosen), row[chosen]
    read = read_messages(rows.wire, first.first, first.end, numbers=(_START,))
    column, missing = np.zeros(len(rows), np.int64), np.ones(len(rows), bool)
    column[row], missing[row] = read.numbers(_START), False
    return pa.array(column, mask=missing)


def _fusion_kinds(rows: ProtoInstructions) -> pa.Array:
    texts = rows.messages.texts(FUSION_KIND, "the kind of a fusion")
    texts = pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)
    return texts.dictionary_encode().take(pa.array(rows.message_of))


def _aliasing(rows: ProtoInstructions) -> pa.Array:
    """The pairs of an output and an operand as `{0}: (1, {}), {1}: (2, {})`."""
    each = rows.messages.each(ALIASES)
    code, first = distinct(rows.wire, each.first, each.end)
    pairs = [
        _pair(rows.wire.data, start, end)
        for start, end in zip(each.first[first].tolist(), each.end[first].tolist(), strict=True)
    ]
    texts = pa.array(pairs, pa.large_string()).take(pa.array(code))
    message, begin = np.unique(each.message, return_index=True)
    lists = pa.LargeListArray.from_arrays(pa.array(np.append(begin, len(each))), texts)
    joined = pc.binary_join(lists, pa.scalar(", ", pa.large_string())).dictionary_encode()
    return placed(joined, rows.row_of[message], len(rows))


def _pair(data: bytes | memoryview, start: int, end: int) -> str:
    lists: dict[int, list[int]] = {_OUTPUT_INDEX: [], _OPERAND: [], _OPERAND_INDEX: []}
    for field in fields(data, start, end):
        if field[0] in lists:
            lists[field[0]] += numbers(data, field)
    operand = lists[_OPERAND][-1] if lists[_OPERAND] else 0
    return f"{index_text(lists[_OUTPUT_INDEX])}: ({operand}, {index_text(lists[_OPERAND_INDEX])})"


def index_text(index: list[int] | tuple[int, ...]) -> str:
    """A shape index such as `{1,0}`."""
    return f"{{{','.join(map(str, index))}}}"


def _has_scheduling_names(rows: ProtoInstructions) -> bool:
    found = rows.messages.last(METADATA)
    _, first = distinct(rows.wire, found.first, found.end)
    starts: Positions = found.first[first]
    read = read_messages(rows.wire, starts, found.end[first], contents=(_SCHEDULING_NAME,))
    return len(read.each(_SCHEDULING_NAME)) > 0
