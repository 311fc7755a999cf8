"""The rows of a module that its HLO text alone determines."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..xla.frames import UserLine, find_user_lines
from ..xla.kernels import PlacedPart, place_kernel_parts
from ..xla.program import NO_METADATA, NONE, EntryShape, Program, StackFrame
from .rows import Columns, Rows, columns_of


def definition_columns(
    program: Program, names: Sequence[str], user_code: tuple[str, ...]
) -> Columns:
    """The columns of `instructions` that a definition states, in the order of the names.

    A name that the program does not define has None. Definitions outside of a computation, those
    of Used values, state neither a computation nor what follows in it.

    Args:
        user_code: patterns of files that are the user's code, see `frames.is_library`.
    """
    rows = [program.row_of.get(name, NONE) for name in names]
    metadata = [program.metadata[row] if row != NONE else NO_METADATA for row in rows]
    scoped = [program.scoped.get(row) for row in rows]
    lines = find_user_lines(program.metadata, program.frames, user_code)
    no_line = UserLine(None, None, None, None, None)
    columns: Columns = {
        "opcode": entries_at(program.opcode, rows),
        "shape": entries_at(program.shape, rows),
        "op_name": [source.op_name for source in metadata],
        "stack_frame_id": [source.stack_frame_id for source in metadata],
        "custom_call_target": [program.custom_call_target.get(row) for row in rows],
        "scoped_bytes": [memory and memory.reserved_bytes for memory in scoped],
        "scoped_space": [memory and memory.space for memory in scoped],
        "used_scoped_bytes": [memory and memory.used_bytes for memory in scoped],
    } | columns_of(UserLine._fields, [lines[row] if row != NONE else no_line for row in rows])
    if program.entry == NONE:
        return columns
    roots = set(program.root)
    computations = [program.computation_names[number] for number in program.computation]
    return columns | {
        "computation": entries_at(computations, rows),
        "is_root": [row in roots if row != NONE else None for row in rows],
        "parameter_number": numbers_at(program.parameter_number, rows),
        "tuple_index": numbers_at(program.tuple_index, rows),
        "fusion_kind": [program.fusion_kind.get(row) for row in rows],
        "attributes": [program.attributes.get(row) for row in rows],
    }


def program_relations(program: Program) -> Rows:
    """By name, the relations that come from HLO text alone; those without rows are left out.

    Rows of the program are instruction_ids, see `module_rows.number_instructions`.
    """
    calls = []
    for row in sorted(program.calls):
        counts: Counter[str] = Counter()
        for attribute, computation in program.calls[row]:
            calls.append(
                (row, attribute, counts[attribute], program.computation_names[computation])
            )
            counts[attribute] += 1
    operands = [
        (row, number, operand)
        for row, row_operands in enumerate(program.operands)
        for number, operand in enumerate(row_operands)
    ]
    control = [
        (row, predecessor)
        for row in sorted(program.control_predecessors)
        for predecessor in program.control_predecessors[row]
    ]
    computations = [
        (name, number == program.entry) for number, name in enumerate(program.computation_names)
    ]
    relations: list[tuple[str, Sequence[str], Sequence[tuple[Any, ...]]]] = [
        ("computations", ("computation", "is_entry"), computations),
        ("calls", ("instruction_id", "attribute", "call_number", "computation"), calls),
        ("operands", ("instruction_id", "operand_number", "operand_instruction_id"), operands),
        ("control_dependencies", ("instruction_id", "predecessor_instruction_id"), control),
        ("stack_frames", StackFrame._fields, list(program.frames.values())),
        ("entry_shapes", EntryShape._fields, program.entry_shapes or ()),
        ("kernel_parts", PlacedPart._fields, place_kernel_parts(program)),
    ]
    return {relation: columns_of(names, rows) for relation, names, rows in relations if rows}


def entries_at(column: Sequence[Any], rows: Iterable[int]) -> list[Any]:
    """The entries of a column at these rows; None for NONE."""
    return [column[row] if row != NONE else None for row in rows]


def numbers_at(column: Sequence[int], rows: Iterable[int]) -> list[int | None]:
    """The numbers of a column at these rows; None for NONE, there or as the row."""
    return [None if row == NONE or column[row] == NONE else column[row] for row in rows]
