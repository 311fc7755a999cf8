"""Reader of HLO texts between two passes."""

import re
from typing import NamedTuple

from ...xla.errors import DumpError
from ...xla.pass_programs import PassProgram
from ...xla.program import NONE
from .hlo_text import HloTextReader, join_instructions
from .instruction_reader import InstructionReader
from .lines import split_lines, uncompressed_name

_NAME = re.compile(
    r"(?P<stem>(?:\d{10,20}\.)?module_\d{1,9}\..*?)\.(?P<step>\d{4,9})\.(?P<pipeline>.+?)"
    r"(?:\.after_(?P<after>.+?))?(?:\.before_(?P<before>.+))?\.txt"
)
_STEP = re.compile(r"^(?:\d{10,20}\.)?module_.*\.\d{4,9}\.")
_ELEMENT = re.compile(r"(.*)#([0-9]{1,9})")


class PassName(NamedTuple):
    """The file name of a text between two passes.

    Attributes:
        stem: the stem of the dump's files.
        step: the number of the text in the dump, in the order in which XLA ran the passes.
        compiler_pass: the pass that ran before; None if no pass of the pipeline did.
    """

    stem: str
    step: int
    pipeline: str
    compiler_pass: str | None


def pass_name(name: str) -> PassName | None:
    """The parts of a file's name; None if it is not that of a text between two passes.

    >>> pass_name("module_0000.jit_f.0011.simplification.after_algsimp.before_dce.txt")
    PassName(stem='module_0000.jit_f', step=11, pipeline='simplification', compiler_pass='algsimp')
    """
    if not _STEP.search(name):
        return None
    match = _NAME.fullmatch(uncompressed_name(name))
    if match is None or (match["after"] is None and match["before"] is None):
        return None
    return PassName(match["stem"], int(match["step"]), match["pipeline"], match["after"])


def read_pass_text(content: bytes) -> PassProgram:
    """The program of a text. Raises DumpError if any of its lines cannot be read."""
    lines = split_lines(content).text
    try:
        return _read_program(lines)
    except DumpError:
        return _read_program(join_instructions(lines))


def _read_program(lines: list[str]) -> PassProgram:
    program = PassProgram()
    reader = HloTextReader(_PassReader(program))
    reader.read(lines)
    reader.instructions.finish()
    return program


class _PassReader(InstructionReader):
    """Reads the instructions of a PassProgram, which has no rows for elements of tuples."""

    def __init__(self, program: PassProgram) -> None:
        super().__init__(program)
        self._elements = program.elements

    def operand_rows(self, names: list[str], line: int) -> tuple[int, ...]:
        """The rows of the operands; NONE for one that is not defined."""
        row_of = self.program.row_of
        rows = []
        for number, name in enumerate(names):
            row = row_of.get(name, NONE)
            if row == NONE and (match := _ELEMENT.fullmatch(name)):
                row = row_of.get(match[1], NONE)
                self._elements[len(self.program), number] = int(match[2])
            rows.append(row)
        return tuple(rows)

    def drop_undefined_operands(self, row: int) -> None:
        """Keep them."""
