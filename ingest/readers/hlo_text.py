"""Reader of HLO text: one pass over its lines, one instruction at a time.

HloModule jit_f, is_scheduled=true

FileNames
1 "train.py"

%inner (x: f32[8]) -> f32[8] {
  ROOT %x = f32[8]{0} parameter(0)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %a = f32[8]{0} call(%p), to_apply=%inner, metadata={op_name="jit(f)/neg"}
}
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ...xla.aliases import parse_aliases, parse_donors
from ...xla.errors import DumpError
from ...xla.program import NotUnderstood, Program, Unread
from .entry_shapes import read_entry_shapes
from .hlo_header import braced_value, header_name, read_header
from .instruction_reader import InstructionReader
from .lines import Lines, at_line, excerpt
from .multiline_instructions import end_of_instruction
from .stack_frames import FRAME_TABLES, NumberedLine, fill_sources, read_stack_frames

_INSTRUCTION: Final = re.compile(r"  (?:ROOT )?%?[^ ]+ = ")
# The heading of a table, as those of the stack frames, that a newer XLA may print.
_HEADING: Final = re.compile(r"[A-Z][A-Za-z0-9]*(?: [A-Za-z0-9 ]+)?:?")
# A text with more lines that cannot be read is not HLO text.
_MAX_ERRORS: Final = 10_000
# The second end is of a computation that other cores run, such as a TPU's sparse cores.
_COMPUTATION_ENDS: Final = ("} // ", '}, execution_thread="')


def read_hlo_text(lines: Lines) -> Program:
    """The program in an HLO text.

    Lines that cannot be read are skipped and noted in `Program.unread`. An instruction with an
    operand that is not defined before it lacks that operand and has the opcode NOT_READ.

    Raises:
        DumpError: the text has no header, no entry computation, no end, no instruction that can
            be read, or arguments that cannot be read.
    """
    reader = HloTextReader(InstructionReader(Program()))
    try:
        reader.read(lines.text)
    except DumpError:
        # Few texts have instructions of several lines: others do not pay for joining them.
        reader = HloTextReader(InstructionReader(Program()), _MAX_ERRORS)
        reader.read(join_instructions(lines.text))
    program = reader.program
    program.unread += reader.unread_lines()
    reader.read_frames()
    reader.instructions.finish()
    fill_sources(program)
    try:
        program.aliases = parse_aliases(braced_value(lines.text[0], "input_output_alias"))
        program.donors = parse_donors(braced_value(lines.text[0], "buffer_donor"))
    except DumpError as error:
        program.unread.append(Unread(1, f"the aliases of the header are not read: {error}"))
    signature = program.header.entry_signature
    if signature is not None:
        parameters = reader.instructions.entry_parameters
        program.entry_shapes = read_entry_shapes(signature, parameters)
    return program


def read_definitions(lines: Sequence[NumberedLine]) -> Program:
    """Instructions that are printed outside of a computation, such as those of used values.

    They have no operands, and are in one computation without a name. Lines that cannot be read
    are skipped and noted in `Program.unread`.
    """
    reader = _DefinitionReader(Program())
    reader.open_computation("", is_entry=False)
    errors: list[DumpError] = []
    for number, line in lines:
        try:
            reader.add(line, number)
        except DumpError as error:
            errors.append(at_line(error, line, number))
    reader.program.unread += unread_lines(errors, len(reader.program))
    return reader.program


class _DefinitionReader(InstructionReader):
    """Reads instructions without their operands, which need not be defined."""

    def operand_rows(self, names: list[str], line: int) -> tuple[int, ...]:
        """No operands."""
        return ()


def join_instructions(lines: list[str]) -> list[str]:
    """The lines, where those of an instruction are joined on its first one, and the others blank.

    A corrupt instruction, which does not close before the next one starts, stays as it is.
    """
    joined = list(lines)
    starts = [index for index, line in enumerate(lines) if _INSTRUCTION.match(line)]
    for start, stop in pairwise([*starts, len(lines)]):
        # Most often nothing follows.
        if not any(lines[start + 1 : stop]):
            continue
        end = end_of_instruction(lines, start, stop)
        ends_computation = lines[end - 1] == "}" and end < stop and "}" not in lines[end:stop]
        if not ends_computation:
            joined[start:end] = [" ".join(lines[start:end]), *[""] * (end - start - 1)]
    return joined


class HloTextReader:
    """One pass over the lines of an HLO text.

    Attributes:
        instructions: reads the instructions into `program`.
        max_errors: how many lines may be skipped because they cannot be read.
        errors: one for each skipped line, in order.
    """

    def __init__(self, instructions: InstructionReader, max_errors: int = 0) -> None:
        self.instructions = instructions
        self.program = instructions.program
        self.max_errors = max_errors
        self.errors: list[DumpError] = []
        self._is_in_computation = False
        self._is_in_newer_table = False
        self._entry_count = 0
        self._unclosed: list[Unread] = []
        self._frame_lines: list[NumberedLine] = []

    def read(self, lines: Sequence[str]) -> None:
        """Read all lines.

        Raises DumpError if the first line is not a header, if more than `max_errors` lines cannot
        be read, and if the text is truncated or has no instructions.
        """
        self.program.name = header_name(lines[0]) or ""
        self.program.header = read_header(lines[0])
        last_end = _last_computation_end(lines)
        for number, line in enumerate(lines[1:], 2):
            try:
                if line.startswith("  "):
                    if self._is_in_computation:
                        self.instructions.add(line, number)
                    elif not self._is_in_newer_table:
                        raise DumpError("expected an instruction of an open computation")
                elif line:
                    self._read_outer_line(line, number)
                elif number < last_end:
                    self._is_in_newer_table = False
            except DumpError as error:
                self.errors.append(at_line(error, line, number))
                if len(self.errors) > self.max_errors:
                    raise self.errors[0] from None
        self._check_end(len(lines))

    def _read_outer_line(self, line: str, number: int) -> None:
        """Read a line that is neither blank nor an instruction. Raises DumpError."""
        is_inside = self._is_in_computation
        if _is_computation_end(line):
            if not is_inside:
                raise DumpError("expected an instruction of an open computation")
            self._is_in_computation = False
        elif line.endswith("{") and not line.startswith("}"):
            self._open_computation(line, number)
        elif line in FRAME_TABLES and not is_inside:
            self._is_in_newer_table = False
            self._frame_lines.append((number, line))
        elif self._is_in_newer_table:
            pass
        elif "0" <= line[0] <= "9" and not is_inside:
            self._frame_lines.append((number, line))
        elif not is_inside and _HEADING.fullmatch(line):
            self._is_in_newer_table = True
            self.program.not_understood.append(NotUnderstood(number, f"section {excerpt(line)}"))
        else:
            raise DumpError("expected a computation or an instruction")

    def _open_computation(self, line: str, number: int) -> None:
        """Read `[ENTRY ][%]NAME [(PARAMETERS) -> RESULT ]{`. Raises DumpError."""
        heading = line.removeprefix("ENTRY ").removeprefix("%")
        name, _, signature = heading.partition(" ")
        has_signature = signature.startswith("(") and signature.endswith(" {")
        has_signature &= ") -> " in signature[:-2]
        if not name or name.startswith("(") or not (signature == "{" or has_signature):
            raise DumpError("expected a computation")
        if self._is_in_computation and not self._unclosed:
            note = "a computation starts before the one above it ends"
            self._unclosed.append(Unread(number, note))
        is_entry = line.startswith("ENTRY ")
        self._entry_count += is_entry
        self._is_in_computation, self._is_in_newer_table = True, False
        self.instructions.open_computation(name, is_entry=is_entry)

    def _check_end(self, last_line: int) -> None:
        problem = None
        if self._is_in_computation:
            problem = "the text ends within a computation: it is cut short, dump it again"
        elif self._entry_count != 1:
            problem = "the text has no entry computation: it is cut short, dump it again"
        if self.errors and (problem is not None or not len(self.program)):
            raise self.errors[0]
        if problem is not None:
            raise DumpError(problem, last_line)

    def unread_lines(self) -> list[Unread]:
        """Notes on the lines of computations that could not be read."""
        return [*unread_lines(self.errors, len(self.program)), *self._unclosed]

    def read_frames(self) -> None:
        """Add the stack frames to the program; none of them if one cannot be read."""
        program = self.program
        try:
            program.frames, not_understood = read_stack_frames(self._frame_lines)
        except DumpError as error:
            note = f"the stack frames are not read: {error}"
            program.unread.append(Unread(error.line or self._frame_lines[0][0], note))
            return
        program.not_understood += not_understood


def unread_lines(errors: Sequence[DumpError], instruction_count: int) -> list[Unread]:
    """A note with the number of lines that cannot be read and the first error; none without errors.

    Args:
        instruction_count: the number of instructions that were read.
    """
    if not errors:
        return []
    count = len(errors)
    total = count + instruction_count
    note = f"{count} of {total} instructions {'are' if count > 1 else 'is'} not read: {errors[0]}"
    return [Unread(errors[0].line or 1, note)]


def _last_computation_end(lines: Sequence[str]) -> int:
    """The number of the line on which the last computation ends; 0 if none ends."""
    for index in range(len(lines) - 1, 0, -1):
        if _is_computation_end(lines[index]):
            return index + 1
    return 0


def _is_computation_end(line: str) -> bool:
    return line == "}" or line.startswith(_COMPUTATION_ENDS)
