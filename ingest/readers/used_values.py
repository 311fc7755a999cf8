"""Reader of `Total bytes used` and `Used values:`: the positions and uses of values."""

import re

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
# The parts of a value in their order; each starts with a line at which the reader stops.
_PARTS = ("name", "positions", "uses", "definition")


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
    definitions = {}
    for value, definition in zip(reader.values, reader.definitions, strict=True):
        definitions.setdefault(value.instruction, definition)
    return list(definitions.values())


class _Reader:
    """Reads the lines one at a time; `part` is the part of a value that the last line is in."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.index = 0
        self.part = "definition"
        self.is_newer_list = False
        self.values: list[AssignedValue] = []
        self.positions: list[Position] = []
        self.uses: list[Use] = []
        self.definitions: list[tuple[int, str]] = []
        self.newer = NewerNames()
        self.not_understood: list[NotUnderstood] = []

    def read(self) -> UsedValues:
        """Read all lines. Raises DumpError."""
        text = self.lines.text
        try:
            total_bytes = self._read_heading()
            while self.index < len(text):
                self._read_line(text[self.index])
                self.index += 1
        except DumpError as problem:
            if problem.line is not None:
                raise
            number = self.lines.first_number + self.index
            raise at_line(problem, text[self.index], number) from None
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

    def _read_heading(self) -> int:
        """Read the lines through `Used values:`. Returns the total bytes used."""
        text = self.lines.text
        match = _TOTAL.match(text[0])
        if match is None:
            raise DumpError("expected 'Total bytes used: N'")
        total_bytes = read_integer(match[1], LARGEST_SIZE)
        if _HEADING not in text:
            raise DumpError(
                f"the file ends before '{_HEADING}': dump the program again",
                self.lines.last_number,
            )
        start = text.index(_HEADING)
        self.not_understood += newer_lines(self.lines.between(1, start))
        self.index = start + 1
        return total_bytes

    def _read_line(self, line: str) -> None:
        if line.startswith("  "):
            self._read_item(line)
        elif line.startswith("<"):
            self._begin("name")
            self._read_name(line)
        elif line == " positions:":
            self._begin("positions")
        elif line == " uses:":
            self._begin("uses")
        elif line.startswith(_DEFINITION):
            self._begin("definition")
            self._read_definition(line)
        elif _NEWER_LIST.fullmatch(line):
            self.newer.add("list of a value", line.strip(), self.lines.first_number + self.index)
            self.is_newer_list = True
        elif line:
            remaining = self.lines.between(self.index, len(self.lines.text))
            sections = newer_sections(remaining, lambda line: line.startswith(("<", _DEFINITION)))
            if not sections:
                raise DumpError("expected a position or a use of a value")
            self.not_understood += sections
            self.index = len(self.lines.text)

    def _begin(self, part: str) -> None:
        """Enter the next part of a value. Raises DumpError if it is another one."""
        if part != _PARTS[(_PARTS.index(self.part) + 1) % len(_PARTS)]:
            raise DumpError("a value's positions, uses and instruction are not in order")
        self.part = part
        self.is_newer_list = False
        self.item_count = 0

    def _read_name(self, line: str) -> None:
        match = _VALUE.fullmatch(line)
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

    def _read_item(self, line: str) -> None:
        """Read a line of a list of positions or uses."""
        if line == "  (none)" or self.is_newer_list:
            return
        if self.part == "positions":
            match = _POSITION.fullmatch(line)
            if match is None:
                raise DumpError("expected a position")
            value_id = self.values[-1].value_id
            self.positions.append(Position(value_id, self.item_count, match[1], match[2] or "{}"))
        elif self.part == "uses":
            match = _USE.fullmatch(line)
            if match is None:
                raise DumpError("expected a use")
            user, operand, shape_index = match.groups()
            self.uses.append(
                Use(
                    self.values[-1].value_id,
                    self.item_count,
                    user,
                    read_integer(operand),
                    shape_index or "{}",
                )
            )
        else:
            raise DumpError("expected a position or a use of a value")
        self.item_count += 1

    def _read_definition(self, line: str) -> None:
        """Read a definition, which XLA may print over several lines."""
        text, start = self.lines.text, self.index
        number = self.lines.first_number + start
        if line.endswith(">"):
            # Seed 000 lacks the line end after the definition: the next value follows directly.
            next_value = line.rfind("<")
            if _VALUE.fullmatch(line, next_value):
                self.definitions.append((number, line[len(_DEFINITION) : next_value].lstrip()))
                self._begin("name")
                self._read_name(line[next_value:])
                return
        stop = start + 1
        while stop < len(text) and not text[stop].startswith(("<", _DEFINITION)):
            stop += 1
        if stop > start + 1:
            stop = end_of_instruction(text, start, stop)
        definition = " ".join(text[start:stop])
        self.definitions.append((number, definition[len(_DEFINITION) :].lstrip()))
        self.index = stop - 1
