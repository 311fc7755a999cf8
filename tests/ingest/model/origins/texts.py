"""Small programs with op_names for the tests of origins."""

import re

import pyarrow as pa

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import Lines, split_lines
from memhouse.xla.columns.program import NumberedProgram, number_program
from memhouse.xla.op_names import OpNames, callers, name_rows, scopes
from memhouse.xla.passes import PASSES, Passes, passes

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


def read(text: str | Lines) -> tuple[NumberedProgram, pa.Table, OpNames]:
    hlo = read_hlo_text(split_lines(text.encode()) if isinstance(text, str) else text)
    program = number_program(hlo)
    return program, hlo.instructions, name_rows(program, hlo.instructions["op_name"])


def passes_of(text: str | Lines) -> Passes:
    program, instructions, names = read(text)
    sources = instructions["source_file"], instructions["source_line"]
    return passes(program, names, callers(program), *sources)


def pass_by_name(text: str) -> dict[str, str]:
    program, _, _ = read(text)
    codes = passes_of(text).codes.tolist()
    return {name: PASSES[code] for name, code in zip(program.names.to_pylist(), codes, strict=True)}


def scope_by_name(text: str) -> dict[str, tuple[str, str] | None]:
    """Each instruction's scope and operation, None for those without."""
    program, _, names = read(text)
    numbers, table, _ = scopes(program, names, callers(program))
    pairs = list(zip(table["scope"].to_pylist(), table["operation"].to_pylist(), strict=True))
    return {
        name: pairs[number] if number >= 0 else None
        for name, number in zip(program.names.to_pylist(), numbers.tolist(), strict=True)
    }
