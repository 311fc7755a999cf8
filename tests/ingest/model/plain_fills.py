"""Who owns a fill: what it becomes, its own name, who reads it."""

from typing import TYPE_CHECKING

from .plain_answers import Origin
from .plain_text import Instruction, Position
from .plain_ways import RESHAPED

if TYPE_CHECKING:
    from .plain_origins import Rules

MOVES = ("copy", "copy-start")


class Fills:
    """The rules for fills on one module."""

    def __init__(self, rules: "Rules") -> None:
        self.rules, self.ways, self.names = rules, rules.ways, rules.names

    def settle(self, value: Position) -> Origin | None:
        """The owner of a value that is one constant everywhere."""
        return (
            self.becomes(value)
            or self.own(value)
            or self.read(value)
            or self.rules.weak(self.ways.at(value))
        )

    def becomes(self, value: Position) -> Origin | None:
        """What is stored in its place: the first other value there that is no fill, by the text."""
        for other in self.rules.sets.get(value, []):
            if other != value:
                answer = self.rules.answer(other)
                if isinstance(answer, Origin):
                    return Origin(answer.instruction, "becomes")
        return None

    def own(self, value: Position) -> Origin | None:
        """A strong name of its own; in a fusion first what is inside.

        Decision: a copy takes the name of the fill behind it before its own, and so does what is
        nameless; the constant's own name does not count, constants are shared.
        """
        x = self.ways.at(value)
        if x.opcode not in MOVES and (first := self.first_name(value)) is not None:
            return first
        held = self.ways.values.held
        for node in self.ways.fill(value)[1:]:
            behind = self.ways.at(node)
            if behind.opcode in (*MOVES, "constant") or held.get(node) != node:
                continue
            if (first := self.first_name(node)) is not None:
                return Origin(first.instruction, "moved")
        return Origin(x.name, "own") if self.names.is_strong(x) else None

    def first_name(self, value: Position) -> Origin | None:
        """The strong name inside the fusion, else the instruction's own."""
        x = self.ways.at(value)
        if x.opcode == "fusion":
            inner = self.rules.fusions.behind(self.ways.inner(x, value[1]))
            named_and_single = self.names.is_strong(x) and not value[1]
            if inner is not None and inner.opcode != "constant":
                return Origin(inner.name, "own" if named_and_single else "fused")
        return Origin(x.name, "own") if self.names.is_strong(x) else None

    def read(self, value: Position) -> Origin | None:
        """The first strong name that reads it, in the order of the text.

        Decision: copies and conversions of it are read on; what reads them comes after what
        reads the value itself. A copy is no reader, it has the name of the reader behind.
        """
        order = self.rules.order
        todo, seen = [value], {value}
        while todo:
            current = todo.pop(0)
            uses = self.rules.uses.get(current, set())
            following: list[Position] = []
            for user, number, _ in sorted(uses, key=lambda use: (order[use[0]], use[1:])):
                x = self.rules.module.instructions[user]
                if (reader := self.reader(x, number)) is not None:
                    return Origin(reader.name, "read")
                if x.opcode in (*MOVES, *RESHAPED) and number == 0:
                    following.append((x.name, (0,) if x.opcode == "copy-start" else ()))
            todo += [node for node in following if node not in seen]
            seen |= set(following)
        return None

    def read_on(self, value: Position) -> Origin | None:
        """Who reads an iota, or what its nameless readers make of it, and so on; else none."""
        x = self.ways.at(value)
        made = self.ways.at(self.ways.inner(x, value[1])) if x.opcode == "fusion" else x
        if made.opcode != "iota":
            return None
        level, seen = {value}, {value}
        while level:
            readers = [found for found in map(self.read, level) if found is not None]
            if readers:
                return min(readers, key=lambda found: self.rules.order[found.instruction])
            users = {user for node in level for user, *_ in self.rules.uses.get(node, ())}
            level = {node for node in self.rules.uses if node[0] in users} - seen
            seen |= level
        return None

    def reader(self, x: Instruction, number: int) -> Instruction | None:
        """The strong name of a reader; in a fusion first of what reads the parameter."""
        if x.opcode == "fusion":
            fused = self.ways.computation(x, "calls")
            inside = self.inner_reader(fused.name, fused.parameter(number).name)
            if inside is not None:
                return inside
        return x if self.names.is_strong(x) and x.opcode not in (*MOVES, "bitcast") else None

    def inner_reader(self, computation: str, name: str) -> Instruction | None:
        """The first strong name in a fused computation that reads a parameter, level by level.

        Decision: a nested fusion counts as one instruction.
        """
        instructions = self.rules.module.computations[computation].instructions
        level, seen = {name}, {name}
        while level:
            readers = [x for x in instructions if level & set(x.operands)]
            for x in readers:
                if self.names.is_strong(x):
                    return x
            level = {x.name for x in readers} - seen
            seen |= level
        return None
