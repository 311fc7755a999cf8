"""Whose result an element of a fusion holds: the rules of attribution for fusions, (a) to (g)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .plain_answers import Answer, Origin, Way
from .plain_concatenations import piece
from .plain_text import Instruction, Position
from .plain_ways import KEPT

if TYPE_CHECKING:
    from .plain_origins import Rules

# What makes no result of its own of a fusion's parameter.
PASSED_THROUGH = (*KEPT, "slice", "pad", "broadcast", "dynamic-slice")


class Fusions:
    """The rules for fusions on one module."""

    def __init__(self, rules: "Rules") -> None:
        self.rules, self.ways, self.names = rules, rules.ways, rules.names

    def go(self, node: Position, way: Way) -> Answer:
        """The origin of one result of a fusion."""
        x = self.ways.at(node)
        inner = self.ways.inner(x, node[1])
        named_and_single = self.names.is_strong(x) and not node[1]
        if (owner := self.behind(inner)) is not None:
            return Origin(owner.name, "own" if named_and_single else "fused")
        if named_and_single:
            return Origin(x.name, "own")
        if (operand := self.passed(inner)) is not None:
            return self.rules.first_of(x, [operand], way, "fused")
        if (owner := self.nearest(inner)) is not None:
            return Origin(owner.name, "fused")
        # Decision: an argument's name on a fusion says more than a guess by size.
        if (name := self.rules.by_name(x)) is not None and name.rule != "weak":
            return name
        return self.rules.of_operands(x, way) or self.rules.weak(x) or self.weak_inside(inner)

    def element(self, inner: Position) -> Origin | Position | None:
        """The origin of what an instruction inside of a fusion gives, or the value it moves."""
        if (owner := self.behind(inner)) is not None:
            return Origin(owner.name, "fused")
        if (operand := self.passed(inner)) is not None:
            return operand
        owner = self.nearest(inner)
        return Origin(owner.name, "fused") if owner else None

    def behind(self, node: Position) -> Instruction | None:
        """(a) The first strong name behind nameless conversions and moves.

        Decision: bitcasts and copies of any name are looked behind, since they have the name of
        what reads them; so are the roots of nested fusions. Of what has been looked behind, the
        last one with a name counts if nothing behind has one; but a fusion of several results
        does not say what one of them is.
        """
        found = None
        moves = ("bitcast", "copy")
        while self.ways.is_fused(node):
            x = self.ways.at(node)
            following: Position | None = None
            if self.names.is_strong(x) and not (x.opcode == "fusion" and node[1]):
                found = x
            if x.opcode == "parameter":
                following = self.ways.passed_in(node)
            elif x.opcode == "get-tuple-element" or (x.opcode == "tuple" and node[1]):
                following = self.ways.moved(node)
            elif x.opcode == "fusion":
                following = self.ways.inner(x, node[1])
            elif x.opcode in moves or (x.opcode in KEPT and self.ways.is_nameless(x)):
                following = (x.operands[0], ())
            if following is None:
                return found
            node = following
        return found

    def moved(self, node: Position) -> Position:
        """Back through moves of any name, and others that keep the elements if nameless."""

        def allowed(x: Instruction) -> bool:
            return x.opcode in ("bitcast", "copy") or self.ways.is_nameless(x)

        return self.ways.inside(node, KEPT, allowed)

    def passed(self, node: Position) -> Position | None:
        """(b) The caller's operand, if a result only moves a fused parameter.

        Decision: a slice out of a concatenation of flat arrays is what it cuts out.
        """
        reached = self.ways.inside(node, PASSED_THROUGH, self.ways.is_nameless)
        if self.ways.is_fused(reached):
            return None
        return piece(self.ways, self.ways.at(self.ways.kept(node)), reached) or reached

    def nearest(self, node: Position) -> Instruction | None:
        """(d) The nearest strong name inside, level by level, the larger operands first.

        Decision: a nameless nested fusion stands for its root; what is found is looked behind.
        """

        def counts(x: Instruction) -> bool:
            if x.opcode == "constant" or not self.names.is_strong(x):
                return False
            return not self.repeats_a_constant((x.name, ()))

        found = self.nearest_of(node, counts)
        return found and self.behind((found.name, ()))

    def nearest_of(
        self, node: Position, counts: Callable[[Instruction], bool]
    ) -> Instruction | None:
        """The nearest instruction inside that counts."""
        level, seen = [node], set()
        while level:
            below: list[Position] = []
            reached = [self.ways.inside(one, (), lambda x: not counts(x)) for one in level]
            for one in reached:
                if self.ways.is_fused(one) and counts(self.ways.at(one)):
                    return self.ways.at(one)
            for one in reached:
                if self.ways.is_fused(one):
                    below += self.below(one)
            level = list(dict.fromkeys(one for one in below if one not in seen))
            seen |= set(level)
        return None

    def repeats_a_constant(self, node: Position) -> bool:
        """Whether a node repeats one number that is a constant in the fusion."""
        end = self.ways.inside(node, (*KEPT, "broadcast"), lambda _: True)
        x = self.ways.at(end)
        is_scalar = isinstance(x.shape, str) and "[]" in x.shape
        return self.ways.is_fused(end) and x.opcode == "constant" and is_scalar

    def below(self, node: Position) -> list[Position]:
        """What an instruction in a fusion is made of, in the same fusion."""
        x = self.ways.at(node)
        if x.opcode == "fusion":
            x = self.ways.root(x)
        found = [(name, ()) for name in self.ways.sized(x.operands)]
        return [one for one in found if self.ways.is_fused(one)]

    def weak_inside(self, node: Position) -> Origin | None:
        """(g) A wrapper's or a joined name inside, the nearest first."""

        def counts(x: Instruction) -> bool:
            return x.opcode not in ("constant", "parameter") and self.names.is_second_best(x)

        found = self.nearest_of(node, counts)
        return Origin(found.name, "weak") if found else None
