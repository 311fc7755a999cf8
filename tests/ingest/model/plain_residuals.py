"""What the forward pass keeps for the backward pass: a row per residual.

Values that must share memory are one set. A set that is made in forward and read last in backward
is saved; what is copied or sliced out of a saved set belongs to its row.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

from .plain_answers import Origin
from .plain_idle import Idle
from .plain_origins import Rules
from .plain_passes import BACKWARD, FORWARD, OPTIMIZER, REMATERIALISED, Passes
from .plain_rules import Range, flatten
from .plain_sizes import elements, size
from .plain_text import Instruction, Position, sub_shapes
from .plain_ways import RESHAPED, SLICE_NAMES, Ways

Set = tuple[Position, ...]
SPACE = re.compile(r"S\((\d+)\)")
# What hands a value on, and does not read it.
HANDED_ON = (
    *("tuple", "get-tuple-element", "bitcast", "copy-done", "while", "call", "conditional"),
    *("opt-barrier", "optimization-barrier", "add-dependency", "domain"),
    *("async-start", "async-update", "async-done"),
)
PARTS = ("copy", "copy-start", "slice", "dynamic-slice")
LATER = (BACKWARD, REMATERIALISED)


@dataclass(frozen=True)
class Residual:
    """One saved result in one memory space: its sets there, and what a user asks of it."""

    sets: tuple[Set, ...]
    space: str
    origin: Origin
    # The value that stands for it: the largest.
    value: Position
    bytes: float
    layers: int
    made: str
    # What the backward pass reads it by first; several if they read at the same time.
    readers: tuple[str, ...]
    idle: int


def saved_for_backward(text: str, sizes: dict[Position, int] | None = None) -> list[Residual]:
    """The residuals of a module, the largest first.

    Sizes are what the elements take, unless they are given.
    """
    found = Residuals(Rules(Ways(text)), sizes or {})
    rows = [row for sets in found.merged(found.saved()) for row in found.rows(sets)]
    return sorted(rows, key=lambda row: (-row.bytes, found.order[row.value[0]], row.value))


class Residuals:
    """The rules for residuals on one module."""

    def __init__(self, rules: Rules, sizes: dict[Position, int]) -> None:
        self.rules, self.ways, self.names = rules, rules.ways, rules.names
        self.module, self.sizes, self.order = rules.module, sizes, rules.order
        self.passes = Passes(rules)
        self.idle = Idle(self.ways, flatten(self.module))
        self.times = self.idle.times
        self.sets: dict[Position, Set] = {}
        self.known: dict[Set, list[tuple[Instruction, Instruction, str]]] = {}
        for value in self.ways.array_values():
            if value[0] not in self.times:
                continue
            members = [
                other for other in rules.sets[value] if self.space(other) == self.space(value)
            ]
            self.sets[value] = tuple(other for other in members if other[0] in self.times)

    def shape(self, value: Position) -> str:
        """The shape of an array value."""
        shape = sub_shapes(self.ways.at(value).shape)[value[1]]
        return shape if isinstance(shape, str) else ""

    def space(self, value: Position) -> str:
        """The memory space of an array value; a tuple has none."""
        shape = self.shape(value)
        found = SPACE.search(shape)
        return (found[1] if found else "0") if shape else ""

    def size(self, value: Position) -> float:
        """The bytes of a value."""
        return self.sizes.get(value, size(self.shape(value)))

    def largest(self, members: Set) -> Position:
        """The largest value of a set; the first of equally large ones by the text."""
        return max(members, key=self.size)

    # What is saved.

    def saved(self) -> list[Set]:
        """The sets that are made in forward and read last in backward.

        Decision: also those whose copies or slices are saved, if these are made after the first
        read of the backward pass: what is copied or cut there is read there.
        """
        every = list(dict.fromkeys(self.sets.values()))
        saved = {members for members in every if self.is_read_late(members)}
        late = [
            self.times[x.name]
            for members in every
            for x, _, told in self.reads(members)
            if told == BACKWARD
        ]
        cut = [
            (self.sets[part], self.sets[whole])
            for part, whole in self.parts()
            if late and self.times[part[0]] >= min(late)
        ]
        while further := {whole for part, whole in cut if part in saved} - saved:
            saved |= further
        return [members for members in every if members in saved and self.is_forward(members)]

    def is_forward(self, members: Set) -> bool:
        """Whether a set is made in the forward pass.

        Decision: what a rematerialised clone of XLA's holds is not made in forward; entry
        parameters are no residuals, their pass is `argument`.
        """
        value = self.largest(members)
        origin = self.rules.origin(value)
        return origin is not None and self.passes.of(value, origin) == FORWARD

    def is_read_late(self, members: Set) -> bool:
        """Whether the last read of a set is for the backward pass."""
        reads = self.reads(members) if self.is_forward(members) else []
        return bool(reads) and reads[-1][2] in LATER

    def reads(self, members: Set) -> list[tuple[Instruction, Instruction, str]]:
        """Who reads a set, by time: the user, what reads it inside of a fusion, the pass."""
        if members not in self.known:
            uses = {
                (self.times[user], self.order[value[0]], value[1], number, user)
                for value in members
                for user, number, _ in self.rules.uses.get(value, set())
                if user in self.times
            }
            found = [self.read(self.module.instructions[use[-1]], use[-2]) for use in sorted(uses)]
            self.known[members] = [read for read in found if read is not None]
        return self.known[members]

    def read(self, x: Instruction, number: int) -> tuple[Instruction, Instruction, str] | None:
        """A read with its pass; none if that is not known.

        By its name, else by what reads it inside a fusion, else the optimizer's if after it.
        """
        if self.hands_on(x) or x.opcode in ("copy", "copy-start"):
            return None
        reader = x
        if x.opcode == "fusion" and self.is_nameless(x):
            fused = self.ways.computation(x, "calls")
            inner = self.rules.fills.inner_reader(fused.name, fused.parameter(number).name)
            reader = inner or x
        told = self.passes.of_instruction(reader)
        return None if self.is_nameless(reader) and told != OPTIMIZER else (x, reader, told)

    def is_nameless(self, x: Instruction) -> bool:
        """Whether an instruction has no path, not even a wrapper's."""
        return self.names.kind(x) in ("none", "argument", "xla-made")

    def hands_on(self, x: Instruction) -> bool:
        """Whether an instruction hands a value on, and does not read it."""
        return x.opcode in HANDED_ON or (x.opcode in RESHAPED and self.is_nameless(x))

    # What is one row.

    def merged(self, saved: list[Set]) -> list[tuple[Set, ...]]:
        """The saved sets, together with those of the same origin that are cut out of them.

        Decision: what lies between two sets of a row joins them, saved or not.
        """
        group = {members: {members} for members in self.sets.values()}
        for part, whole in self.parts():
            one, two = group[self.sets[part]], group[self.sets[whole]]
            if one is not two:
                one |= two
                group |= dict.fromkeys(two, one)
        rows: dict[int, list[Set]] = defaultdict(list)
        for members in saved:
            rows[id(group[members])].append(members)
        self.groups = {members: group[members] for members in saved}
        return [tuple(row) for row in rows.values()]

    def parts(self) -> list[tuple[Position, Position]]:
        """Values that are copies or slices of others with the same origin, and the others.

        Decision: what is nameless and has the origin of its operand is the operand, in another
        place or cut; fusions and custom calls too.
        """
        result = []
        for value in self.sets:
            x = self.ways.at(value)
            may_be = x.opcode in (*PARTS, "custom-call", "fusion", "concatenate")
            takes = self.is_nameless(x) or x.opcode in PARTS or self.takes_a_slice(x)
            owner = self.owner(value) if may_be and takes else None
            for name in x.operands if owner else []:
                held = self.ways.values.held.get((name, ()))
                if held in self.sets and self.owner(held) == owner:
                    result.append((value, held))
        return result

    def takes_a_slice(self, x: Instruction) -> bool:
        """Whether an instruction is named as JAX names what takes a slice out of a stack."""
        said = self.names.op_name(x).partition(";")[0].rpartition("/")[2]
        return said.partition("[")[0] in SLICE_NAMES

    def owner(self, value: Position) -> str | None:
        """The instruction that owns a value."""
        origin = self.rules.origin(value)
        return origin.instruction if origin else None

    # What a row says.

    def rows(self, sets: tuple[Set, ...]) -> list[Residual]:
        """A row for each memory space that a residual lies in.

        Decision: who reads it is asked of all its sets, since what TPU keeps in HBM is read as
        pieces brought back to VMEM; bytes and idle time are of the sets of one space.
        """
        late = [
            (self.times[x.name], reader)
            for members in self.groups[sets[0]]
            if self.is_forward(members)
            for x, reader, told in self.reads(members)
            if told in LATER and not self.takes_a_slice(reader)
        ]
        first = min((time for time, _ in late), default=0)
        readers = tuple(dict.fromkeys(reader.name for time, reader in late if time == first))
        spaces = sorted({self.space(members[0]) for members in sets})
        return [self.row(sets, space, readers) for space in spaces]

    def row(self, sets: tuple[Set, ...], space: str, readers: tuple[str, ...]) -> Residual:
        """The row of one residual in one memory space."""
        sets = tuple(members for members in sets if self.space(members[0]) == space)
        values = [value for members in sets for value in members]
        values.sort(key=lambda value: (self.order[value[0]], value[1]))
        value = max(values, key=self.size)
        origin = self.rules.origin(value)
        assert origin is not None
        x = self.module.instructions[origin.instruction]
        one = self.elements(x.shape) if isinstance(x.shape, str) else 0
        held = self.elements(self.shape(value))
        is_multiple = one > 0 and held >= one and held % one == 0
        return Residual(
            sets=sets,
            space=space,
            origin=origin,
            value=value,
            bytes=self.size(value),
            layers=held // one if is_multiple else 1,
            made=self.names.line(x),
            readers=readers,
            idle=self.idle.longest([touch for one in sets for touch in self.touches(one)]),
        )

    def elements(self, shape: str) -> int:
        """How many elements an array has."""
        return elements(shape.partition("[")[2].partition("]")[0])

    def touches(self, members: Set) -> list[Range]:
        """From when to when each definition and each read touches a set.

        Decision: copies are reads, so that what is fetched back into fast memory is touched.
        """
        result = []
        for value in members:
            result.append(self.idle.touch(value, self.ways.at(value)))
            for user, _, _ in self.rules.uses.get(value, set()):
                x = self.module.instructions[user]
                if user in self.times and x.opcode not in HANDED_ON:
                    result.append(self.idle.touch(value, x))
        return result
