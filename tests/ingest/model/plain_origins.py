"""Who owns each value of a module: the rules of attribution, one function a rule, slow.

`origins(text)` says for every array value which instruction's result it holds, and by which rule
that was found. The engine of `memhouse` works this out on columns; tests compare both.

Decisions where the rules leave a choice stand at their place, marked "Decision".
"""

from .plain_answers import (
    LOOP,
    OTHER,
    STUCK,
    Answer,
    Circle,
    Fill,
    Origin,
    Way,
    circle,
    via,
)
from .plain_concatenations import nearly_all, piece
from .plain_fills import Fills
from .plain_fusions import Fusions
from .plain_rules import alias_sets, find_uses
from .plain_text import (
    Instruction,
    Module,
    Position,
    attribute_names,
    branches,
)
from .plain_ways import Ways

GATHERS = (
    *("all-gather", "all-gather-start", "all-to-all", "collective-broadcast"),
    *("collective-permute", "collective-permute-start", "ragged-all-to-all"),
)
REDUCTIONS = ("all-reduce", "all-reduce-start", "reduce-scatter")
CHANGED_IN_FORM = (
    *("convert", "transpose", "reshape", "slice", "reverse", "pad", "broadcast"),
    *("reduce-precision", "dynamic-slice"),
)


class Rules:
    """The rules on one module."""

    def __init__(self, ways: Ways) -> None:
        self.ways, self.names = ways, ways.names
        self.module: Module = ways.module
        self.fusions, self.fills = Fusions(self), Fills(self)
        self.uses = find_uses(self.module, ways.values)
        order = {name: at for at, name in enumerate(self.module.instructions)}
        self.sets: dict[Position, list[Position]] = {}
        for members in alias_sets(self.module, ways.values):
            ordered = sorted(members, key=lambda value: (order[value[0]], value[1]))
            self.sets |= dict.fromkeys(members, ordered)
        self.order = order
        self.known: dict[Position, Answer] = {}

    def origin(self, value: Position) -> Origin | None:
        """The origin of a value, fills settled."""
        answer = self.answer(value)
        if not isinstance(answer, Fill):
            return answer if isinstance(answer, Origin) else self.fills.read_on(value)
        if self.ways.is_fill(value):
            return self.fills.settle(value)
        # What leads to a fill is what its own buffer becomes, else what the fill is.
        becomes = self.fills.becomes(value)
        found = becomes or self.fills.settle(answer.value)
        if found is None:
            return None
        is_weak = found.rule == "weak"
        return Origin(found.instruction, "weak" if is_weak else answer.rule)

    def answer(self, value: Position) -> Answer:
        """What the rules say of a value, before fills are settled; worked out once."""
        if value not in self.known:
            self.known[value] = self.go(value, {})
        return self.known[value]

    # The table, row by row.

    def go(self, node: Position, way: Way) -> Answer:
        """The origin of what a node holds."""
        node = self.ways.settled(node)
        if node in way:
            return circle(node, way)
        way = way | {node: STUCK}
        x = self.ways.at(node)
        if self.ways.is_argument(node):
            return Origin(x.name, "argument")
        if self.ways.is_context(node):
            return None
        if self.ways.loop(node) is not None:
            return self.of_loop(node, way)
        if (operand := self.ways.passed_in(node)) is not None:
            return self.go(operand, way)
        if x.opcode == "conditional":
            return self.of_conditional(node, way)
        if self.ways.is_fill(node):
            return Fill(self.ways.values.held.get(node, node))
        if (back := self.ways.moved(node)) is not None:
            return self.of_move(x, back, way)
        if (update := self.ways.update(node)) is not None:
            return self.of_update(node, update, way)
        if (whole := self.ways.scanned(node)) is not None:
            return self.first_of(x, [whole], way, "loop")
        if x.opcode in GATHERS:
            return self.of_gather(node, way)
        if x.opcode in REDUCTIONS:
            return self.of_reduction(node, way)
        if x.opcode == "fusion":
            return self.fusions.go(node, way)
        return self.of_anything_else(x, way)

    def first_of(self, x: Instruction, nodes: list[Position], way: Way, rule: str) -> Answer:
        """What the first of these nodes says that says something; else the instruction's name.

        A fill counts only from the last one.
        """
        here = next(reversed(way))
        is_loop = self.ways.loop(here) is not None
        for number, node in enumerate(nodes):
            is_last = number == len(nodes) - 1
            has_more = not is_last or self.by_name(x) is not None
            way = way | {here: (LOOP if is_loop else OTHER) if has_more else STUCK}
            answer = self.go(node, way)
            if isinstance(answer, Circle) and answer.leaver != here:
                return answer
            if isinstance(answer, Origin) or (is_last and isinstance(answer, Fill)):
                return via(answer, rule)
        return self.by_name(x)

    def by_name(self, x: Instruction) -> Origin | None:
        """What an instruction's own name says: what it computes, an argument, or little.

        Decision: a wrapper's name is the last resort of the opcodes that never own, too.
        """
        if self.names.is_strong(x):
            return Origin(x.name, "own")
        return self.argument_of(x) or self.weak(x)

    def weak(self, x: Instruction) -> Origin | None:
        """A wrapper's or a joined name, if there is one."""
        return Origin(x.name, "weak") if self.names.is_second_best(x) else None

    def argument_of(self, x: Instruction) -> Origin | None:
        """The parameter whose name an instruction carries.

        Decision: constants have no argument's name: XLA makes them of shapes and indices.
        """
        if x.opcode == "constant" or self.names.kind(x) != "argument":
            return None
        return Origin(self.names.arguments[self.names.op_name(x)], "moved")

    def of_loop(self, node: Position, way: Way) -> Answer:
        """What the body computes for it; if nothing, what the loop starts with."""
        loop = self.ways.loop(node)
        assert loop is not None
        body = self.module.computations[attribute_names(loop, "body")[0]]
        computed, entering = (body.root.name, node[1]), (loop.operands[0], node[1])
        return self.first_of(self.ways.at(node), [computed, entering], way, "loop")

    def of_conditional(self, node: Position, way: Way) -> Answer:
        """The first branch that computes it, else the first that hands something through.

        Decision: a branch computes what it neither gets nor only copies or lays out anew. If
        all branches give a fill, it is the first one's.
        """
        x = self.ways.at(node)
        results: dict[bool, list[Position]] = {True: [], False: []}
        every = []
        for name in branches(x):
            result = (self.module.computations[name].root.name, node[1])
            begin = self.ways.through_moves(result)
            results[self.lies_in(begin[0], name)].append(result)
            every.append(result)
        return self.first_of(x, [*results[True], *results[False], every[0]], way, "loop")

    def lies_in(self, instruction: str, computation: str) -> bool:
        """Whether an instruction is in a computation or in what that calls."""
        name = self.module.instructions[instruction].computation
        seen = set()
        while name != computation and name not in seen:
            seen.add(name)
            caller = self.ways.caller(name)
            if caller is None:
                return False
            name = caller.computation
        return name == computation

    def of_move(self, x: Instruction, back: Position, way: Way) -> Answer:
        """What is moved; a copy's own name only if the way back finds nothing."""
        if x.opcode in ("copy", "copy-start"):
            return self.first_of(x, [back], way, "moved")
        return self.go(back, way)

    def of_update(self, node: Position, update: Instruction, way: Way) -> Answer:
        """A cache is its argument; a stack is what is stacked; else the update itself.

        Decision: the content at first is followed through slices and their joining again too,
        since XLA pipelines collectives so.
        """
        x = self.ways.at(node)
        old: Position = (update.operands[0], ())
        is_phi = self.ways.is_phi(old)
        rule = "loop" if is_phi else "moved"
        base = self.ways.initial(old)
        if self.ways.is_argument(base):
            return Origin(base[0], rule)
        if is_phi or self.ways.is_fill(base):
            written = self.held((update.operands[1], ()))
            if isinstance(written, Origin):
                return via(written, rule)
            return self.first_of(x, [written], way, rule) if written else self.by_name(x)
        if self.names.is_strong(update) and update is not x:
            named_and_single = self.names.is_strong(x) and not node[1]
            return Origin(update.name, "own" if named_and_single else "fused")
        if self.names.is_strong(x):
            return Origin(x.name, "own")
        outside = self.ways.target(old)
        return self.by_name(x) if outside is None else self.first_of(x, [outside], way, "moved")

    def held(self, node: Position) -> Origin | Position | None:
        """What is written: inside a fusion by the rules for its elements, else the value."""
        node = self.fusions.moved(node)
        if not self.ways.is_fused(node):
            return node
        return self.ways.scanned(node) or self.fusions.element(node)

    def of_gather(self, node: Position, way: Way) -> Answer:
        """A gathered weight is its argument."""
        x, operand = self.ways.at(node), self.operand_of(node)
        base = None if operand is None else self.ways.gathered(operand)
        if base is not None and self.ways.is_argument(base):
            return Origin(base[0], "argument")
        if self.names.is_strong(x) or operand is None:
            return self.by_name(x)
        return self.first_of(x, [operand], way, "moved")

    def of_reduction(self, node: Position, way: Way) -> Answer:
        """A sum over devices has a name of its own only if it sums one thing.

        Decision: what is summed is reported as `moved`; the own name is kept if nothing is found.
        """
        x, operand = self.ways.at(node), self.operand_of(node)
        if (self.names.is_strong(x) and len(x.operands) == 1) or operand is None:
            return self.by_name(x)
        return self.first_of(x, [operand], way, "moved")

    def operand_of(self, node: Position) -> Position | None:
        """The operand that a collective's element belongs to."""
        x, index = self.ways.at(node), node[1]
        # These put their results at {1}.
        two_parts = x.opcode in ("all-gather-start", "collective-permute-start")
        inside = index[1:] if two_parts else index
        number = inside[0] if inside else 0
        return (x.operands[number], ()) if number < len(x.operands) else None

    def of_anything_else(self, x: Instruction, way: Way) -> Answer:
        """A strong name owns; what only changes the form is its operand; else a guess.

        Decision: ConcatBitcast, by which XLA joins slices again, and a concatenation that is
        nearly one operand are moves.
        """
        if self.names.is_strong(x) or self.argument_of(x) is not None:
            return self.by_name(x)
        if x.opcode in ("constant", "parameter"):
            return self.by_name(x)
        whole = nearly_all(self.ways, x)
        if whole is None and (x.opcode in CHANGED_IN_FORM or self.ways.is_join(x)) and x.operands:
            whole = (x.operands[0], ())
            whole = piece(self.ways, x, whole) or whole
        if whole is not None:
            return self.first_of(x, [whole], way, "moved")
        return self.of_operands(x, way) or self.by_name(x)

    def of_operands(self, x: Instruction, way: Way) -> Answer:
        """The largest operand that has an origin and is no fill.

        Decision: an operand that is a tuple says nothing.
        """
        here = next(reversed(way))
        way = way | {here: OTHER}
        for name in self.ways.sized(x.operands):
            if not isinstance(self.module.instructions[name].shape, str):
                continue
            answer = via(self.go((name, ()), way), "operand")
            if isinstance(answer, Circle) and answer.leaver != here:
                return answer
            if isinstance(answer, Origin):
                return answer
        return None
