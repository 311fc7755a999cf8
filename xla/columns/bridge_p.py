"""A plain program as the columns of the old rules, until all rules are plain."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...schema.arrow import module_rows, module_schema
from ..program import NONE, Metadata, Program
from .parts import HloAttributes, HloText, NotUnderstood, Unread

_TEXT, _ID, _SIZE, _FLAG = pa.large_string(), pa.int32(), pa.int64(), pa.bool_()
_CALL_ORDER = (
    *("calls", "to_apply", "condition", "body", "select", "scatter"),
    *("true_computation", "false_computation", "branch_computations", "called_computations"),
)
_FRAMES = {
    **dict.fromkeys(("stack_frame_id", "parent_frame_id"), _ID),
    **dict.fromkeys(("file", "function"), _TEXT),
    **dict.fromkeys(("line", "end_line", "column_start", "column_end"), _ID),
}


def hlo_tables(program: Program) -> HloText:
    """The columns of a program."""
    rows = list(enumerate(program.operands))
    names = program.names
    calls = sorted(
        (
            (attribute, row, number, callee)
            for row, pairs in program.calls.items()
            for number, (attribute, callee) in enumerate(pairs)
        ),
        key=lambda call: (_CALL_ORDER.index(call[0]), *call[1:3]),
    )
    control = sorted(program.control_predecessors.items())
    return HloText(
        header=program.header._asdict(),
        computations=pa.table(
            {
                "computation": _texts(program.computation_names),
                "is_entry": np.arange(len(program.computation_names)) == program.entry,
            }
        ),
        instructions=_instructions(program),
        operands=pa.table(
            {
                "instruction": _texts([names[row] for row, each in rows for _ in each]),
                "operand_number": pa.array(
                    [number for _, each in rows for number in range(len(each))], _ID
                ),
                "operand": _texts([names[operand] for _, each in rows for operand in each]),
            }
        ),
        calls=pa.table(
            {
                "instruction": _texts([names[row] for _, row, _, _ in calls]),
                "attribute": _texts([attribute for attribute, *_ in calls]),
                "computation": _texts([program.computation_names[each] for *_, each in calls]),
            }
        ),
        stack_frames=pa.Table.from_pylist(
            [frame._asdict() for frame in program.frames.values()], pa.schema(_FRAMES.items())
        ),
        entry_shapes=None
        if program.entry_shapes is None
        else module_rows("entry_shapes", [shape._asdict() for shape in program.entry_shapes]),
        attributes=lambda: _attributes(program),
        kernels=kernel_table(program),
        control=pa.table(
            {
                "instruction": _texts([names[row] for row, each in control for _ in each]),
                "predecessor": _texts([names[row] for _, each in control for row in each]),
            }
        ),
        not_understood=tuple(NotUnderstood(*each) for each in program.not_understood),
        unread=tuple(Unread(*each) for each in program.unread),
    )


def kernel_table(program: Program) -> pa.Table:
    """The arrays that kernels keep on chip, as in `HloText.kernels`."""
    types = {"instruction": _TEXT, "operand": _ID}
    types |= {field.name: field.type for field in module_schema("kernel_parts")}
    names = ("instruction", "part", "kind", "space", "shape", "buffers", "operand")
    rows = [part._asdict() | {"instruction": program.names[part.row]} for part in program.kernels]
    return pa.Table.from_pylist(rows, pa.schema([(name, types[name]) for name in names]))


def _instructions(program: Program) -> pa.Table:
    count = range(len(program))
    metadata = dict(zip(Metadata._fields, zip(*program.metadata, strict=True), strict=True))
    scoped = [program.scoped.get(row, (None, None, None)) for row in count]
    is_root = [program.root[c] == row for row, c in enumerate(program.computation)]
    computations = [program.computation_names[c] for c in program.computation]
    return pa.table(
        {
            "instruction": _texts(program.names),
            "opcode": _texts(program.opcode),
            "shape": _texts(program.shape),
            "op_name": _texts(metadata["op_name"]),
            "source_file": _texts(metadata["source_file"]),
            "source_line": pa.array(metadata["source_line"], _ID),
            "stack_frame_id": pa.array(metadata["stack_frame_id"], _ID),
            "custom_call_target": _texts([program.custom_call_target.get(r) for r in count]),
            "scoped_bytes": pa.array([each[0] for each in scoped], _SIZE),
            "scoped_space": pa.array([each[1] for each in scoped], _ID),
            "used_scoped_bytes": pa.array([each[2] for each in scoped], _SIZE),
            "computation": _texts(computations),
            "is_root": pa.array(is_root, _FLAG),
            "parameter_number": _numbers(program.parameter_number),
            "tuple_index": _numbers(program.tuple_index),
            "fusion_kind": _texts([program.fusion_kind.get(r) for r in count]).dictionary_encode(),
            "attributes": _texts([program.attributes.get(r) for r in count]).dictionary_encode(),
        }
    )


def _attributes(program: Program) -> HloAttributes:
    lists = sorted(program.aliasing_lists.items())
    counts, integers = sorted(program.trip_counts.items()), sorted(program.integers.items())
    has_loop = "while" in program.opcode
    facts = [
        *({"row": row, "trip_count": count} for row, count in counts),
        *({"row": row, "integer": number} for row, number in integers if has_loop),
        *({"row": row, "is_less_than": True} for row in sorted(program.less_than)),
    ]
    types = {"row": pa.int64(), "trip_count": pa.int64(), "integer": pa.int64()}
    return HloAttributes(
        pa.array(program.lines, pa.int64()),
        pa.table(
            {
                "row": np.array([row for row, _ in lists], np.int64),
                "lists": _texts([text for _, text in lists]).dictionary_encode(),
            }
        ),
        pa.Table.from_pylist(facts, pa.schema({**types, "is_less_than": _FLAG}.items())),
        program.is_gpu,
        program.has_dma_priority,
    )


def _texts(texts: Sequence[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, _TEXT)


def _numbers(numbers: Sequence[int]) -> pa.Int32Array:
    column = np.array(numbers, np.int64)
    return pa.array(column.astype(np.int32), mask=column == NONE)
