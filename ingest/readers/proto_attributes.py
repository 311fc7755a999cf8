"""The attributes of a HloModuleProto's instructions that only dataflow and liveness need."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID
from ...xla.parts import HloAttributes
from .attributes import GPU_WORDS
from .backend_configs import aliasing_operands, placed
from .proto_instructions import ProtoInstructions, backend_configs
from .proto_schema import Columns, distinct, parse


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
            "parameter_number": _numbers(rows, "parameter", "parameter_number"),
            "tuple_index": _numbers(rows, "get-tuple-element", "tuple_index"),
            "slice_start": _slice_starts(rows),
            "fusion_kind": _fusion_kinds(rows),
            "output_to_operand_aliasing": _aliasing(rows),
        }
    )
    at, configs = backend_configs(rows, b'"aliasing_operands":')
    order = np.argsort(at, kind="stable")
    recorded = aliasing_operands(at[order], configs.take(pa.array(order)))
    return HloAttributes(table, recorded, _is_gpu(rows), b'"dma_priority":' in rows.data)


def _is_gpu(rows: ProtoInstructions) -> bool:
    """Whether the attributes are of a GPU's compiler; tiled layouts are a TPU's."""
    if any(":T(" in shape.text for shape in rows.shapes):
        return False
    return any(word in rows.data for word in GPU_WORDS) or _has_scheduling_names(rows)


def _numbers(rows: ProtoInstructions, opcode: str, field: str) -> pa.Array:
    """A number that instructions of one opcode have; null of all others. Raises DumpError."""
    column = rows.messages.numbers(field)[rows.message_of]
    has = rows.has_opcode(opcode)
    wrong = has & ((column < 0) | (column > LARGEST_ID))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DumpError(f"{opcode} {rows.names[row]} has the number {column[row]}")
    return pa.array(np.where(has, column, 0), pa.int32(), mask=~has)


def _slice_starts(rows: ProtoInstructions) -> pa.Array:
    """Where each slice begins in the first dimension."""
    message, slices = rows.messages.contents("slice_dimensions")
    is_first = np.append(True, message[1:] != message[:-1])[: len(message)]
    row = rows.row_of[message]
    chosen = np.flatnonzero(is_first & rows.has_opcode("slice")[row])
    read = Columns("SliceDimensions", slices.take(pa.array(chosen)).to_pylist())
    return placed(pa.array(read.numbers("start")), row[chosen], len(rows))


def _fusion_kinds(rows: ProtoInstructions) -> pa.Array:
    texts = rows.messages.texts("fusion_kind", "the kind of a fusion")
    texts = pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)
    return texts.dictionary_encode().take(pa.array(rows.message_of))


def _aliasing(rows: ProtoInstructions) -> pa.Array:
    """The pairs of an output and an operand as `{0}: (1, {}), {1}: (2, {})`."""
    message, aliases = rows.messages.contents("output_operand_aliasing")
    code, each = distinct(aliases)
    texts = pa.array(map(_pair, each), pa.large_string()).take(pa.array(code))
    owner, begin = np.unique(message, return_index=True)
    lists = pa.LargeListArray.from_arrays(pa.array(np.append(begin, len(message))), texts)
    joined = pc.binary_join(lists, pa.scalar(", ", pa.large_string())).dictionary_encode()
    return placed(joined, rows.row_of[owner], len(rows))


def _pair(data: bytes) -> str:
    alias = parse("OutputOperandAliasing", data)
    operand = f"{alias.operand_index}, {index_text(alias.operand_shape_index)}"
    return f"{index_text(alias.output_shape_index)}: ({operand})"


def index_text(index: Iterable[int]) -> str:
    """A shape index such as `{1,0}`."""
    return f"{{{','.join(map(str, index))}}}"


def _has_scheduling_names(rows: ProtoInstructions) -> bool:
    _, each = distinct(rows.messages.contents("metadata")[1])
    return len(Columns("OpMetadata", each).contents("scheduling_name")[0]) > 0
