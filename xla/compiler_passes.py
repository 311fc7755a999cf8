"""Origins of buffers in the compiler's passes, from the texts that XLA dumps between them.

XLA dumps a text after each pass that changed the program. A buffer of the final peak is traced
back from text to text: its instruction mostly keeps its name, and where it does not, the removed
instruction that it replaced is searched by opcode, shape and operands. `passes.py` is about
the forward and backward passes of training.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from .pass_programs import PassProgram, counted_changes, digest, estimated_peak
from .program import NONE

# Changes that a pass can make to the instruction of a buffer.
EVENTS = (
    "program",
    "appeared",
    "fused",
    "copied",
    "rematerialised",
    "asynchronous",
    "layout",
    "type",
    "replaced",
)
# An instruction under another name, as in a copy of a loop's body: it is not reported.
_RENAMED = "renamed"
# The largest buffers of the peak are traced back, if they have this share of it.
MAX_BUFFERS = 64
MIN_SHARE = 1e-3

_SAME_ELEMENTS = frozenset({"bitcast", "reshape", "copy", "convert", "transpose"})
_MAX_STEPS = 16
_REMAT = re.compile(r"\.remat\d*")
_NUMBERS = re.compile(r"(?:\.\d+|\.clone)+$")
_ASYNC = re.compile(r"-(start|done|update)$")
_MEMORY_SPACE = re.compile(r"S\(\d+\)")
_DIMENSIONS = re.compile(r"\w\[([^\]]*)\]")
_TYPE = re.compile(r"(\w+)\[")


@dataclass(frozen=True)
class PassText:
    """A text between two passes.

    Attributes:
        step: XLA's number of the text.
        pipeline, compiler_pass: the pass before the text; None for the final text.
        read: returns the program, None if the text cannot be read, and its size in bytes.
    """

    step: int
    pipeline: str | None
    compiler_pass: str | None
    read: Callable[[], tuple[PassProgram | None, int]] = field(compare=False)


class PassRow(NamedTuple):
    """A text between two passes: a row of `compiler_passes`.

    Attributes:
        changes: the opcodes whose counts changed since the text before.
    """

    step: int
    pipeline: str | None
    compiler_pass: str | None
    instructions: int
    estimated_peak_bytes: int
    digest: int
    text_bytes: int
    changes: str | None = None


class Event(NamedTuple):
    """A change that a pass made to the instruction of a buffer.

    Attributes:
        event: one of EVENTS.
        instruction, before: its name after and before the pass; `before` is None if it is new.
        is_certain: whether no other removed instruction is as similar.
    """

    event: str
    instruction: str
    before: str | None
    is_certain: bool


@dataclass
class _Buffer:
    """A buffer that is traced back; its instruction's name is None where the trace ends."""

    name: str | None
    events: list[tuple[int, Event]] = field(default_factory=list)


def trace_back(
    texts: Iterable[PassText], buffers: Sequence[str]
) -> tuple[list[PassRow], list[list[tuple[int, Event]]], list[PassText]]:
    """The passes, the events of each buffer with their steps, and the texts that cannot be read.

    All in the order of the passes. Each text is read once, from the last to the first, and two
    programs are in memory at a time.

    Args:
        buffers: the final instruction of each buffer.
    """
    traced = [_Buffer(name) for name in buffers]
    rows: list[PassRow] = []
    counts: list[Counter[str]] = []
    unread: list[PassText] = []
    after: PassProgram | None = None
    for text in sorted(texts, key=lambda text: -text.step):
        program, size = text.read()
        if program is None:
            unread.append(text)
            continue
        if after is None:
            # The last text lacks the instructions that were created after it.
            for buffer in traced:
                buffer.name = buffer.name if buffer.name in program.row_of else None
        else:
            removed = _Removed(program, after)
            for buffer in traced:
                _step_back(buffer, rows[-1].step, after, program, removed)
        origin = text.step, text.pipeline, text.compiler_pass
        rows.append(PassRow(*origin, len(program), estimated_peak(program), digest(program), size))
        counts.append(Counter(program.opcode))
        after = program
    for buffer in traced:
        if buffer.name is not None and rows:
            buffer.events.append((rows[-1].step, Event("program", buffer.name, None, True)))
    # The rows are in descending order of steps.
    for index, (after_pass, before_pass) in enumerate(pairwise(counts)):
        rows[index] = rows[index]._replace(changes=counted_changes(before_pass, after_pass))
    return rows[::-1], [buffer.events[::-1] for buffer in traced], unread[::-1]


