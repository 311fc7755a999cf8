"""A program rebuilt from its rows in the warehouse."""

from collections.abc import Mapping, Sequence
from typing import Any

from .aliases import parse_aliases
from .errors import DumpError
from .program import NONE, Header, Metadata, Program

# By column, an entry a row.
Columns = Mapping[str, Sequence[Any]]
_ALIASING = "output_to_operand_aliasing={"


def program_from_rows(
    instructions: Columns,
    operands: Columns,
    calls: Columns,
    control_dependencies: Columns,
    entry: str,
    input_output_alias: str | None,
) -> Program:
    """The program whose rows these are, each relation in the order of its key.

    The lines of the instructions count from 1. Instructions that no text defines are left out.

    Raises DumpError if the rows make no program.
    """
    program = Program()
    program.header = Header(is_scheduled=True)
    operand_rows = _operands_by_row(operands, len(instructions["instruction"]))
    computations: dict[str, int] = {}
    for row, computation in enumerate(instructions["computation"]):
        if computation is None:
            break
        if computation not in computations:
            computations[computation] = program.add_computation(computation)
        _add_instruction(program, instructions, row, tuple(operand_rows[row]))
    program.entry = computations.get(entry, NONE)
    if program.entry == NONE:
        raise DumpError(f"computation {entry} is not in the text")
    program.check_computations()
    for row, attribute, name in zip(
        calls["instruction_id"], calls["attribute"], calls["computation"], strict=True
    ):
        if row >= len(program) or name not in computations:
            raise DumpError("a caller or its computation is not in the text")
        program.calls.setdefault(row, []).append((attribute, computations[name]))
    for row, predecessor in zip(
        control_dependencies["instruction_id"],
        control_dependencies["predecessor_instruction_id"],
        strict=True,
    ):
        program.control_predecessors.setdefault(row, []).append(predecessor)
    program.aliases = parse_aliases(input_output_alias) if input_output_alias else []
    return program


def _add_instruction(
    program: Program, instructions: Columns, row: int, operands: tuple[int, ...]
) -> None:
    """Append one row. Raises DumpError for an operand that is not defined before it."""
    if any(operand >= row for operand in operands):
        raise DumpError("an operand is not defined before its user", row + 1)
    number, index = instructions["parameter_number"][row], instructions["tuple_index"][row]
    program.add_instruction(
        instructions["instruction"][row],
        instructions["opcode"][row],
        instructions["shape"][row],
        operands,
        row + 1,
        metadata=Metadata(op_name=_cell(instructions, "op_name", row)),
        parameter_number=NONE if number is None else number,
        tuple_index=NONE if index is None else index,
    )
    if instructions["is_root"][row]:
        program.root[-1] = row
    attributes = _cell(instructions, "attributes", row)
    if attributes is not None:
        program.attributes[row] = attributes
        if _ALIASING in attributes:
            start = attributes.index(_ALIASING) + len(_ALIASING)
            # The pairs are in braces themselves: `{0}: (1, {}), {1}: (2, {})}`.
            text = _up_to_closing_brace(attributes[start:])
            program.operand_aliasing[row] = parse_aliases(text)
    for name, column in (
        ("fusion_kind", program.fusion_kind),
        ("custom_call_target", program.custom_call_target),
    ):
        value = _cell(instructions, name, row)
        if value is not None:
            column[row] = value


def _up_to_closing_brace(text: str) -> str:
    """The text before the brace that closes one which was opened before it."""
    depth = 1
    for position, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return text[:position]
    raise DumpError("the braces of an aliasing attribute do not close")


def _cell(columns: Columns, name: str, row: int) -> Any:
    return columns[name][row] if name in columns else None


def _operands_by_row(operands: Columns, count: int) -> list[list[int]]:
    """The rows of each instruction's operands, by number."""
    by_row: list[list[int]] = [[] for _ in range(count)]
    for row, operand in zip(
        operands["instruction_id"], operands["operand_instruction_id"], strict=True
    ):
        by_row[row].append(operand)
    return by_row
