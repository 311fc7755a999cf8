"""The tables of Python stack frames in HLO text, and the source lines that instructions get."""

import re
from collections.abc import Sequence
from typing import Final

from ...xla.errors import DumpError
from ...xla.program import Metadata, Program, StackFrame
from .lines import at_line, read_integer
from .newer_text import NewerNames

FRAME_TABLES: Final = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

_NEWER: Final = r"((?: [a-z_]+=[^ {}]+)*)"
_NAME: Final = re.compile(r'([0-9]+) "(.*)"')
_LOCATION: Final = re.compile(
    r"([0-9]+) \{file_name_id=([0-9]+) function_name_id=([0-9]+) line=([0-9]+)"
    r"(?: end_line=([0-9]+))?(?: column=([0-9]+))?(?: end_column=([0-9]+))?" + _NEWER + r"\}"
)
_FRAME: Final = re.compile(
    r"([0-9]+) \{file_location_id=([0-9]+)(?: parent_frame_id=([0-9]+))?" + _NEWER + r"\}"
)

# A line of the text with its number, from 1.
NumberedLine = tuple[int, str]


class StackFrameReader:
    """Reads the four tables of one text.

    Attributes:
        frames: by id, in the order of the text.
        newer: attributes of frames that are not known.
    """

    def __init__(self) -> None:
        self.frames: dict[int, StackFrame] = {}
        self.newer = NewerNames()

    def read(self, lines: Sequence[NumberedLine]) -> None:
        """Read the headings, each followed by its rows; nothing for a text without frames.

        Raises DumpError if a table is missing or repeated, or a row cannot be read.
        """
        if not lines:
            return
        tables = _split_tables(lines)
        files = _read_names(tables["FileNames"])
        functions = _read_names(tables["FunctionNames"])
        locations: dict[int | None, list[int | None]] = {}
        for number, line in tables["FileLocations"]:
            location_id, *location = self._read_row(_LOCATION, "a file location", number, line)
            locations.setdefault(location_id, location)
        for number, line in tables["StackFrames"]:
            frame_id, location_id, parent = self._read_row(_FRAME, "a stack frame", number, line)
            if location_id not in locations:
                raise at_line(DumpError("no such file location"), line, number)
            file, function, *extent = locations[location_id]
            frame = StackFrame(
                frame_id or 0, parent or None, files.get(file), functions.get(function), *extent
            )
            self.frames.setdefault(frame.stack_frame_id, frame)
        self._lower_parents()

    def _read_row(
        self, pattern: re.Pattern[str], noun: str, number: int, line: str
    ) -> list[int | None]:
        """The numbers in a row; None for one that the row leaves out."""
        match = pattern.fullmatch(line)
        if match is None:
            raise at_line(DumpError(f"expected {noun}"), line, number)
        *digits, newer = match.groups()
        for attribute in newer.split():
            self.newer.add("attribute of a stack frame", attribute.partition("=")[0], number)
        return [None if text is None else _read_id(text, number, line) for text in digits]

    def _lower_parents(self) -> None:
        """Correct the parents of a text that prints them one too high.

        There 1 stands for no parent, so that frame 1 seems to be its own parent
        (libtpu for `tpu/llama-v5e`). Other versions print 0 for no parent.
        """
        first = self.frames.get(1)
        if first is not None and first.parent_frame_id == 1:
            for frame_id, frame in self.frames.items():
                parent = (frame.parent_frame_id or 1) - 1
                self.frames[frame_id] = frame._replace(parent_frame_id=parent or None)


def fill_sources(program: Program) -> None:
    """Fill a missing file or line of the metadata from the innermost frame, per instruction."""
    filled: dict[Metadata, Metadata] = {}
    for row, metadata in enumerate(program.metadata):
        frame = program.frames.get(metadata.stack_frame_id or 0)
        if frame is None:
            continue
        if metadata not in filled:
            filled[metadata] = metadata._replace(
                source_file=frame.file if metadata.source_file is None else metadata.source_file,
                source_line=frame.line if metadata.source_line is None else metadata.source_line,
            )
        program.metadata[row] = filled[metadata]


def _split_tables(lines: Sequence[NumberedLine]) -> dict[str, list[NumberedLine]]:
    """The rows of each table. Raises DumpError if one is missing or repeated."""
    headings = [line for _, line in lines if line in FRAME_TABLES]
    for table in FRAME_TABLES:
        if headings.count(table) != 1:
            problem = f"the stack frame table {table} is missing or repeated"
            raise DumpError(problem, lines[0][0])
    tables: dict[str, list[NumberedLine]] = {}
    rows: list[NumberedLine] = []
    for number, line in lines:
        if line in FRAME_TABLES:
            rows = tables[line] = []
        else:
            rows.append((number, line))
    return tables


def _read_names(rows: Sequence[NumberedLine]) -> dict[int | None, str]:
    """The names in `1 "train.py"`, by number."""
    names: dict[int | None, str] = {}
    for number, line in rows:
        match = _NAME.fullmatch(line)
        if match is None:
            raise at_line(DumpError("expected a number and a quoted name"), line, number)
        names.setdefault(_read_id(match[1], number, line), match[2])
    return names


def _read_id(digits: str, number: int, line: str) -> int:
    try:
        return read_integer(digits)
    except DumpError as error:
        raise at_line(error, line, number) from None
