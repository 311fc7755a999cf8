"""What the forward pass keeps for the backward pass: a row per residual.

Values that must share memory are one set. A set that is made in forward and read last in backward
is saved; what is copied or sliced out of a saved set belongs to its row.
"""

import re
from dataclasses import dataclass

from .plain_answers import Origin
from .plain_idle import Idle
from .plain_origins import Rules
from .plain_passes import BACKWARD, FORWARD, OPTIMIZER, REMATERIALISED, Passes
from .plain_rules import Range, flatten
from .plain_sizes import elements, size
from .plain_text import Instruction, Position, sub_shapes
from .plain_ways import RESHAPED, Ways

Set = tuple[Position, ...]
SPACE = re.compile(r"S\((\d+)\)")
# What hands a value on, and does not read it.
HANDED_ON = (
    *("tuple", "get-tuple-element", "copy", "bitcast", "copy-start", "copy-done", "while", "call"),
    *("async-start", "async-update", "async-done"),
)
SLICED = ("slice", "dynamic-slice")


@dataclass(frozen=True)
class Residual:
    """One saved result in one memory space: its sets there, and what a user asks of it."""

    sets: tuple[Set, ...]
    space: str
    origin: Origin
    # The value that stands for it: the largest.
    value: Position
    bytes: float
    layers: float
    made: str
    read: tuple[str, ...]
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
        """The sets that are made in forward and read last in backward."""
        every = dict.fromkeys(self.sets.values())
        return [members for members in every if self.is_saved(members)]

    def is_saved(self, members: Set) -> bool:
        """Whether a set is saved for the backward pass.

        Decision: what a rematerialised clone of XLA's holds is not made in forward; entry
        parameters are no residuals, their pass is `argument`.
        """
        value = self.largest(members)
        origin = self.rules.origin(value)
        if origin is None or self.passes.of(value, origin) != FORWARD:
            return False
        told = [told for _, told in self.reads(members) if told is not None]
        return any(self.is_backward(one) for one in told) and self.is_backward(told[-1])

    def is_backward(self, told: str | None) -> bool:
        """Whether a read is for the backward pass."""
        return told in (BACKWARD, REMATERIALISED)

    def reads(self, members: Set) -> list[tuple[Instruction, str | None]]:
        """Who reads a set and in which pass, by time."""
        uses = {
            (self.times[user], user, number)
            for value in members
            for user, number, _ in self.rules.uses.get(value, set())
            if user in self.times
        }
        result = []
        for _, user, number in sorted(uses):
            x = self.module.instructions[user]
            if self.hands_on(x):
                continue
            result.append((x, self.pass_of_read(x, number)))
        return result

    def hands_on(self, x: Instruction) -> bool:
        """Whether an instruction hands a value on, and does not read it."""
        nameless = x.opcode in RESHAPED and not self.names.is_strong(x)
        return x.opcode in HANDED_ON or nameless

    def pass_of_read(self, x: Instruction, number: int) -> str | None:
        """By its name, else by what reads it inside a fusion, else the optimizer's if after it."""
        if (told := self.passes.by_name(x)) is not None:
            return told
        inner = self.inner_reader(x, number)
        if inner is not None and (told := self.passes.by_name(inner)) is not None:
            return told
        at = self.passes.at_entry(x)
        return OPTIMIZER if at is not None and at.name in self.passes.after else None

    def inner_reader(self, x: Instruction, number: int) -> Instruction | None:
        """What reads a fusion's parameter, if it has a strong name."""
        if x.opcode != "fusion":
            return None
        fused = self.ways.computation(x, "calls")
        return self.rules.fills.inner_reader(fused.name, fused.parameter(number).name)

    # What is one row.

    def merged(self, saved: list[Set]) -> list[tuple[Set, ...]]:
        """The saved sets, together with those of the same origin that are cut out of them.

        Decision: a copy that is read by another copy alone is in the row too: on TPU the pieces
        in HBM are such copies, and what is put together of them in VMEM is what backward reads.
        """
        every = list(dict.fromkeys(self.sets.values()))
        group = {members: {members} for members in every}
        for members in every:
            for other in self.cut_from(members):
                one, two = group[members], group[other]
                if one is two or self.owner(members) != self.owner(other):
                    continue
                one |= two
                group |= dict.fromkeys(two, one)
        whole = {id(group[members]): group[members] for members in saved}.values()
        return [tuple(sorted(sets, key=lambda one: self.first(one))) for sets in whole]

    def first(self, members: Set) -> tuple[int, Position]:
        """Where the first value of a set stands in the text."""
        return min((self.order[value[0]], value) for value in members)

    def owner(self, members: Set) -> str | None:
        """The instruction that owns a set."""
        origin = self.rules.origin(self.largest(members))
        return origin.instruction if origin else None

    def cut_from(self, members: Set) -> list[Set]:
        """The sets that values of this one are copies or slices of."""
        result = []
        for value in members:
            for source in self.sources(value):
                held = self.ways.values.held.get(source)
                if held is not None and held in self.sets:
                    result.append(self.sets[held])
        return result

    def sources(self, node: Position) -> list[Position]:
        """What a value is a copy, a slice or a joining of slices of; in nameless fusions too.

        Decision: a fusion that is named as a scan's slice counts as the slice it is.
        """
        x = self.ways.at(node)
        if (part := self.ways.slice(node)) is not None:
            return self.outside((part.operands[0], ()))
        if x.opcode == "copy-start" and node[1] == (2,):
            return []
        if x.opcode in (*SLICED, *RESHAPED, "copy", "copy-start"):
            if x.opcode in RESHAPED and self.names.is_strong(x):
                return []
            return self.outside((x.operands[0], ()))
        if self.names.metadata[x.name].target == "ConcatBitcast":
            return [(name, ()) for name in x.operands]
        if x.opcode == "fusion" and not self.names.is_strong(x):
            inner = self.ways.inner(x, node[1])
            passed = self.rules.fusions.passed(inner)
            return [passed] if passed else []
        return []

    def outside(self, node: Position) -> list[Position]:
        """A node, from inside fusions out."""
        settled = self.ways.through_moves(node)
        return [settled] if settled in self.ways.values.held else []

    # What a row says.

    def rows(self, sets: tuple[Set, ...]) -> list[Residual]:
        """A row for each memory space that a residual lies in.

        Decision: who reads it is asked of all its sets, since what TPU keeps in HBM is read as
        pieces brought back to VMEM; bytes and idle time are of the sets of one space.
        """
        backward = {
            x.name: self.names.line(x)
            for members in sets
            for x, told in self.reads(members)
            if self.is_backward(told) and self.ways.slice((x.name, ())) is None
        }
        in_time = sorted(backward, key=lambda name: self.times[name])
        read = tuple(dict.fromkeys(backward[name] for name in in_time if backward[name]))
        spaces = sorted({self.space(members[0]) for members in sets})
        return [self.row(sets, space, read) for space in spaces]

    def row(self, sets: tuple[Set, ...], space: str, read: tuple[str, ...]) -> Residual:
        """The row of one residual in one memory space."""
        sets = tuple(members for members in sets if self.space(members[0]) == space)
        value = max((self.largest(members) for members in sets), key=self.size)
        origin = self.rules.origin(value)
        assert origin is not None
        x = self.module.instructions[origin.instruction]
        of_origin = self.elements(self.shape((x.name, self.ways.largest_leaf(x))))
        return Residual(
            sets=sets,
            space=space,
            origin=origin,
            value=value,
            bytes=self.size(value),
            layers=self.elements(self.shape(value)) / max(1, of_origin),
            made=self.names.line(x),
            read=read,
            idle=self.idle.longest([touch for one in sets for touch in self.touches(one)]),
        )

    def elements(self, shape: str) -> int:
        """How many elements an array has."""
        return elements(shape.partition("[")[2].partition("]")[0])

    def touches(self, members: Set) -> list[Range]:
        """From when to when each definition and each read touches a set.

        Decision: a loop's parameter is no definition, nothing is written there.
        """
        result = []
        for value in members:
            if self.ways.at(value).opcode != "parameter":
                result.append(self.idle.touch(value, self.ways.at(value)))
            for user, _, _ in self.rules.uses.get(value, set()):
                x = self.module.instructions[user]
                if user in self.times and not self.hands_on(x):
                    result.append(self.idle.touch(value, x))
        return result