def _step_back(
    buffer: _Buffer, step: int, after: PassProgram, before: PassProgram, removed: "_Removed"
) -> None:
    """Trace a buffer back over one pass: several events for a copy of a new instruction."""
    for _ in range(_MAX_STEPS):
        if buffer.name is None:
            return
        event = _event_of(after, after.row_of[buffer.name], before, removed)
        if event is None:
            return
        buffer.name = event.before
        if event.event != _RENAMED:
            buffer.events.append((step, event))
        if event.event != "copied" or event.before is None or event.before in before.row_of:
            return
    buffer.name = None


class _Removed:
    """The instructions that a pass removed, to find the origins of new ones among them."""

    def __init__(self, before: PassProgram, after: PassProgram) -> None:
        self._before, self._after = before, after

    @cached_property
    def _rows(self) -> dict[tuple[str | None, tuple[str, ...]], list[int]]:
        """The removed instructions by op_name and dimensions, and all by None and dimensions."""
        rows: dict[tuple[str | None, tuple[str, ...]], list[int]] = {}
        for row, name in enumerate(self._before.names):
            if name not in self._after.row_of:
                dimensions = _dimensions(self._before.shape[row])
                op_name = self._before.metadata[row].op_name
                for key in {op_name, None}:
                    rows.setdefault((key, dimensions), []).append(row)
        return rows

    def most_similar(self, row: int, opcode: str | None = None) -> tuple[int, bool]:
        """The removed instruction most similar to a row of `after`, and whether it is certain.

        Similar instructions have the dimensions of the row, and its op_name if any has that. The
        result is NONE without such an instruction.

        Args:
            opcode: that the removed instruction must have.
        """
        before, after = self._before, self._after
        dimensions, op_name = _dimensions(after.shape[row]), after.metadata[row].op_name
        same_origin = self._rows.get((op_name, dimensions), []) if op_name is not None else []
        candidates = same_origin or self._rows.get((None, dimensions), [])
        if opcode is not None:
            candidates = [c for c in candidates if before.opcode[c] == opcode]
        if not candidates:
            return NONE, False
        stem = _NUMBERS.sub("", after.names[row])
        operands = {after.names[operand] for operand in after.read_operands(row)}

        def similarity(candidate: int) -> tuple[bool, int, bool]:
            names = {before.names[operand] for operand in before.read_operands(candidate)}
            return (
                before.opcode[candidate] == after.opcode[row],
                len(operands & names),
                _NUMBERS.sub("", before.names[candidate]) == stem,
            )

        similarities = [similarity(candidate) for candidate in candidates]
        best = max(similarities)
        is_certain = bool(same_origin) and similarities.count(best) == 1
        return candidates[similarities.index(best)], is_certain


