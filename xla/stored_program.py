"""A program from its rows in the warehouse."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from .aliases import parse_aliases
from .errors import DumpError
from .program import NONE, Program, attribute_values

# By column, an entry a row.
Columns = Mapping[str, Sequence[Any]]

_ALIASING = "output_to_operand_aliasing"


def program_from_rows(rows: Mapping[str, Columns]) -> Program:
    """The program that a module's rows describe; its lines count the instructions from 1.

    Args:
        rows: by relation, in the order of their keys: instructions, of which those without a
            computation are not in the HLO text, computations, operands, calls,
            control_dependencies and donations. The last four may be missing.

    Raises:
        DumpError: The rows describe no program.
    """
    program = Program()
    columns = ("output_shape_index", "parameter_number", "parameter_shape_index", "paired_by")
    for output, number, index, paired_by in _select(rows, "donations", *columns):
        if output is not None and paired_by == "header":
            program.aliases += parse_aliases(f"{output}: ({number}, {index})")
    operands: dict[int, list[int]] = defaultdict(list)
    for row, operand in _select(rows, "operands", "instruction_id", "operand_instruction_id"):
        if operand >= row:
            raise DumpError("an operand is not defined before its user", row + 1)
        operands[row].append(operand)
    try:
        computations = _add_instructions(program, rows, operands)
        calls = _select(rows, "calls", "instruction_id", "attribute", "computation")
        for row, attribute, name in calls:
            program.calls.setdefault(row, []).append((attribute, computations[name]))
        for name, is_entry in _select(rows, "computations", "computation", "is_entry"):
            if is_entry:
                program.entry = computations[name]
    except KeyError as error:
        raise DumpError(f"computation {error} is not in the text") from None
    names = ("instruction_id", "predecessor_instruction_id")
    for row, predecessor in _select(rows, "control_dependencies", *names):
        program.control_predecessors.setdefault(row, []).append(predecessor)
    if max((*operands, *program.calls), default=NONE) >= len(program):
        raise DumpError("a caller is not in the text")
    return program


def _add_instructions(
    program: Program, rows: Mapping[str, Columns], operands: Mapping[int, Sequence[int]]
) -> dict[str, int]:
    """Add the instructions and their computations. Returns the computations' numbers by name."""
    computations: dict[str, int] = {}
    columns = ("instruction", "opcode", "shape", "computation", "parameter_number", "tuple_index")
    for row, (name, opcode, shape, computation, parameter_number, tuple_index) in enumerate(
        _select(rows, "instructions", *columns)
    ):
        if computation is None:
            break
        if computation not in computations:
            computations[computation] = program.add_computation(computation)
        program.add_instruction(
            name,
            opcode,
            shape,
            tuple(operands.get(row, ())),
            row + 1,
            parameter_number=NONE if parameter_number is None else parameter_number,
            tuple_index=NONE if tuple_index is None else tuple_index,
        )
        # Without a marked root, the last instruction is the root.
        program.root[-1] = row
    for row, (is_root, attributes, fusion_kind, target) in enumerate(
        _select(rows, "instructions", "is_root", "attributes", "fusion_kind", "custom_call_target")
    ):
        if is_root:
            program.root[program.computation[row]] = row
        if attributes is not None:
            program.attributes[row] = attributes
            if _ALIASING in attributes:
                aliasing = attribute_values(attributes)[_ALIASING]
                program.operand_aliasing[row] = parse_aliases(aliasing[1:-1])
        if fusion_kind is not None:
            program.fusion_kind[row] = fusion_kind
        if target is not None:
            program.custom_call_target[row] = target
    return computations


def _select(rows: Mapping[str, Columns], relation: str, *names: str) -> list[tuple[Any, ...]]:
    """The rows of a relation, with these columns; none without the relation."""
    columns = rows.get(relation)
    return [] if columns is None else list(zip(*map(columns.__getitem__, names), strict=True))
