"""A program between two compiler passes: its estimated peak, and a digest of its instructions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .hashes import hash_of_texts
from .program import NONE, Program
from .shapes import Shape, TupleShape, has_size, padded_bytes, parse_shape

# These compute nothing: their result is in the memory of their operands.
_FORWARDING = frozenset(
    {"tuple", "get-tuple-element", "bitcast", "while", "optimization-barrier", "domain"}
    | {"add-dependency", "async-update", "send", "send-done", "after-all"}
)
# Their result replaces their first operand.
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
_RUN_INSIDE = frozenset({"while", "conditional", "call"})
_TUPLES = frozenset({"while", "optimization-barrier"})
# The element of a start's result that is new memory.
_NEW_ELEMENT_OF_START = {
    "copy-start": 0,
    "all-gather-start": 1,
    "collective-permute-start": 1,
    "async-start": 1,
}
_MAX_STEPS = 16
_MAX_OPCODES = 4


class PassProgram(Program):
    """A program between two passes.

    An operand that the text does not define is NONE.

    Attributes:
        elements: by row and operand number, the element of the operand's tuple that is read: 1
            for an operand `%x#1`, as texts since JAX 0.12 have it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.elements: dict[tuple[int, int], int] = {}

    def root_or_last(self, computation: int) -> int:
        """The root of a computation; its last instruction if none is marked."""
        root = self.root[computation]
        return root if root != NONE else self.stop[computation] - 1

    def first_callee(self, row: int) -> int:
        """The first computation that an instruction calls; NONE if it calls none."""
        calls = self.calls.get(row)
        return calls[0][1] if calls else NONE

    def read_operands(self, row: int) -> list[int]:
        """The operands of an instruction that the text defines, in order."""
        return [operand for operand in self.operands[row] if operand != NONE]


def is_forwarding(opcode: str) -> bool:
    """Whether an instruction computes nothing: its result is in the memory of its operands."""
    return opcode in _FORWARDING or opcode.endswith("-done")


@lru_cache(maxsize=1 << 16)
def main_bytes(shape: str, element: int = NONE) -> int:
    """The padded bytes of a shape's arrays in memory space 0, or of one element of a tuple.

    >>> main_bytes("(f32[4]{0}, bf16[8]{0:S(1)})")
    16
    >>> main_bytes("(f32[4]{0}, f32[2]{0}, u32[])", 1)
    8
    """
    try:
        parsed = parse_shape(shape)
    except ValueError:
        return 0
    if element != NONE and isinstance(parsed, TupleShape):
        parsed = parsed.elements[element] if element < len(parsed.elements) else TupleShape()
    return _main_bytes(parsed)


def _main_bytes(shape: Shape) -> int:
    """The padded bytes of a shape's arrays in memory space 0, without those of unknown size."""
    if isinstance(shape, TupleShape):
        return sum(map(_main_bytes, shape.elements))
    return padded_bytes(shape) if has_size(shape) and not shape.memory_space else 0


def estimated_peak(program: PassProgram) -> int:
    """The peak in bytes if the program ran in the order of its text.

    Nothing is packed. A loop's carry is in place, as are dynamic-update-slice and scatter. Values
    within a fusion need nothing. The peak of a called computation is added where it is called.
    """
    updates = _find_updates(program)
    is_forward = [
        is_update or is_forwarding(opcode)
        for is_update, opcode in zip(updates, program.opcode, strict=True)
    ]
    sizes = _new_bytes(program, is_forward)
    last_use = _last_uses(program, is_forward)
    peaks = [0] * len(program.computation_names)
    # The computations precede their callers in the text.
    for computation in range(len(peaks)):
        freed: Counter[int] = Counter()
        live = 0
        rows = program.rows_of(computation)
        if computation == program.entry:
            # Arguments are live from the start.
            live = sum(sizes[row] for row in rows if program.opcode[row] == "parameter")
        for row in rows:
            if computation != program.entry or program.opcode[row] != "parameter":
                live += sizes[row]
            freed[last_use[row]] += sizes[row]
            inner = 0
            if program.opcode[row] in _RUN_INSIDE:
                called = [peaks[callee] for _, callee in program.calls.get(row, ())]
                inner = max(max(called, default=0) - sizes[row], 0)
            peaks[computation] = max(peaks[computation], live + inner)
            live -= freed.pop(row, 0)
    return peaks[program.entry] if len(program) else 0


def _find_updates(program: PassProgram) -> list[bool]:
    """By row, whether it is an update in place, or a fusion whose root is one."""
    is_in_place = [opcode in _IN_PLACE for opcode in program.opcode]
    for row, opcode in enumerate(program.opcode):
        callee = program.first_callee(row)
        if opcode != "fusion" or callee == NONE:
            continue
        root = program.root_or_last(callee)
        if program.opcode[root] == "bitcast":
            root = next(iter(program.read_operands(root)), root)
        is_in_place[row] = program.opcode[root] in _IN_PLACE
    return is_in_place


