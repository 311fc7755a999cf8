"""Whose result an element of a fusion holds: the rules of attribution for fusions, (a) to (g)."""

from typing import TYPE_CHECKING

from .plain_answers import Answer, Origin, Way, via
from .plain_text import Instruction, Position
from .plain_ways import RESHAPED

if TYPE_CHECKING:
    from .plain_origins import Rules

FOLLOWED = (*RESHAPED, "bitcast", "copy")
# What makes no result of its own of a fusion's parameter.
PASSED_THROUGH = (*FOLLOWED, "slice", "pad", "broadcast", "dynamic-slice")


class Fusions:
    """The rules for fusions on one module."""

    def __init__(self, rules: "Rules") -> None:
        self.rules, self.ways, self.names = rules, rules.ways, rules.names

    def go(self, node: Position, way: Way) -> Answer:
        """The origin of one result of a fusion."""
        x = self.ways.at(node)
        inner = self.ways.inner(x, node[1])
        named, single = self.names.is_strong(x), not node[1]
        if (owner := self.behind(inner)) is not None:
            return Origin(owner.name, "own" if named and single else "fused")
        if not (named and single):
            operand = self.passed(inner)
            if operand is not None:
                answer = via(self.rules.go(operand, way), "fused")
                if answer is not None:
                    return answer
        else:
            return Origin(x.name, "own")
        if (owner := self.nearest(inner)) is not None:
            return Origin(owner.name, "fused")
        if named:
            return Origin(x.name, "own")
        # Decision: an argument's name on a fusion says more than a guess by size.
        if (argument := self.rules.argument_of(x)) is not None:
            return argument
        answer = self.rules.of_operands(x, way)
        if answer is not None:
            return answer
        return self.rules.weak(x) or self.weak_inside(inner)

    def behind(self, node: Position) -> Instruction | None:
        """(a) The first strong name behind nameless conversions and moves.

        Decision: a nested fusion is looked into first, then its own name counts.
        """
        x = self.ways.at(node)
        if x.opcode == "fusion":
            inside = self.behind(self.ways.inner(x, node[1]))
            return inside or (x if self.names.is_strong(x) else None)
        if self.names.is_strong(x):
            return x
        if x.opcode in FOLLOWED:
            return self.behind((x.operands[0], ()))
        if x.opcode in ("get-tuple-element", "tuple"):
            back = self.ways.moved(node)
            return self.behind(back) if back else None
        return None

    def passed(self, node: Position) -> Position | None:
        """(b) The caller's operand, if a result only moves a fused parameter."""
        fused = self.ways.at(node).computation
        while True:
            x = self.ways.at(node)
            if x.opcode == "parameter":
                operand = self.ways.passed_in(node)
                if operand is None or x.computation == fused:
                    return operand
                node = operand
            elif x.opcode == "fusion":
                node = self.ways.inner(x, node[1])
            elif x.opcode in PASSED_THROUGH and not self.names.is_strong(x):
                node = (x.operands[0], ())
            elif x.opcode in ("get-tuple-element", "tuple"):
                back = self.ways.moved(node)
                if back is None:
                    return None
                node = back
            else:
                return None

    def nearest(self, node: Position) -> Instruction | None:
        """(d) The nearest strong name inside, level by level, the larger first in each.

        Decision: a nested fusion's inner root and operands are one level further.
        """
        level, seen = [node[0]], {node[0]}
        while level:
            for name in level:
                x = self.rules.module.instructions[name]
                if self.names.is_strong(x) and not self.says_nothing(x):
                    return x
            below = [name for at in level for name in self.below(at)]
            fresh = list(dict.fromkeys(name for name in below if name not in seen))
            seen |= set(fresh)
            level = self.ways.sized(fresh)
        return None

    def says_nothing(self, x: Instruction) -> bool:
        """Parameters, constants and broadcast fills own nothing."""
        if x.opcode in ("parameter", "constant"):
            return True
        return x.opcode == "broadcast" and self.ways.is_fill((x.name, ()))

    def below(self, name: str) -> list[str]:
        """What an instruction in a fusion is made of, in the same fusion."""
        x = self.rules.module.instructions[name]
        nested = [self.ways.root(x).name] if x.opcode == "fusion" else []
        return nested + x.operands

    def weak_inside(self, node: Position) -> Origin | None:
        """(g) A wrapper's or a joined name inside, the nearest first."""
        todo, seen = [node[0]], set()
        while todo:
            name = todo.pop(0)
            if name in seen:
                continue
            seen.add(name)
            x = self.rules.module.instructions[name]
            if x.opcode not in ("parameter", "constant") and self.names.is_second_best(x):
                return Origin(x.name, "weak")
            todo += self.below(name)
        return None
