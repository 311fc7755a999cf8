"""Who owns a fill: what it becomes, its own name, who reads it."""

from typing import TYPE_CHECKING

from .plain_answers import Origin
from .plain_text import Instruction, Position, attribute_names
from .plain_ways import RESHAPED

if TYPE_CHECKING:
    from .plain_origins import Rules


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
            or self.weak_behind(value)
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
        """A strong name of its own; in a fusion first the inner root's.

        Decision: what only moves a fill takes the name of the fill behind it before its own, and
        so does a nameless one; the constant's own name does not count, constants are shared.
        """
        x = self.ways.at(value)
        moves = self.ways.moved(value) is not None
        first = None if moves else self.first_name(value)
        if first is not None:
            return first
        for node in self.ways.fill(value)[1:]:
            found = self.ways.at(node)
            names_itself = self.names.is_strong(found) and self.ways.moved(node) is None
            if found.opcode != "constant" and names_itself:
                return Origin(found.name, "moved")
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

        Decision: nameless moves and conversions of it are read on; what reads them comes after
        what reads the value itself.
        """
        order = self.rules.order
        todo, seen = [value], {value}
        while todo:
            current = todo.pop(0)
            uses = self.rules.uses.get(current, set())
            for user, number, _ in sorted(uses, key=lambda use: (order[use[0]], use[1:])):
                x = self.rules.module.instructions[user]
                if (reader := self.reader(x, number)) is not None:
                    return Origin(reader.name, "read")
                following: Position = (x.name, ())
                if x.opcode == "copy-start":
                    following = (x.name, (0,))
                if following not in seen and (x.opcode in RESHAPED or self.ways.moved(following)):
                    seen.add(following)
                    todo.append(self.ways.values.held.get(following, following))
        return None

    def reader(self, x: Instruction, number: int) -> Instruction | None:
        """The strong name of a reader; in a fusion first of what reads the parameter."""
        if x.opcode == "fusion":
            fused = self.ways.computation(x, "calls")
            inside = self.inner_reader(fused.name, fused.parameter(number).name)
            if inside is not None:
                return inside
        if self.ways.moved((x.name, ())) is not None or x.opcode in RESHAPED:
            return None if x.opcode not in RESHAPED or not self.names.is_strong(x) else x
        return x if self.names.is_strong(x) else None

    def inner_reader(self, computation: str, name: str) -> Instruction | None:
        """The first strong name in a fused computation that reads a parameter, level by level."""
        instructions = self.rules.module.computations[computation].instructions
        level, seen = [name], {name}
        while level:
            readers = [x for x in instructions if set(level) & set(x.operands)]
            for x in readers:
                if x.opcode == "fusion":
                    for number, operand in enumerate(x.operands):
                        nested = attribute_names(x, "calls")[0]
                        parameter = self.ways.computation(x, "calls").parameter(number)
                        if operand in level:
                            inside = self.inner_reader(nested, parameter.name)
                            if inside is not None:
                                return inside
                if self.names.is_strong(x):
                    return x
            level = [x.name for x in readers if x.name not in seen]
            seen |= set(level)
        return None

    def weak_behind(self, value: Position) -> Origin | None:
        """A wrapper's or a joined name on the way back to the constant."""
        for node in self.ways.fill(value):
            x = self.ways.at(node)
            if x.opcode != "constant" and self.names.is_second_best(x):
                return Origin(x.name, "weak")
        return None
