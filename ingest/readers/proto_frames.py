"""Reader of a StackFrameIndexProto: the Python frames that instructions come from."""

import numpy as np
import pyarrow as pa

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID
from .lines import Positions, slices
from .wire import Found, read_messages
from .wire_bytes import Wire, checked_texts

# Fields of StackFrameIndexProto, FileLocation and StackFrame.
_FILES, _FUNCTIONS, _LOCATIONS, _FRAMES = 1, 2, 3, 4
_FILE, _FUNCTION, _LINE, _COLUMN, _END_LINE, _END_COLUMN = 1, 2, 3, 4, 5, 6
_LOCATION, _PARENT = 1, 2


def read_proto_frames(wire: Wire, start: int, end: int) -> pa.Table:
    """The frames as in the warehouse's table, in order of their ids; of an empty message none.

    Raises DumpError.
    """
    index = read_messages(
        wire,
        np.array([start]),
        np.array([end]),
        contents=(_FILES, _FUNCTIONS, _LOCATIONS, _FRAMES),
    )
    files, functions = _texts(wire, index.each(_FILES)), _texts(wire, index.each(_FUNCTIONS))
    at = index.each(_LOCATIONS)
    columns = (_FILE, _FUNCTION, _LINE, _COLUMN, _END_LINE, _END_COLUMN)
    found = read_messages(wire, at.first, at.end, numbers=columns)
    locations = {number: _checked(found.numbers(number), at.first) for number in columns}
    at = index.each(_FRAMES)
    read = read_messages(wire, at.first, at.end, numbers=(_LOCATION, _PARENT))
    location, parent = (_checked(read.numbers(n), at.first) for n in (_LOCATION, _PARENT))
    # Numbers count from 1, and 0 stands for none.
    wrong = (location == 0) | (location > len(locations[_FILE]))
    if wrong.any():
        byte = at.first[np.argmax(wrong)]
        raise DumpError(f"the stack frame at byte {byte} has no file location")
    of = {number: column[location - 1] for number, column in locations.items()}
    return pa.table(
        {
            "stack_frame_id": pa.array(np.arange(1, len(at) + 1), pa.int32()),
            "parent_frame_id": _or_null(parent),
            "file": _named(files, of[_FILE]),
            "function": _named(functions, of[_FUNCTION]),
            "line": pa.array(of[_LINE], pa.int32()),
            "end_line": _or_null(of[_END_LINE]),
            "column_start": _or_null(of[_COLUMN]),
            "column_end": _or_null(of[_END_COLUMN]),
        }
    )


def _texts(wire: Wire, found: Found) -> pa.LargeStringArray:
    texts = slices(wire.content, found.first, found.end)
    return checked_texts(texts, found.first, "a stack frame's name")


def _checked(numbers: Positions, starts: Positions) -> Positions:
    wrong = (numbers < 0) | (numbers > LARGEST_ID)
    if wrong.any():
        byte = starts[np.argmax(wrong)]
        raise DumpError(f"the stack frame at byte {byte} has a number over {LARGEST_ID}")
    return numbers


def _or_null(numbers: Positions) -> pa.Array:
    return pa.array(numbers, pa.int32(), mask=numbers == 0)


def _named(names: pa.LargeStringArray, numbers: Positions) -> pa.Array:
    known = (numbers > 0) & (numbers <= len(names))
    return names.take(pa.array(np.where(known, numbers - 1, 0), mask=~known))
