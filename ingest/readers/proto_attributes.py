"""The attributes of a HloModuleProto's instructions."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID
from ...xla.parts import HloAttributes
from .attributes import GPU_WORDS
from .backend_configs import aliasing_operands
from .proto_dimensions import dimension_attributes
from .proto_instructions import ProtoInstructions, backend_configs
from .proto_schema import Columns, distinct


def read_proto_attributes(rows: ProtoInstructions) -> HloAttributes:
    """Read the attributes that are not stored. Raises DumpError.

    A binary has no lines: `lines` counts the instructions.
    """
    at, configs = backend_configs(rows, b'"aliasing_operands":')
    order = np.argsort(at, kind="stable")
    recorded = aliasing_operands(at[order], configs.take(pa.array(order)))
    return HloAttributes(
        pa.array(np.arange(1, len(rows) + 1)),
        recorded,
        _is_gpu(rows),
        b'"dma_priority":' in rows.data,
    )


def proto_program_columns(rows: ProtoInstructions) -> dict[str, pa.Array]:
    """The columns of the table `instructions` from is_root to attributes.

    What an instruction does not say is null. Raises DumpError.
    """
    is_root = np.zeros(len(rows), bool)
    is_root[rows.root] = True
    return {
        "is_root": pa.array(is_root),
        "parameter_number": _numbers(rows, "parameter", "parameter_number"),
        "tuple_index": _numbers(rows, "get-tuple-element", "tuple_index"),
        "fusion_kind": _fusion_kinds(rows),
        "attributes": dimension_attributes(rows),
    }


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


def _fusion_kinds(rows: ProtoInstructions) -> pa.Array:
    texts = rows.messages.texts("fusion_kind", "the kind of a fusion")
    texts = pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)
    return texts.dictionary_encode().take(pa.array(rows.message_of))


def _has_scheduling_names(rows: ProtoInstructions) -> bool:
    _, each = distinct(rows.messages.contents("metadata")[1])
    _, names = Columns("OpMetadata", each).contents("scheduling_name")
    return any(names.to_pylist())
