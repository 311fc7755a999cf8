"""Who owns each value of a module: the rules of attribution, one function a rule, slow.

`origins(text)` says for every array value which instruction's result it holds, and by which rule
that was found. The engine of `memhouse` works this out on columns; tests compare both.

Decisions where the rules leave a choice stand at their place, marked "Decision".
"""

from .plain_answers import CYCLE, FILL, Answer, Origin, Way, first_of, via
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


def origins(text: str) -> dict[Position, Origin | None]:
    """The origin of every array value; none if nothing owns it."""
    rules = Rules(Ways(text))
    return {value: rules.origin(value) for value in rules.ways.array_values()}


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
        x = self.ways.at(value)
        if x.opcode == "constant":
            return Origin(x.name, "own") if self.names.is_strong(x) else None
        answer = self.answer(value)
        if answer == FILL:
            return self.fills.settle(value)
        if isinstance(answer, Origin):
            return answer
        return self.weak(x)

    def answer(self, value: Position) -> Answer:
        """What the rules say of a value, before fills are settled; worked out once."""
        if value not in self.known:
            self.known[value] = self.go(value, frozenset())
        return self.known[value]

    def weak(self, x: Instruction) -> Origin | None:
        """A wrapper's or a joined name, if there is one.

        Decision: also for the opcodes that never own (a while's `…/while`), as the last resort.
        """
        return Origin(x.name, "weak") if self.names.is_second_best(x) else None

    # The table, row by row.

    def go(self, node: Position, way: Way) -> Answer:
        """The origin of what a node holds."""
        node = self.ways.settled(node)
        if node in way:
            return CYCLE
        way = way | {node}
        x = self.ways.at(node)
        if self.ways.is_argument(node):
            return Origin(x.name, "argument")
        if self.ways.loop(node) is not None:
            return self.of_loop(node, way)
        if (operand := self.ways.passed_in(node)) is not None:
            return self.go(operand, way)
        if x.opcode == "conditional":
            return self.of_conditional(node, way)
        if (back := self.ways.moved(node)) is not None:
            return self.of_move(x, back, way)
        if self.ways.is_fill(node):
            return FILL
        if (update := self.ways.update(node)) is not None:
            return self.of_update(node, update, way)
        if (part := self.ways.slice(node)) is not None:
            return self.of_slice(node, part, way)
        if x.opcode in GATHERS:
            return self.of_gather(node, way)
        if x.opcode in REDUCTIONS:
            return self.of_reduction(node, way)
        if x.opcode == "fusion":
            return self.fusions.go(node, way)
        return self.of_anything_else(x, way)

    def of_loop(self, node: Position, way: Way) -> Answer:
        """What the body computes for it; if nothing, what the loop starts with."""
        loop = self.ways.loop(node)
        assert loop is not None
        body = self.module.computations[attribute_names(loop, "body")[0]]
        answer = self.go((body.root.name, node[1]), way)
        # An answer that is the node itself came back to it.
        if not isinstance(answer, Origin):
            answer = self.go((loop.operands[0], node[1]), way)
        return via(answer, "loop")

    def of_conditional(self, node: Position, way: Way) -> Answer:
        """The first branch that computes it, else the first that hands something through."""
        x = self.ways.at(node)
        answers = []
        for name in branches(x):
            answer = self.go((self.module.computations[name].root.name, node[1]), way)
            if isinstance(answer, Origin) and self.lies_in(answer.instruction, name):
                return via(answer, "loop")
            answers.append(answer)
        return via(first_of(answers), "loop")

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
        """What is moved; the move's own name only if the way back finds nothing."""
        answer = via(self.go(back, way), "moved")
        if answer is None and self.names.is_strong(x):
            return Origin(x.name, "own")
        return self.argument_of(x) if answer is None else answer

    def of_update(self, node: Position, update: Instruction, way: Way) -> Answer:
        """A cache is its argument; a stack is what is stacked; else the update itself."""
        old: Position = (update.operands[0], ())
        is_phi = self.ways.is_phi(old)
        rule = "loop" if is_phi else "moved"
        base = self.ways.initial(old)
        if self.ways.is_argument(base):
            return Origin(base[0], rule)
        if is_phi or self.ways.is_fill(base):
            answer = via(self.go((update.operands[1], ()), way), rule)
            if isinstance(answer, Origin):
                return answer
        return self.own_name(node, update) or via(self.go(old, way), "moved")

    def own_name(self, node: Position, inner: Instruction) -> Origin | None:
        """The strong name of the instruction inside a fusion, else of the fusion.

        Decision: as for other fusions, `own` if the fusion is named and has one result.
        """
        x = self.ways.at(node)
        named_and_single = self.names.is_strong(x) and not node[1]
        if self.names.is_strong(inner):
            return Origin(inner.name, "own" if x is inner or named_and_single else "fused")
        return Origin(x.name, "own") if self.names.is_strong(x) else None

    def of_slice(self, node: Position, part: Instruction, way: Way) -> Answer:
        """A scan's slice is what it is a slice of; so is one without a name.

        Decision: the rule is `loop` if a loop hands the whole in, else `moved`.
        """
        whole: Position = (part.operands[0], ())
        carried = self.ways.is_carried(whole)
        own = self.own_name(node, part)
        if carried or own is None:
            answer = via(self.go(whole, way), "loop" if carried else "moved")
            # Decision: a slice of a constant, or of nothing that has an owner, keeps its name.
            return own if own and (answer is None or self.is_constant(answer)) else answer
        return own

    def is_constant(self, answer: Answer) -> bool:
        """Whether an answer is a constant."""
        if not isinstance(answer, Origin):
            return answer == FILL
        return self.module.instructions[answer.instruction].opcode == "constant"

    def of_gather(self, node: Position, way: Way) -> Answer:
        """A gathered weight is its argument."""
        operand = self.operand_of(node)
        base = self.ways.gathered(operand)
        if self.ways.is_argument(base):
            return Origin(base[0], "argument")
        x = self.ways.at(node)
        if self.names.is_strong(x):
            return Origin(x.name, "own")
        return via(self.go(operand, way), "moved")

    def of_reduction(self, node: Position, way: Way) -> Answer:
        """A sum over devices has a name of its own only if it sums one thing.

        Decision: what is summed is reported as `moved`; the own name is kept if nothing is found.
        """
        x = self.ways.at(node)
        if self.names.is_strong(x) and len(x.operands) == 1:
            return Origin(x.name, "own")
        answer = via(self.go(self.operand_of(node), way), "moved")
        if answer is None and self.names.is_strong(x):
            return Origin(x.name, "own")
        return answer

    def operand_of(self, node: Position) -> Position:
        """The operand that a collective's element belongs to; of one operand, that one."""
        x, index = self.ways.at(node), node[1]
        # all-gather-start and collective-permute-start put their results at {1}.
        two_parts = x.opcode in ("all-gather-start", "collective-permute-start")
        inside = index[1:] if two_parts else index
        number = inside[0] if inside and len(x.operands) > 1 else 0
        return x.operands[min(number, len(x.operands) - 1)], ()

    def of_anything_else(self, x: Instruction, way: Way) -> Answer:
        """A strong name owns; what only changes the form is its operand; else a guess."""
        if self.names.is_strong(x):
            return Origin(x.name, "own")
        if (argument := self.argument_of(x)) is not None:
            return argument
        if x.opcode in ("constant", "parameter"):
            return None
        if x.opcode in CHANGED_IN_FORM:
            answer = via(self.go((x.operands[0], ()), way), "moved")
        else:
            answer = self.of_operands(x, way)
        return answer if answer is not None else self.weak(x)

    def argument_of(self, x: Instruction) -> Origin | None:
        """The parameter whose name an instruction carries."""
        if self.names.kind(x) != "argument":
            return None
        return Origin(self.names.arguments[self.names.op_name(x)], "moved")

    def of_operands(self, x: Instruction, way: Way) -> Answer:
        """The largest operand that has an origin and is no fill.

        Decision: an operand that is a tuple counts by its largest leaf.
        """
        answers = []
        for name in self.ways.sized(x.operands):
            leaf = self.ways.largest_leaf(self.module.instructions[name])
            answers.append(self.go((name, leaf), way))
            if isinstance(answers[-1], Origin):
                break
        return via(first_of(answers), "operand")
