"""Which value is a module's whole result: where the entry's root points to."""

import numpy as np

from ...xla.errors import DumpError
from .lines import Positions
from .proto_instructions import PARAMETER, TUPLE_INDEX, ProtoInstructions

_Place = tuple[int, tuple[int, ...]]
_SAME = ("bitcast", "copy", "while", "domain", "optimization-barrier", "async-update")
_CALLING = ("call", "conditional")
_STARTS = ("all-gather-start", "collective-permute-start")
_DONES = ("all-gather-done", "collective-permute-done", "async-done")


def output_value(
    rows: ProtoInstructions, row: Positions, index: Positions, index_texts: list[str]
) -> int:
    """The place of the entry's result among the values, which are defined at (row, index).

    `index` are codes in `index_texts`. Raises DumpError if the root leads to no value.
    """
    codes = {text: code for code, text in enumerate(index_texts)}
    place: _Place = (int(rows.root[rows.entry]), ())
    # Each step leads to an instruction that runs before, or into or out of a computation.
    for _ in range(2 * len(rows)):
        code = codes.get("{" + ",".join(map(str, place[1])) + "}", -1)
        here = np.flatnonzero((row == place[0]) & (index == code))
        if len(here):
            return int(here[0])
        further = _forwarded(rows, *place)
        if further is None:
            break
        place = further
    root = int(rows.root[rows.entry])
    raise DumpError(
        f"the result {rows.names[root]} at byte {rows.byte_of(root)} has no value in the buffer"
        " assignment: dump the program again"
    )


def _forwarded(rows: ProtoInstructions, row: int, index: tuple[int, ...]) -> _Place | None:
    """Where the value at a place comes from; None if from nowhere that is known."""
    opcode = rows.opcodes[row].as_py()
    operands, calls = _items(rows.operands, row), _items(rows.calls, row)
    if opcode == "parameter":
        return _argument(rows, row, index)
    if opcode in _CALLING and calls:
        return int(rows.root[calls[0]]), index
    if not operands:
        return None
    if opcode == "get-tuple-element":
        number = int(rows.messages.numbers(TUPLE_INDEX)[rows.message_of[row]])
        return operands[0], (number, *index)
    if opcode in _SAME:
        return operands[0], index
    if opcode in _DONES:
        return operands[0], (1, *index)
    if opcode in ("copy-done", "recv-done"):
        return operands[0], (0, *index)
    if opcode == "tuple" and index and 0 <= index[0] < len(operands):
        return operands[index[0]], index[1:]
    if opcode == "copy-start" and index[:1] == (1,):
        return operands[0], index[1:]
    if opcode in _STARTS and index[:1] == (0,):
        return _of_operands(operands, index[1:], in_tuple=len(operands) > 1)
    if opcode == "async-start" and index[:1] == (0,):
        return _of_operands(operands, index[1:], in_tuple=True)
    if opcode == "async-start" and index[:1] == (1,) and calls:
        return int(rows.root[calls[0]]), index[1:]
    return None


def _of_operands(operands: list[int], index: tuple[int, ...], *, in_tuple: bool) -> _Place | None:
    if not in_tuple:
        return operands[0], index
    if index and 0 <= index[0] < len(operands):
        return operands[index[0]], index[1:]
    return None


def _argument(rows: ProtoInstructions, row: int, index: tuple[int, ...]) -> _Place | None:
    """What the first caller of a parameter's computation passes for it."""
    caller, called = rows.calls
    at = np.flatnonzero(called == rows.computation[row])
    if not len(at):
        return None
    call = int(caller[at[0]])
    operands = _items(rows.operands, call)
    opcode = rows.opcodes[call].as_py()
    number = int(rows.messages.numbers(PARAMETER)[rows.message_of[row]])
    if opcode == "while":
        return call, index
    if opcode == "conditional":
        number = int(at[0] - np.searchsorted(caller, call)) + 1
    return (operands[number], index) if 0 <= number < len(operands) else None


def _items(listed: tuple[Positions, Positions], row: int) -> list[int]:
    """What one row lists."""
    owner, items = listed
    start, stop = np.searchsorted(owner, [row, row + 1]).tolist()
    found: list[int] = items[start:stop].tolist()
    return found
