"""The tables of Python stack frames in HLO text, and the source lines that instructions get."""

import re
from collections.abc import Sequence
from typing import Final

from ...xla.errors import DumpError
from ...xla.program import Metadata, NotUnderstood, Program, StackFrame
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


def read_stack_frames(
    lines: Sequence[NumberedLine],
) -> tuple[dict[int, StackFrame], list[NotUnderstood]]:
    """The frames by id in the headings and rows of a text, and their attributes that are not known.

    Raises DumpError if a table is missing or repeated, or a row cannot be read.
    """
    frames: dict[int, StackFrame] = {}
    newer = NewerNames()
    if not lines:
        return frames, []
    tables = _split_tables(lines)
    files = _read_names(tables["FileNames"])
    functions = _read_names(tables["FunctionNames"])
    locations: dict[int | None, list[int | None]] = {}
    for number, line in tables["FileLocations"]:
        location_id, *location = _read_row(_LOCATION, "a file location", number, line, newer)
        locations.setdefault(location_id, location)
    for number, line in tables["StackFrames"]:
        frame_id, location_id, parent = _read_row(_FRAME, "a stack frame", number, line, newer)
        if location_id not in locations:
            raise at_line(DumpError("no such file location"), line, number)
        file, function, *extent = locations[location_id]
        frame = StackFrame(
            frame_id or 0, parent or None, files.get(file), functions.get(function), *extent
        )
        frames.setdefault(frame.stack_frame_id, frame)
    # Some versions print the parents one too high: 1 stands for no parent, so that frame 1 seems to
    # be its own parent (libtpu for `tpu/llama-v5e`). Other versions print 0 for no parent.
    if 1 in frames and frames[1].parent_frame_id == 1:
        for id_, frame in frames.items():
            frames[id_] = frame._replace(parent_frame_id=(frame.parent_frame_id or 1) - 1 or None)
    return frames, newer.not_understood()


def _read_row(
    pattern: re.Pattern[str], noun: str, number: int, line: str, newer: NewerNames
) -> list[int | None]:
    """The numbers in a row; None for one that the row leaves out."""
    match = pattern.fullmatch(line)
    if match is None:
        raise at_line(DumpError(f"expected {noun}"), line, number)
    *digits, unknown = match.groups()
    for attribute in unknown.split():
        newer.add("attribute of a stack frame", attribute.partition("=")[0], number)
    return [None if text is None else _read_id(text, number, line) for text in digits]


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
