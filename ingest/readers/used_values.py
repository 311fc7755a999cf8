"""Reader of `Total bytes used` and `Used values:`: the positions and uses of values."""

import re
from collections.abc import Iterator

from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.parts import AssignedValue, Position, Use, UsedValues
from ...xla.program import NotUnderstood
from .buffer_assignment import VALUE_NAME
from .lines import Lines, at_line, read_integer
from .multiline_instructions import end_of_instruction
from .newer_text import NewerNames, newer_lines, newer_sections

_TOTAL = re.compile(r"Total bytes used: ([0-9]+)")
_HEADING = "Used values:"
_VALUE = re.compile(VALUE_NAME)
_POSITION = re.compile(r"  ([^ ,]+)(?: (\{[0-9,]*\}))?")
_USE = re.compile(r"  ([^ ,]+), operand ([0-9]+)(?: (\{[0-9,]*\}))?")
_DEFINITION = " from instruction:"
# A list of a value other than its positions and uses.
_NEWER_LIST = re.compile(r" [a-z][a-z ]*:")
# By part of a value, the part that follows it; the next value follows the definition.
_NEXT_PART = {
    "definition": "name",
    "name": "positions",
    "positions": "uses",
    "uses": "definition",
}


def read_used_values(lines: Lines) -> UsedValues:
    """Read the section of a dump that starts with `Total bytes used`. Raises DumpError.

    The definitions, which are most of the text and repeat the HLO text, are skipped.
    """
    return _Reader(lines).read()


def read_definition_lines(lines: Lines) -> list[tuple[int, str]]:
    """The HLO text of each defining instruction on one line, with its line number in the file.

    Each element of a tuple repeats the definition of the tuple: the first one counts. Raises
    DumpError as `read_used_values`.
    """
    reader = _Reader(lines)
    reader.read()
    definitions: dict[str, tuple[int, str]] = {}
    for value, (start, stop) in zip(reader.values, reader.definitions, strict=True):
        if value.instruction not in definitions:
            definition, _ = _split_definition(" ".join(lines.text[start:stop]))
            definitions[value.instruction] = lines.first_number + start, definition
    return list(definitions.values())


class _Reader:
    """Reads the section line by line; `index` is the current line.

    Attributes:
        text: the lines, and an empty one at the end.
        part: the part of a value that was last begun.
        definitions: by value, the index of the first line of its definition and after the last.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.text = [*lines.text, ""]
        self.index = 0
        self.part = "definition"
        self.values: list[AssignedValue] = []
        self.positions: list[Position] = []
        self.uses: list[Use] = []
        self.definitions: list[tuple[int, int]] = []
        self.newer = NewerNames()
        self.not_understood: list[NotUnderstood] = []

    def read(self) -> UsedValues:
        """Read all lines. Raises DumpError."""
        total_bytes = self._read_heading()
        try:
            while self.index < len(self.text):
                self._read_line(self.text[self.index])
                self.index += 1
        except DumpError as problem:
            raise self._at_line(problem) from None
        if self.part != "definition":
            raise DumpError(
                "the file ends within a value: it is cut short, dump the program again",
                self.lines.last_number,
            )
        return UsedValues(
            total_bytes,
            self.values,
            self.positions,
            self.uses,
            not_understood=[*self.newer.not_understood(), *self.not_understood],
        )

    def _at_line(self, problem: DumpError) -> DumpError:
        return at_line(problem, self.text[self.index], self.lines.first_number + self.index)

    def _read_heading(self) -> int:
        """Read the lines through `Used values:`. Returns the total bytes used."""
        match = _TOTAL.match(self.text[0])
        if match is None:
            raise self._at_line(DumpError("expected 'Total bytes used: N'"))
        try:
            total_bytes = read_integer(match[1], LARGEST_SIZE)
        except DumpError as problem:
            raise self._at_line(problem) from None
        if _HEADING not in self.text:
            raise DumpError(
                f"the file ends before '{_HEADING}': dump the program again",
                self.lines.last_number,
            )
        start = self.text.index(_HEADING)
        self.not_understood += newer_lines(self.lines.between(1, start))
        self.index = start + 1
        return total_bytes

    def _read_line(self, line: str) -> None:
        """Read a line that starts a part of a value, and the items below it."""
        if line.startswith("<"):
            self._read_name(line)
        elif line == " positions:":
            self._read_positions()
        elif line == " uses:":
            self._read_uses()
        elif line.startswith(_DEFINITION):
            self._read_definition(line)
        elif _NEWER_LIST.fullmatch(line):
            self.newer.add("list of a value", line.strip(), self.lines.first_number + self.index)
            while self.text[self.index + 1].startswith("  "):
                self.index += 1
        elif line and line != "  (none)":
            remaining = self.lines.between(self.index, len(self.text))
            sections = newer_sections(remaining, lambda line: line.startswith(("<", _DEFINITION)))
            if not sections:
                raise DumpError("expected a position or a use of a value")
            self.not_understood += sections
            self.index = len(self.text)

    def _begin(self, part: str) -> None:
        """Begin the next part of a value. Raises DumpError if it is another one."""
        if part != _NEXT_PART[self.part]:
            raise DumpError("a value's positions, uses and instruction are not in order")
        self.part = part

    def _read_name(self, name: str) -> None:
        self._begin("name")
        match = _VALUE.fullmatch(name)
        if match is None:
            raise DumpError("expected a value")
        value_id, instruction, shape_index, phi, space = match.groups()
        self.values.append(
            AssignedValue(
                read_integer(value_id),
                instruction,
                shape_index or "{}",
                phi is not None,
                read_integer(space),
            )
        )

    def _read_positions(self) -> None:
        self._begin("positions")
        value_id = self.values[-1].value_id
        for position_index, match in enumerate(self._items(_POSITION, "a position")):
            self.positions.append(Position(value_id, position_index, *match.groups("{}")))

    def _read_uses(self) -> None:
        self._begin("uses")
        value_id = self.values[-1].value_id
        for use_index, match in enumerate(self._items(_USE, "a use")):
            instruction, operand, shape_index = match.groups("{}")
            operand_number = read_integer(operand)
            self.uses.append(Use(value_id, use_index, instruction, operand_number, shape_index))

    def _items(self, pattern: re.Pattern[str], noun: str) -> Iterator[re.Match[str]]:
        """The items of the list below the current line. Raises DumpError."""
        while (line := self.text[self.index + 1]).startswith("  "):
            self.index += 1
            if line != "  (none)":
                match = pattern.fullmatch(line)
                if match is None:
                    raise DumpError(f"expected {noun}")
                yield match

    def _read_definition(self, line: str) -> None:
        """Pass over a definition, which XLA may print over several lines."""
        self._begin("definition")
        start = self.index
        stop = start + 1
        if not self.text[stop].startswith("<"):
            while stop < len(self.text) and not self.text[stop].startswith(("<", _DEFINITION)):
                stop += 1
            stop = end_of_instruction(self.text, start, stop)
        self.definitions.append((start, stop))
        self.index = stop - 1
        if line.endswith(">"):
            _, next_name = _split_definition(line)
            if next_name:
                self._read_name(next_name)


def _split_definition(line: str) -> tuple[str, str]:
    """The HLO text of a definition, and the name of the next value if it is on the same line.

    Seed 000 lacks the line ends after the definitions.
    """
    next_start = line.rfind("<") if line.endswith(">") else -1
    if next_start < 0 or not _VALUE.fullmatch(line, next_start):
        next_start = len(line)
    return line[len(_DEFINITION) : next_start].lstrip(), line[next_start:]