def _new_bytes(program: PassProgram, is_forward: Sequence[bool]) -> list[int]:
    """By row, the bytes that the result adds to memory space 0.

    0 for a result in the memory of an operand (`is_forward`), for a parameter but the entry's, and
    in a computation that has no memory of its own.
    """
    # The computations of fusions, reductions and asynchronous operations need no memory.
    has_memory = [False] * len(program.computation_names)
    has_memory[program.entry] = True
    for row, calls in program.calls.items():
        if program.opcode[row] in _RUN_INSIDE:
            for _, callee in calls:
                has_memory[callee] = True
    sizes = []
    for row, opcode in enumerate(program.opcode):
        computation = program.computation[row]
        is_inner_parameter = opcode == "parameter" and computation != program.entry
        if is_forward[row] or is_inner_parameter or not has_memory[computation]:
            sizes.append(0)
        else:
            sizes.append(main_bytes(program.shape[row], _NEW_ELEMENT_OF_START.get(opcode, NONE)))
    return sizes


def _last_uses(program: PassProgram, is_forward: Sequence[bool]) -> list[int]:
    """By row, the row of its last use, directly or through instructions that forward it.

    Arguments and the roots of computations are used until the end of their computation.
    """
    last_use = list(range(len(program)))
    for computation, stop in enumerate(program.stop):
        if program.first[computation] < stop:
            last_use[program.root_or_last(computation)] = stop - 1
    for row in program.rows_of(program.entry):
        if program.opcode[row] == "parameter":
            last_use[row] = program.stop[program.entry] - 1
    # Users come after their operands in the text: their last use is final before the operands'.
    for user in range(len(program) - 1, -1, -1):
        operands = program.operands[user]
        is_update = program.opcode[user] in _IN_PLACE
        for number in range(len(operands)):
            operand = _resolve_operand(program, user, number)
            if operand == NONE:
                continue
            # An update replaces its first operand only; the others are read.
            forwards = is_forward[user] and (not is_update or number == 0)
            last_use[operand] = max(last_use[operand], last_use[user] if forwards else user)
    return last_use


def _resolve_operand(program: PassProgram, user: int, number: int) -> int:
    """The instruction that defines an operand: for an element of a tuple, that of the element."""
    operand = program.operands[user][number]
    if program.opcode[user] == "get-tuple-element":
        element = program.tuple_index[user]
    else:
        element = program.elements.get((user, number), NONE)
    if element == NONE or operand == NONE:
        return operand
    for _ in range(_MAX_STEPS):
        if program.opcode[operand] not in _TUPLES or not program.read_operands(operand):
            break
        operand = program.read_operands(operand)[0]
    elements = program.operands[operand] if program.opcode[operand] == "tuple" else ()
    return elements[element] if element < len(elements) else operand


def digest(program: PassProgram) -> int:
    """A hash of the instructions without names and source lines, in 53 bits.

    The first pass after which the digests of two modules differ made them different. An instruction
    counts with its opcode, its shape and those of its operands; where the text is a schedule, with
    its position in its computation, too.
    """
    codes = [_code(*pair) for pair in zip(program.opcode, program.shape, strict=True)]
    lines = []
    for row, operands in enumerate(program.operands):
        line = codes[row]
        for operand in operands:
            line += codes[operand] if operand != NONE else "-"
        if program.header.is_scheduled:
            line += f"@{row - program.first[program.computation[row]]}"
        lines.append(line)
    return hash_of_texts(*sorted(lines))


@lru_cache(maxsize=1 << 16)
def _code(opcode: str, shape: str) -> str:
    """A short text for an opcode and a shape, which for a tuple can be very long."""
    return f"{hash_of_texts(opcode, shape):x},"


def counted_changes(before: Mapping[str, int], after: Mapping[str, int]) -> str | None:
    """The opcodes whose counts changed, the largest change first; None if none did.

    >>> counted_changes({"add": 3, "copy": 1}, {"add": 1, "copy": 1, "fusion": 1})
    '-2 add, +1 fusion'
    """
    changes = {name: after.get(name, 0) - before.get(name, 0) for name in {*before, *after}}
    opcodes = sorted((n for n in changes if changes[n]), key=lambda n: (-abs(changes[n]), n))
    if not opcodes:
        return None
    listed = ", ".join(f"{changes[name]:+d} {name}" for name in opcodes[:_MAX_OPCODES])
    return f"{listed}, …" if len(opcodes) > _MAX_OPCODES else listed
