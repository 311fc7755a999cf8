"""Small programs with op_names for the tests of origins."""

import re

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import Lines, split_lines
from memhouse.xla.liveness import analyse
from memhouse.xla.named_program import NamedProgram, find_callers
from memhouse.xla.names import OpName, read_op_names
from memhouse.xla.passes import find_passes
from memhouse.xla.program import Program
from memhouse.xla.scopes import find_scopes

INSTRUCTION = re.compile(r"(ROOT )?(\S+) = ([a-z-]+)\((.*?)\)(.*)")


def line(
    text: str, op_name: str | None = None, source: int | None = None, file: str = "train.py"
) -> str:
    """An instruction of f32[8]: `line("ROOT b = call(a), to_apply=%f", "jit(f)/add", 12)`."""
    root, name, opcode, operands, rest = INSTRUCTION.fullmatch(text).groups("")
    if opcode not in ("parameter", "constant"):
        operands = ", ".join(f"%{operand}" for operand in operands.split(", ") if operand)
    shape = "(f32[8]{0}, f32[8]{0})" if opcode == "tuple" else "f32[8]{0}"
    metadata = []
    if op_name is not None:
        metadata.append(f'op_name="{op_name}"')
    if source is not None:
        metadata.append(f'source_file="{file}" source_line={source}')
    tail = f", metadata={{{' '.join(metadata)}}}" if metadata else ""
    return f"  {root}%{name} = {shape} {opcode}({operands}){rest}{tail}\n"


def computation(name: str, *lines: str) -> str:
    return f"%{name} (a: f32[8]) -> f32[8] {{\n{''.join(lines)}}}\n\n"


def module(*computations: str, entry: list[str]) -> str:
    """A program of these computations and this entry."""
    head = "HloModule small, is_scheduled=true\n\n"
    return (
        f"{head}{''.join(computations)}ENTRY %main (a: f32[8]) -> f32[8] {{\n{''.join(entry)}}}\n"
    )


def read(text: str | Lines) -> tuple[Program, list[OpName]]:
    program = read_hlo_text(split_lines(text.encode()) if isinstance(text, str) else text)
    return program, read_op_names(program)


def pass_by_name(text: str) -> dict[str, str]:
    program, _ = read(text)
    passes = find_passes(NamedProgram(program, analyse(program).flow))
    return dict(zip(program.names, passes.by_row, strict=True))


def scope_by_name(text: str) -> dict[str, tuple[str, str] | None]:
    """Each instruction's scope and operation, None for those without."""
    program, op_names = read(text)
    scopes = find_scopes(program, op_names, find_callers(program))
    return {
        name: scopes.rows[scope_id][:2] if scope_id >= 0 else None
        for name, scope_id in zip(program.names, scopes.scope_id, strict=True)
    }
