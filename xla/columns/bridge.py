"""Between columns and the plain objects, in both directions, until all rules are plain."""

from itertools import pairwise

from ..aliases import parse_aliases
from ..program import (
    NO_METADATA,
    Program,
)
from .program import NumberedProgram


def plain_program(numbered: NumberedProgram) -> Program:
    """The plain form of a program; the same object if asked again."""
    cache = numbered.__dict__
    if "_plain" not in cache:
        cache["_plain"] = _plain_program(numbered)
    program: Program = cache["_plain"]
    return program


def _plain_program(numbered: NumberedProgram) -> Program:
    program = Program()
    program.computation_names = list(numbered.computation_names)
    program.first, program.stop = numbered.first.tolist(), numbered.stop.tolist()
    program.root = numbered.root.tolist()
    program.entry = int(numbered.entries[0])
    program.names = numbered.names.to_pylist()
    program.row_of = {name: row for row, name in enumerate(program.names)}
    program.lines = numbered.lines.tolist()
    program.opcode = _texts(numbered.opcode)
    program.shape = _texts(numbered.shape)
    program.computation = numbered.computation.tolist()
    starts, operands = numbered.operand_start.tolist(), numbered.operands.tolist()
    program.operands = [tuple(operands[a:b]) for a, b in pairwise(starts)]
    program.parameter_number = numbered.parameter_number.tolist()
    program.tuple_index = numbered.tuple_index.tolist()
    for row, attribute, computation in zip(
        numbered.call_row.tolist(),
        _texts(numbered.call_attribute),
        numbered.call_computation.tolist(),
        strict=True,
    ):
        program.calls.setdefault(row, []).append((attribute, computation))
    program.attributes = _present(numbered.attributes)
    for row, text in _present(numbered.operand_aliasing).items():
        program.operand_aliasing[row] = parse_aliases(text)
    program.fusion_kind = _present(numbered.fusion_kind)
    program.custom_call_target = _present(numbered.custom_call_target)
    program.aliases = numbered.input_output_alias
    for row, predecessor in numbered.control.tolist():
        program.control_predecessors.setdefault(row, []).append(predecessor)
    if numbered.unread is not None:
        program.unread.append(numbered.unread)
    program.metadata = [NO_METADATA] * len(program)
    return program


def _texts(codes: object) -> list[str]:
    texts = [*codes.texts, ""]  # type: ignore[attr-defined]
    return [texts[code] for code in codes.codes.tolist()]  # type: ignore[attr-defined]


def _present(codes: object) -> dict[int, str]:
    return {row: text for row, text in enumerate(_texts(codes)) if text}


__all__ = ["plain_program"]
