"""The tables of HLO text from the instructions of a HloModuleProto."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID, LARGEST_SIZE
from .backend_configs import placed, scoped_bytes
from .lines import Mask, Positions, as_numpy, slices
from .proto_instructions import (
    CONFIG,
    METADATA,
    TARGET,
    ProtoInstructions,
    place_within,
)
from .wire import read_messages
from .wire_bytes import checked_texts, distinct

# Fields of OpMetadata.
_OP_NAME, _FILE, _LINE, _FRAME = 2, 3, 4, 15
# What calls a computation by `to_apply`; all that is not here nor below calls by `calls`.
_APPLYING = (
    "call",
    "map",
    "reduce",
    "reduce-window",
    "reduce-scatter",
    "all-reduce",
    "all-reduce-start",
    "scatter",
    "sort",
    "topk",
)
# What calls by several attributes, in the order of the called computations.
_CALLING_PAIRS = {
    "while": ("body", "condition"),
    "select-and-scatter": ("select", "scatter"),
}
_BRANCHES = ("true_computation", "false_computation")


def instruction_table(rows: ProtoInstructions) -> pa.Table:
    """The instructions' columns as in `HloText.instructions`. Raises DumpError."""
    texts = pa.array([shape.text for shape in rows.shapes], pa.large_string())
    return pa.table(
        {
            "instruction": rows.names,
            "opcode": rows.opcodes.cast(pa.large_string()),
            "shape": texts.take(pa.array(rows.shape)),
            **_metadata(rows),
            "custom_call_target": _targets(rows),
            "scoped_bytes": _scoped(rows),
            "computation": rows.computations.take(pa.array(rows.computation)),
        }
    )


def _metadata(rows: ProtoInstructions) -> dict[str, pa.Array]:
    """Where instructions come from. Many share one metadata, so equal bytes are read once."""
    found = rows.messages.last(METADATA)
    code, first = distinct(rows.wire, found.first, found.end)
    starts = found.first[first]
    read = read_messages(
        rows.wire, starts, found.end[first], numbers=(_LINE, _FRAME), contents=(_OP_NAME, _FILE)
    )
    at = np.full(len(rows), -1)
    at[rows.row_of[found.message]] = code
    taken = pa.array(at, mask=at < 0)

    def text(number: int) -> pa.Array:
        column = read.texts(number, "the metadata")
        return pc.if_else(pc.equal(pc.binary_length(column), 0), None, column).take(taken)

    def count(number: int) -> pa.Array:
        column = read.numbers(number)
        if (column > LARGEST_ID).any():
            byte = starts[np.argmax(column > LARGEST_ID)]
            raise DumpError(f"the metadata at byte {byte} has a number over {LARGEST_ID}")
        return pa.array(column, pa.int32(), mask=column <= 0).take(taken)

    return {
        "op_name": text(_OP_NAME),
        "source_file": text(_FILE),
        "source_line": count(_LINE),
        "stack_frame_id": count(_FRAME),
    }


def _targets(rows: ProtoInstructions) -> pa.Array:
    """The kernels of custom calls; null of all else."""
    chosen = rows.message_of[np.flatnonzero(rows.has_opcode("custom-call"))]
    targets = rows.messages.texts(TARGET, "the target of a custom call").take(pa.array(chosen))
    return placed(targets, rows.row_of[chosen], len(rows))


def _scoped(rows: ProtoInstructions) -> pa.Array:
    at, starts, configs = backend_configs(rows, b'"scoped_memory_configs":[{')
    found = scoped_bytes(configs)
    wrong = as_numpy(pc.fill_null(pc.greater(found, LARGEST_SIZE), False))
    if wrong.any():
        byte = starts[np.argmax(wrong)]
        raise DumpError(f"the backend_config at byte {byte} has a number over {LARGEST_SIZE}")
    return placed(found, at, len(rows))


def backend_configs(
    rows: ProtoInstructions, holding: bytes
) -> tuple[Positions, Positions, pa.LargeStringArray]:
    """The backend_configs that hold some bytes: rows, where they start, texts.

    Raises DumpError for one that is not UTF-8.
    """
    found = rows.messages.last(CONFIG)
    # What is not JSON is printed in quotes, where HLO text says nothing more of it.
    found = found.at(rows.wire.content[np.minimum(found.first, len(rows.wire.content) - 1)] == 0x7B)
    texts = slices(rows.wire.content, found.first, found.end)
    chosen = np.flatnonzero(as_numpy(pc.match_substring(texts, holding.decode())))
    found, texts = found.at(chosen), texts.take(pa.array(chosen))
    texts = checked_texts(texts, found.first, "the backend_config")
    return rows.row_of[found.message], found.first, texts


def operand_table(rows: ProtoInstructions) -> pa.Table:
    """The operands as in `HloText.operands`. Raises DumpError."""
    owner, operand = rows.operands
    return pa.table(
        {
            "instruction": rows.names.take(pa.array(owner)),
            "operand_number": pa.array(place_within(owner), pa.int32()),
            "operand": rows.names.take(pa.array(operand)),
        }
    )


def call_table(rows: ProtoInstructions) -> pa.Table:
    """The calls as in `HloText.calls`. Raises DumpError."""
    owner, called = rows.calls
    place = place_within(owner)
    attribute = np.full(len(owner), "calls", object)
    attribute[rows.has_opcode(*_APPLYING)[owner]] = "to_apply"
    attribute[rows.has_opcode("custom-call")[owner]] = "called_computations"
    count = np.bincount(owner, minlength=len(rows))[owner]
    for opcode, names in _CALLING_PAIRS.items():
        of = rows.has_opcode(opcode)[owner]
        for number, name in enumerate(names):
            attribute[of & (place == number)] = name
    conditional = rows.has_opcode("conditional")[owner]
    attribute[conditional] = "branch_computations"
    by_predicate = conditional & (count == 2) & _is_predicate(rows)[owner]
    for number, name in enumerate(_BRANCHES):
        attribute[by_predicate & (place == number)] = name
    # Only the start of an asynchronous call prints what the whole of it runs.
    shown = ~rows.has_opcode("async-update", "async-done")[owner]
    return pa.table(
        {
            "instruction": rows.names.take(pa.array(owner)),
            "attribute": pa.array(attribute, pa.large_string()),
            "computation": rows.computations.take(pa.array(called)),
        }
    ).filter(pa.array(shown))


def _is_predicate(rows: ProtoInstructions) -> Mask:
    """Whose first operand is a truth value."""
    owner, operand = rows.operands
    first = place_within(owner) == 0
    is_predicate = np.array([s.without_layout == "pred[]" for s in rows.shapes] or [False], bool)
    found = np.zeros(len(rows), bool)
    found[owner[first]] = is_predicate[rows.shape[operand[first]]]
    return found
