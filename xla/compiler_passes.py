"""What the compiler's passes do to a program, told from its texts between them.

XLA dumps a text after each pass that changed the program. Each text gives an estimated peak and a
digest. A buffer of the final peak is followed back from text to text: the name of its instruction
mostly stays, and where it does not, the instruction that it was made of is found by operation,
shape and operands. `passes.py` is about forward and backward, which is something else.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .hashes import hash_of_digest, hash_of_texts
from .shapes import ArrayShape, Shape, TupleShape, padded_bytes, parse_shape

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]

# How a pass changed the instruction of a buffer.
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


@dataclass(frozen=True)
class PassProgram:
    """A program between two passes, in the order of its text.

    names, opcodes, shapes and op_names (null where not said) have a row an instruction;
    computation is the index of its computation, `entry` that of the entry one. users, operands,
    numbers and elements are edges: the instruction of index users[k] has as operand numbers[k] the
    instruction operands[k], or of its result the element elements[k], -1 for all of it. callers and
    callees are the computations that instructions call.
    """

    names: pa.Array
    opcodes: pa.DictionaryArray
    shapes: pa.DictionaryArray
    op_names: pa.DictionaryArray
    computation: Ints
    entry: int
    is_root: Mask
    tuple_index: Ints
    users: Ints
    operands: Ints
    numbers: Ints
    elements: Ints
    callers: Ints
    callees: Ints
    is_scheduled: bool

    def __len__(self) -> int:
        return len(self.names)

    def opcode(self, at: int) -> str:
        """The opcode of an instruction."""
        return str(self.opcodes[at].as_py())

    def shape(self, at: int) -> str:
        """The shape of an instruction."""
        return str(self.shapes[at].as_py())

    def op_name(self, at: int) -> str | None:
        """The framework's name of an instruction; None if not said."""
        name: str | None = self.op_names[at].as_py()
        return name

    def name(self, at: int) -> str:
        """The name of an instruction."""
        return str(self.names[at].as_py())

    def has_opcode(self, *opcodes: str) -> Mask:
        """Which instructions have one of these opcodes."""
        return self.where_opcode(lambda opcode: opcode in opcodes)

    def where_opcode(self, holds: Callable[[str], bool]) -> Mask:
        """Which instructions have an opcode for which something holds."""
        chosen = np.array([holds(opcode) for opcode in self.opcodes.dictionary.to_pylist()], bool)
        return chosen[self.opcodes.indices.to_numpy()] if len(chosen) else np.zeros(0, bool)

    def places(self, names: Sequence[str]) -> Ints:
        """The index of the instruction of each name, -1 where there is none."""
        at = pc.index_in(pa.array(names, self.names.type), value_set=self.names)
        places: Ints = pc.fill_null(at, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return places

    @cached_property
    def _by_name(self) -> Mapping[str, int]:
        return {name: at for at, name in enumerate(self.names.to_pylist())}

    def place(self, name: str) -> int | None:
        """The index of an instruction, None if there is none of this name."""
        return self._by_name.get(name)

    def operands_of(self, at: int) -> list[int]:
        """The operands of an instruction, in order."""
        low, high = np.searchsorted(self.users, [at, at + 1])
        return [int(operand) for operand in self.operands[low:high]]

    @cached_property
    def roots(self) -> Ints:
        """The root of each computation; the last instruction where none is marked."""
        count = int(self.computation.max(initial=-1)) + 1
        roots = np.zeros(count, np.int64)
        roots[self.computation] = np.arange(len(self))
        roots[self.computation[self.is_root]] = np.flatnonzero(self.is_root)
        return roots

    @cached_property
    def callee(self) -> Mapping[int, int]:
        """The first computation that each calling instruction calls."""
        pairs = zip(self.callers.tolist(), self.callees.tolist(), strict=True)
        return dict(reversed(list(pairs)))

    def fused_root(self, at: int) -> int | None:
        """What computes the result of a fusion, behind reshapes; None of another instruction."""
        if self.opcode(at) != "fusion" or at not in self.callee:
            return None
        root = int(self.roots[self.callee[at]])
        for _ in range(_MOST_STEPS):
            operands = self.operands_of(root)
            if self.opcode(root) not in _SAME_ELEMENTS or not operands:
                break
            root = operands[0]
        return root


@dataclass(frozen=True)
class PassText:
    """A text between two passes: XLA's number of it, what precedes it, and how to read it.

    pipeline and compiler_pass are null of the final text. `read` gives the program, None if the
    text cannot be read, and its size in bytes.
    """

    step: int
    pipeline: str | None
    compiler_pass: str | None
    read: Callable[[], tuple[PassProgram | None, int]] = field(compare=False)


# -- The estimated peak ------------------------------------------------------------------------

_MOST_STEPS = 16
_SAME_ELEMENTS = frozenset({"bitcast", "reshape", "copy", "convert", "transpose"})
# They compute nothing: what they give is in the memory of their operands.
_FORWARD = frozenset(
    {"tuple", "get-tuple-element", "bitcast", "while", "optimization-barrier", "domain"}
    | {"add-dependency", "async-update", "send", "send-done", "after-all"}
)
# What they give replaces their first operand.
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
_RUN_INSIDE = frozenset({"while", "conditional", "call"})
# Which element of a start's result is new memory.
_STARTS = {"copy-start": 0, "all-gather-start": 1, "collective-permute-start": 1, "async-start": 1}
_NO_ELEMENT = -1


def is_forwarding(opcode: str) -> bool:
    """Whether an instruction computes nothing: its result is in the memory of its operands."""
    return opcode in _FORWARD or opcode.endswith("-done")


@lru_cache(maxsize=1 << 16)
def main_bytes(shape: str, element: int = _NO_ELEMENT) -> int:
    """The bytes of a shape's arrays in the main memory, or of one element alone.

    >>> main_bytes("(f32[4]{0}, bf16[8]{0:S(1)})")
    16
    >>> main_bytes("(f32[4]{0}, f32[2]{0}, u32[])", 1)
    8
    """
    try:
        parsed = parse_shape(shape)
    except ValueError:
        return 0
    if element >= 0 and isinstance(parsed, TupleShape):
        parsed = parsed.elements[element] if element < len(parsed.elements) else TupleShape()
    return sum(map(_main_bytes, _leaves(parsed)))


def _main_bytes(array: ArrayShape) -> int:
    try:
        return 0 if array.memory_space else padded_bytes(array)
    except ValueError:
        return 0


def _leaves(shape: Shape) -> Iterator[ArrayShape]:
    if isinstance(shape, ArrayShape):
        yield shape
    else:
        for element in shape.elements:
            yield from _leaves(element)


def estimated_peak(program: PassProgram) -> int:
    """The most bytes of values that live at one time, if the program ran in the text's order.

    Nothing is packed. A loop's carry is in place, as are dynamic-update-slice and scatter. A value
    within a fusion takes nothing. What a called computation needs is added where it is called.
    """
    if not len(program):
        return 0
    own, is_forward = _own_bytes(program)
    last = _last_uses(program, is_forward)
    count = len(program)
    change = np.zeros(count + 1, np.int64)
    np.add.at(change, np.arange(count), own)
    np.add.at(change, last + 1, -own)
    entry_first, _ = _extent(program, program.entry)
    is_argument = program.has_opcode("parameter") & (program.computation == program.entry)
    # Arguments are there from the start of the program.
    early = np.flatnonzero(is_argument)
    np.add.at(change, early, -own[early])
    change[entry_first] += own[early].sum()
    live = np.cumsum(change)[:-1]
    return int(_with_inner_peaks(program, live, own)[program.entry])


def _extent(program: PassProgram, computation: int) -> tuple[int, int]:
    low, high = np.searchsorted(program.computation, [computation, computation + 1])
    return int(low), int(high)


def _own_bytes(program: PassProgram) -> tuple[Ints, Mask]:
    """The new memory of each instruction, and which ones give what is in their operands'."""
    is_forward = program.where_opcode(is_forwarding)
    shapes = program.shapes.dictionary.to_pylist()
    by_shape = np.array([main_bytes(shape) for shape in shapes], np.int64)
    own = by_shape[program.shapes.indices.to_numpy()]
    for opcode, element in _STARTS.items():
        for at in np.flatnonzero(program.has_opcode(opcode)):
            own[at] = main_bytes(program.shape(int(at)), element)
    is_entry = program.computation == program.entry
    in_place = program.has_opcode(*_IN_PLACE) | _fused_in_place(program)
    own[is_forward | in_place] = 0
    own[program.has_opcode("parameter") & ~is_entry] = 0
    # What is within a fusion, a reduction or an asynchronous operation is no memory.
    is_run = np.zeros(len(program.roots), bool)
    is_run[program.entry] = True
    runs = program.has_opcode(*_RUN_INSIDE)[program.callers]
    is_run[program.callees[runs]] = True
    own[~is_run[program.computation]] = 0
    return own, is_forward | in_place


def _fused_in_place(program: PassProgram) -> Mask:
    """The fusions that end in an update in place."""
    found = np.zeros(len(program), bool)
    updates = program.has_opcode(*_IN_PLACE)
    for at in np.flatnonzero(program.has_opcode("fusion")).tolist():
        callee = program.callee.get(at)
        if callee is None:
            continue
        root = int(program.roots[callee])
        operands = program.operands_of(root) if program.opcode(root) == "bitcast" else [root]
        found[at] = bool(operands) and bool(updates[operands[0]])
    return found


def _last_uses(program: PassProgram, is_forward: Mask) -> Ints:
    """The place of the last use of each instruction, also through what only forwards it."""
    users, operands = _resolved(program)
    last = np.arange(len(program))
    np.maximum.at(last, operands, users)
    # What a computation gives lives until its end.
    ends = np.zeros(len(program.roots), np.int64)
    np.maximum.at(ends, program.computation, np.arange(len(program)))
    last[program.roots] = ends
    is_argument = program.has_opcode("parameter") & (program.computation == program.entry)
    last[is_argument] = ends[program.entry]
    forwarding = is_forward[users]
    # Instructions in place only replace their first operand; the rest is read.
    is_update = program.has_opcode(*_IN_PLACE)[users]
    forwarding &= ~is_update | _is_first(users)
    users, operands = users[forwarding], operands[forwarding]
    for _ in range(_MOST_STEPS * 4):
        before = last.copy()
        np.maximum.at(last, operands, last[users])
        if np.array_equal(before, last):
            break
    return last


def _is_first(users: Ints) -> Mask:
    first: Mask = np.append(True, users[1:] != users[:-1])[: len(users)]
    return first


def _resolved(program: PassProgram) -> tuple[Ints, Ints]:
    """The edges, where an element of a tuple or of a loop's carry is an edge to what it is."""
    users, operands = program.users, program.operands.copy()
    elements = program.elements.copy()
    is_get = program.has_opcode("get-tuple-element")[users]
    elements[is_get] = program.tuple_index[users[is_get]]
    first_edge = np.searchsorted(users, np.arange(len(program)))
    through = program.has_opcode("while", "optimization-barrier")
    is_tuple = program.has_opcode("tuple")
    open_ = elements >= 0
    for _ in range(_MOST_STEPS):
        step = open_ & through[operands]
        operands[step] = program.operands[first_edge[operands[step]]]
        at_tuple = np.flatnonzero(open_ & is_tuple[operands])
        inner = first_edge[operands[at_tuple]] + elements[at_tuple]
        fits = (inner < len(users)) & (
            users[np.minimum(inner, len(users) - 1)] == operands[at_tuple]
        )
        operands[at_tuple[fits]] = program.operands[inner[fits]]
        open_[at_tuple] = False
        if not step.any():
            break
    return users, operands


def _with_inner_peaks(program: PassProgram, live: Ints, own: Ints) -> Ints:
    """The peak of each computation, with those that it calls."""
    starts = np.flatnonzero(np.append(True, np.diff(program.computation) != 0))
    peaks = np.maximum.reduceat(live, starts)
    order = program.computation[starts]
    by_computation = np.zeros(len(program.roots), np.int64)
    by_computation[order] = peaks
    runs = np.flatnonzero(program.has_opcode(*_RUN_INSIDE)[program.callers])
    # A computation stands before those that call it.
    for edge in runs[np.argsort(program.callers[runs], kind="stable")].tolist():
        caller, callee = int(program.callers[edge]), int(program.callees[edge])
        inner = max(int(by_computation[callee]) - int(own[caller]), 0)
        place = program.computation[caller]
        by_computation[place] = max(by_computation[place], live[caller] + inner)
    return by_computation


# -- What a program is, and what changed in it -------------------------------------------------

_ODD = np.uint64(0x9E3779B97F4A7C15)


def digest_of(program: PassProgram) -> int:
    """A hash of what the program computes, without names and origins.

    The order of instructions counts where it is a schedule. 53 bits.
    """
    opcodes, shapes = (_hashes(each) for each in (program.opcodes, program.shapes))
    base = _mixed(opcodes * _ODD + shapes)
    whole = base.copy()
    with np.errstate(over="ignore"):
        edges = program.numbers.astype(np.uint64) + np.uint64(1)
        np.add.at(whole, program.users, _mixed(base[program.operands] + edges * _ODD))
        if program.is_scheduled and len(whole):
            first = np.flatnonzero(np.append(True, np.diff(program.computation) != 0))
            lengths = np.diff(np.append(first, len(whole)))
            place = np.arange(len(whole)) - np.repeat(first, lengths)
            whole = whole + _mixed(place.astype(np.uint64) + _ODD)
        total = np.sum(_mixed(whole), dtype=np.uint64)
    return hash_of_digest(int(total).to_bytes(8, "big"))


def _hashes(texts: pa.DictionaryArray) -> Words:
    found = np.array([_hash(text) for text in texts.dictionary.to_pylist()], np.uint64)
    taken: Words = found[texts.indices.to_numpy()]
    return taken


@lru_cache(maxsize=1 << 16)
def _hash(text: str) -> int:
    return hash_of_texts(text)


def _mixed(words: Words) -> Words:
    """Each word with its bits mixed, as splitmix64 does."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))


_MOST_OPCODES = 4


def opcode_counts(program: PassProgram) -> dict[str, int]:
    """How many instructions have each opcode."""
    counts = np.bincount(
        program.opcodes.indices.to_numpy(), minlength=len(program.opcodes.dictionary)
    )
    return dict(zip(program.opcodes.dictionary.to_pylist(), counts.tolist(), strict=True))


def counted_changes(before: Mapping[str, int], after: Mapping[str, int]) -> str | None:
    """The opcodes whose counts changed, the most first; None if none did.

    >>> counted_changes({"add": 3, "copy": 1}, {"add": 1, "copy": 1, "fusion": 1})
    '-2 add, +1 fusion'
    """
    changes = {name: after.get(name, 0) - before.get(name, 0) for name in {*before, *after}}
    opcodes = sorted((n for n in changes if changes[n]), key=lambda n: (-abs(changes[n]), n))
    if not opcodes:
        return None
    listed = ", ".join(f"{changes[name]:+d} {name}" for name in opcodes[:_MOST_OPCODES])
    return f"{listed}, …" if len(opcodes) > _MOST_OPCODES else listed


# -- Which pass made a buffer ------------------------------------------------------------------


# The same instruction under another name, as in a copy of a loop's body: it is not told.
_RENAMED = "renamed"


class Event(NamedTuple):
    """What a pass did to the instruction of a buffer: its name after and before."""

    event: str
    instruction: str
    before: str | None
    is_certain: bool


_REMAT = re.compile(r"\.remat\d*")
_NUMBERS = re.compile(r"(?:\.\d+|\.clone)+$")
_MEMORY_SPACE = re.compile(r"S\(\d+\)")


class Gone:
    """What a pass took away, to find what it made new ones of."""

    def __init__(self, before: PassProgram, after: PassProgram) -> None:
        self.program, self._after = before, after
        kept = pc.is_in(before.names, value_set=after.names).to_numpy(zero_copy_only=False)
        self._gone = np.flatnonzero(~kept)

    @cached_property
    def _by_array(self) -> dict[tuple[str, ...], list[int]]:
        found: dict[tuple[str, ...], list[int]] = {}
        for at in self._gone.tolist():
            found.setdefault(_dimensions(self.program.shape(at)), []).append(at)
        return found

    @cached_property
    def _by_op_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at in self._gone.tolist():
            name = self.program.op_name(at)
            if name is not None:
                found.setdefault(name, []).append(at)
        return found

    def like(self, at: int, *, opcode: str | None = None) -> tuple[int | None, bool]:
        """The gone instruction most like one of the program after, and whether it is the only one.

        opcode: of what is looked for, else any. Alike are the framework's name and the dimensions.
        """
        after = self._after
        shape, op_name = after.shape(at), after.op_name(at)
        of_name = self._by_op_name.get(op_name, []) if op_name is not None else []
        same = [c for c in of_name if _dimensions(self.program.shape(c)) == _dimensions(shape)]
        candidates = same or self._by_array.get(_dimensions(shape), [])
        if opcode is not None:
            candidates = [c for c in candidates if self.program.opcode(c) == opcode]
        if not candidates:
            return None, False
        stem = _NUMBERS.sub("", after.name(at))
        neighbours = {after.name(each) for each in after.operands_of(at)}

        def likeness(candidate: int) -> tuple[int, int, int]:
            operands = self.program.operands_of(candidate)
            shared = len(neighbours & {self.program.name(each) for each in operands})
            program = self.program
            return (
                int(program.opcode(candidate) == after.opcode(at)),
                shared,
                int(_NUMBERS.sub("", program.name(candidate)) == stem),
            )

        best = max(candidates, key=likeness)
        ties = sum(likeness(candidate) == likeness(best) for candidate in candidates)
        return best, bool(same) and ties == 1


@lru_cache(maxsize=1 << 14)
def _dimensions(shape: str) -> tuple[str, ...]:
    """The dimensions of a shape's arrays, whatever their types and layouts."""
    return tuple(_ARRAY.findall(shape))


@lru_cache(maxsize=1 << 14)
def _types(shape: str) -> tuple[str, ...]:
    return tuple(_TYPE.findall(shape))


_ARRAY = re.compile(r"\w\[([^\]]*)\]")
_TYPE = re.compile(r"(\w+)\[")


def shape_event(before: str, after: str) -> str | None:
    """What changed of a shape; None if it is the same, the memory space aside.

    >>> shape_event("f32[8,4]{1,0}", "f32[8,4]{0,1}")
    'layout'
    >>> shape_event("f32[8,4]{1,0}", "bf16[8,4]{1,0}")
    'type'
    """
    if before == after:
        return None
    if _types(before) != _types(after):
        return "type"
    if _dimensions(before) != _dimensions(after):
        return "replaced"
    return "layout" if _layouts(before) != _layouts(after) else None


@lru_cache(maxsize=1 << 14)
def _layouts(shape: str) -> str:
    return _MEMORY_SPACE.sub("", shape).replace(":}", "}")


def event_of(after: PassProgram, at: int, before: PassProgram, gone: Gone) -> Event | None:
    """What the pass between two texts did to an instruction of the second; None if nothing."""
    name = after.name(at)
    place_before = before.place(name)
    if place_before is not None:
        event = shape_event(before.shape(place_before), after.shape(at))
        if before.opcode(place_before) != after.opcode(at):
            event = "replaced"
        # Before layouts are assigned there are none to change.
        return None if event is None else Event(event, name, name, True)
    opcode = after.opcode(at)
    if _REMAT.search(name):
        origin = _REMAT.split(name)[0]
        is_there = before.place(origin) is not None
        return Event("rematerialised", name, origin if is_there else None, True)
    if opcode == "fusion":
        found, is_certain = gone.like(at, opcode="fusion")
        if found is not None and is_certain and before.shape(found) == after.shape(at):
            return Event(_RENAMED, name, before.name(found), True)
        root = after.fused_root(at)
        inner = None if root is None else after.opcode(root)
        found, is_certain = None, False
        if root is not None:
            found, is_certain = gone.like(root, opcode=inner)
        if found is None:
            found, is_certain = gone.like(at)
        return Event("fused", name, _named(before, found), is_certain or found is None)
    base = re.sub(r"-(start|done|update)$", "", opcode)
    if base != opcode:
        found, is_certain = gone.like(at, opcode=_wrapped(after, at) if base == "async" else base)
        if found is None and base == "copy":
            return Event("copied", name, _copied(after, at), True)
        return Event("asynchronous", name, _named(before, found), is_certain or found is None)
    if opcode == "copy":
        found, is_certain = gone.like(at, opcode="copy")
        if found is None or not is_certain:
            return Event("copied", name, _copied(after, at), True)
        return Event(_RENAMED, name, before.name(found), True)
    found, is_certain = gone.like(at)
    if found is None:
        return Event("appeared", name, None, True)
    event = shape_event(before.shape(found), after.shape(at))
    if before.opcode(found) == opcode:
        event = event or _RENAMED
    elif event != "type" or opcode != "convert":
        event = "replaced"
    return Event(event, name, before.name(found), is_certain)


def _copied(after: PassProgram, at: int) -> str | None:
    """What an instruction copies."""
    operands = after.operands_of(at)
    return after.name(operands[0]) if operands else None


def _named(program: PassProgram, at: int | None) -> str | None:
    return None if at is None else program.name(at)


def _wrapped(program: PassProgram, at: int) -> str | None:
    """The opcode of what runs asynchronously."""
    callee = program.callee.get(at)
    return None if callee is None else program.opcode(int(program.roots[callee]))


@dataclass
class _Followed:
    """A buffer on its way back: the name of its instruction now, None where its way ends."""

    name: str | None
    events: list[tuple[int, Event]] = field(default_factory=list)


def follow(
    texts: Iterable[PassText], buffers: Sequence[str]
) -> tuple[list[dict[str, object]], list[list[tuple[int, Event]]], list[PassText]]:
    """The rows of `passes`, the events of each buffer, and the texts that cannot be read.

    buffers: the final instruction of each. The texts are read once each, from the last to the
    first, and two are held at a time. Events are from the first to the last, with their steps.
    """
    followed = [_Followed(name) for name in buffers]
    rows: list[dict[str, object]] = []
    unread: list[PassText] = []
    after: PassProgram | None = None
    step_after = 0
    counts: dict[str, int] = {}
    digest: int | None = None
    for text in sorted(texts, key=lambda text: -text.step):
        program, size = text.read()
        if program is None:
            unread.append(text)
            continue
        of_text = digest_of(program)
        of_opcodes = opcode_counts(program)
        if rows:
            rows[-1]["changes"] = counted_changes(of_opcodes, counts)
        is_same = digest == of_text and after is not None and len(after) == len(program)
        rows.append(
            {
                "step": text.step,
                "pipeline": text.pipeline,
                "compiler_pass": text.compiler_pass,
                "instructions": len(program),
                "estimated_peak_bytes": rows[-1]["estimated_peak_bytes"]
                if is_same
                else estimated_peak(program),
                "digest": of_text,
                "text_bytes": size,
            }
        )
        if after is not None:
            _step_back(followed, after, step_after, program)
        else:
            # What the last text does not have was made after it.
            for buffer, place in zip(followed, program.places(buffers).tolist(), strict=True):
                buffer.name = buffer.name if place >= 0 else None
        after, step_after, counts, digest = program, text.step, of_opcodes, of_text
    for buffer in followed:
        if buffer.name is not None:
            buffer.events.append((step_after, Event("program", buffer.name, None, True)))
    rows.reverse()
    return rows, [buffer.events[::-1] for buffer in followed], unread[::-1]


def _step_back(
    followed: Sequence[_Followed], after: PassProgram, step: int, before: PassProgram
) -> None:
    """Take all buffers back over one pass."""
    alive = [buffer for buffer in followed if buffer.name is not None]
    names = [buffer.name or "" for buffer in alive]
    places = after.places(names)
    places_before = before.places(names)
    # Most names stay, with all that is said of them.
    gone = Gone(before, after)
    for buffer, at, before_at in zip(alive, places.tolist(), places_before.tolist(), strict=True):
        if at < 0:
            buffer.name = None
            continue
        is_same = before_at >= 0 and before.shape(before_at) == after.shape(at)
        if is_same and before.opcode(before_at) == after.opcode(at):
            continue
        _events(buffer, step, after, before, gone)


def _events(
    buffer: _Followed, step: int, after: PassProgram, before: PassProgram, gone: Gone
) -> None:
    """What one pass did to a buffer: a copy of what is new as well has several events."""
    for _ in range(_MOST_STEPS):
        at = None if buffer.name is None else after.place(buffer.name)
        event = None if at is None else event_of(after, at, before, gone)
        if event is None:
            return
        buffer.name = event.before
        if event.event != _RENAMED:
            buffer.events.append((step, event))
        if (
            event.event != "copied"
            or event.before is None
            or before.place(event.before) is not None
        ):
            return
    buffer.name = None


# So many buffers of the peak are followed, the largest, if they have this share of it.
MOST_BUFFERS = 64
LEAST_SHARE = 1e-3