def _event_of(after: PassProgram, row: int, before: PassProgram, removed: _Removed) -> Event | None:
    """The change that the pass between two texts made to a row of `after`; None if none."""
    name, opcode, shape = after.names[row], after.opcode[row], after.shape[row]
    row_before = before.row_of.get(name)
    if row_before is not None:
        event = shape_event(before.shape[row_before], shape)
        if before.opcode[row_before] != opcode:
            event = "replaced"
        # Before layouts are assigned there are none to change.
        return None if event is None else Event(event, name, name, True)
    if _REMAT.search(name):
        origin = _REMAT.split(name)[0]
        known_origin = origin if origin in before.row_of else None
        return Event("rematerialised", name, known_origin, True)
    if opcode == "fusion":
        return _fusion_event(after, row, before, removed)
    base = _ASYNC.sub("", opcode)
    if base != opcode:
        origin_opcode = _wrapped_opcode(after, row) if base == "async" else base
        origin, is_certain = removed.most_similar(row, origin_opcode)
        if origin == NONE and base == "copy":
            return Event("copied", name, _first_operand(after, row), True)
        return Event("asynchronous", name, _name(before, origin), is_certain or origin == NONE)
    if opcode == "copy":
        origin, is_certain = removed.most_similar(row, "copy")
        if not is_certain:
            return Event("copied", name, _first_operand(after, row), True)
        return Event(_RENAMED, name, before.names[origin], True)
    origin, is_certain = removed.most_similar(row)
    if origin == NONE:
        return Event("appeared", name, None, True)
    event = shape_event(before.shape[origin], shape)
    if before.opcode[origin] == opcode:
        event = event or _RENAMED
    elif event != "type" or opcode != "convert":
        event = "replaced"
    return Event(event, name, before.names[origin], is_certain)


def _fusion_event(after: PassProgram, row: int, before: PassProgram, removed: _Removed) -> Event:
    """The event of a new fusion: its origin is the instruction that computes its result."""
    name = after.names[row]
    origin, is_certain = removed.most_similar(row, "fusion")
    if is_certain and before.shape[origin] == after.shape[row]:
        return Event(_RENAMED, name, before.names[origin], True)
    root = _fused_root(after, row)
    origin, is_certain = NONE, False
    if root != NONE:
        origin, is_certain = removed.most_similar(root, after.opcode[root])
    if origin == NONE:
        origin, is_certain = removed.most_similar(row)
    return Event("fused", name, _name(before, origin), is_certain or origin == NONE)


def _fused_root(program: PassProgram, row: int) -> int:
    """The fused instruction that computes the result, before reshapes of it; NONE if unknown."""
    callee = program.first_callee(row)
    if callee == NONE:
        return NONE
    root = program.root_or_last(callee)
    for _ in range(_MAX_STEPS):
        operands = program.read_operands(root)
        if program.opcode[root] not in _SAME_ELEMENTS or not operands:
            break
        root = operands[0]
    return root


def _first_operand(program: PassProgram, row: int) -> str | None:
    """The name of an instruction's first operand."""
    operands = program.read_operands(row)
    return program.names[operands[0]] if operands else None


def _name(program: PassProgram, row: int) -> str | None:
    """The name of an instruction; None for NONE."""
    return None if row == NONE else program.names[row]


def _wrapped_opcode(program: PassProgram, row: int) -> str | None:
    """The opcode that an async-start, -update or -done runs; None if it names no computation."""
    callee = program.first_callee(row)
    return None if callee == NONE else program.opcode[program.root_or_last(callee)]


@lru_cache(maxsize=1 << 14)
def shape_event(before: str, after: str) -> str | None:
    """The change of a shape; None if it is the same but for memory spaces.

    >>> shape_event("f32[8,4]{1,0}", "f32[8,4]{0,1}")
    'layout'
    >>> shape_event("f32[8,4]{1,0}", "bf16[8,4]{1,0}")
    'type'
    """
    if before == after:
        return None
    if _TYPE.findall(before) != _TYPE.findall(after):
        return "type"
    if _dimensions(before) != _dimensions(after):
        return "replaced"
    return "layout" if _without_spaces(before) != _without_spaces(after) else None


@lru_cache(maxsize=1 << 14)
def _dimensions(shape: str) -> tuple[str, ...]:
    """The dimensions of a shape's arrays, without their types and layouts."""
    return tuple(_DIMENSIONS.findall(shape))


def _without_spaces(shape: str) -> str:
    """A shape without memory spaces."""
    return _MEMORY_SPACE.sub("", shape).replace(":}", "}")
