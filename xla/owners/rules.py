"""The rules for owners, opcode by opcode: the values that a value may share its owner with."""

from typing import Final

from ..named_program import CONVERTS_OR_RESHAPES, COPIES, GATHERS
from ..program import NONE
from ..values import Values
from .buffers import Buffers, Update
from .candidates import ARGUMENT, FUSED, LOOP, MOVED, OPERAND, OWN, WEAK, Claim
from .concatenations import Concatenations
from .fills import Fills
from .fusions import Fusions
from .loops import LoopBodies, branch_results, find_loop_phis, is_inside

# The result has elements of the first operand and nothing new but padding.
_CHANGES_SHAPE_OR_TYPE: Final = CONVERTS_OR_RESHAPES | {
    *("slice", "reverse", "pad", "broadcast", "reduce-precision", "dynamic-slice")
}
_REDUCES: Final = ("all-reduce", "all-reduce-start", "reduce-scatter")


class OwnerRules:
    """The rules for the owners of values. The first rule that applies to a value is the only one.

    An opcode without a rule follows the last one: its name owns the result, or else the owner of
    the largest operand is the guess.
    """

    def __init__(self, values: Values) -> None:
        self.values, self.named = values, values.named
        self.fusions = Fusions(values.named)
        self.fills = Fills(values, self.fusions)
        self.loop_phis = find_loop_phis(values)
        self.buffers = Buffers(values, self.fusions, self.fills, self.loop_phis)
        self._bodies = LoopBodies(values.named)
        self._concatenations = Concatenations(values, self.fusions)

    def claim(self, value: int) -> Claim:
        """The owner of a value, or the values that it may share the owner with."""
        values, named = self.values, self.named
        row, opcode = values.row[value], values.opcode(value)
        if values.array[value] is None or values.is_context(value):
            return Claim()
        if self.fills.is_fill[value]:
            return Claim(is_fill=True)
        if named.is_argument[row]:
            return Claim(owner=row, owner_rule=ARGUMENT)
        claim = self._claim_by_name(row)
        if value in self.loop_phis:
            self._loop(claim, value)
        elif named.flow.is_phi[value]:
            self._conditional(claim, value)
        elif opcode in COPIES:
            # A copy carries its reader's name, so that the name is the last resort.
            claim.follow(values.operand(value, 0))
            claim.rule = MOVED
        elif value in self.buffers.updates:
            self._update(claim, value, self.buffers.updates[value])
        elif (stack := self._sliced_stack(value)) != NONE:
            # A scan slices its stacked inputs: each slice is owned by the stack's owner.
            claim.follow(stack)
            claim.rule = LOOP
        elif opcode in GATHERS:
            self._gather(claim, value)
        elif opcode in _REDUCES:
            self._reduction(claim, value)
        elif opcode == "fusion":
            self._fusion(claim, value)
        else:
            self._other(claim, value)
        return claim

    def _claim_by_name(self, row: int) -> Claim:
        """A claim without candidates: the instruction's own name, strong, an argument's or weak."""
        if self.named.owns[row]:
            return Claim(owner=row, owner_rule=OWN)
        argument = self.named.named_argument(row)
        if argument != NONE:
            return Claim(owner=argument, owner_rule=MOVED)
        if self.named.has_weak_name(row):
            return Claim(owner=row, owner_rule=WEAK)
        return Claim()

    def _loop(self, claim: Claim, value: int) -> None:
        """The owner of what the body computes, else of what enters the loop."""
        inputs = self.loop_phis[value]
        claim.follow(inputs.computed, may_be_fill=False)
        claim.follow(inputs.entering)
        claim.rule, claim.is_loop = LOOP, True

    def _conditional(self, claim: Claim, value: int) -> None:
        """The owner of the first branch that computes its result, else of the first branch.

        A branch does not compute what it is passed or only copies. If all branches yield a fill,
        the first branch's fill is the candidate.
        """
        claim.rule = LOOP
        results = branch_results(self.values, value)
        passed = []
        for branch, result in results:
            source = self.buffers.relaid_from[result]
            if is_inside(self.named, self.values.row[source], branch):
                claim.follow(result, may_be_fill=False)
            else:
                passed.append(result)
        for result in passed:
            claim.follow(result, may_be_fill=False)
        if results:
            claim.follow(results[0][1])

    def _update(self, claim: Claim, value: int, update: Update) -> None:
        """A cache that is updated in place is the argument's; a stack is that of what is stacked.

        HLO: `cache = parameter(0)`, `dynamic-update-slice(cache, new, …)` is owned by `cache`;
        `stack = broadcast(zero)`, `dynamic-update-slice(stack, layer, …)` by `layer`'s owner.
        """
        named, buffers = self.named, self.buffers
        row, first = self.values.row[value], buffers.begins_as(update)
        is_carried = (
            update.target != NONE and buffers.relaid_from[update.target] in self.loop_phis
        )
        rule = LOOP if is_carried else MOVED
        if first != NONE and named.is_argument[self.values.row[first]]:
            claim.own(self.values.row[first], rule)
        elif is_carried or buffers.begins_filled(update):
            self._follow_instruction(claim, self.fusions.moved[update.written], rule)
        elif named.owns[update.row] and named.is_fused[update.row]:
            is_its_own = named.owns[row] and self.values.is_single(value)
            claim.own(update.row, OWN if is_its_own else FUSED)
        elif not named.owns[row]:
            claim.follow(update.target)
            claim.rule = MOVED

    def _sliced_stack(self, value: int) -> int:
        """The input of a loop's body that a value is a slice of, or NONE."""
        if self.values.opcode(value) == "fusion":
            return self._stack_of_fused_slice(self.fusions.root(self.values, value))
        if self.values.opcode(value) != "dynamic-slice":
            return NONE
        operand = self.named.program.operand(self.values.row[value], 0)
        return self._loop_input(operand)

    def _stack_of_fused_slice(self, row: int) -> int:
        """The input of a loop's body that a fused instruction takes a slice of, or NONE."""
        program, fusions = self.named.program, self.fusions
        root = fusions.sliced_from[row]
        if program.opcode[root] != "dynamic-slice":
            return NONE
        operand = self.named.outer_operand(fusions.sliced_from[program.operand(root, 0)])
        return NONE if operand == NONE else self._loop_input(operand)

    def _loop_input(self, row: int) -> int:
        """The value of an instruction that is an input of a loop's body, else NONE.

        A constant is none: its name says less than that of a slice of it.
        """
        if not self._bodies.is_input(row):
            return NONE
        value = self.named.value_of(row)
        return NONE if value == NONE or self.values.opcode(value) == "constant" else value

    def _gather(self, claim: Claim, value: int) -> None:
        """A gathered argument is the argument; another array has the collective's name."""
        values, row = self.values, self.values.row[value]
        source = values.operand(value, values.element(value))
        first = NONE if source == NONE else values.row[self.buffers.rearranged_from[source]]
        if first != NONE and self.named.is_argument[first]:
            claim.own(first, ARGUMENT)
        elif not self.named.owns[row]:
            claim.follow(source)
            claim.rule = MOVED

    def _reduction(self, claim: Claim, value: int) -> None:
        """The owner of the operand, unless one name is that of one array."""
        values, row = self.values, self.values.row[value]
        if not self.named.owns[row] or len(self.named.program.operands[row]) > 1:
            claim.follow(values.operand(value, values.element(value)))
            claim.rule = MOVED

    def _fusion(self, claim: Claim, value: int) -> None:
        """The owner is the first named instruction behind the root that computes the result."""
        named, fusions, row = self.named, self.fusions, self.values.row[value]
        is_its_own = named.owns[row] and self.values.is_single(value)
        root = fusions.root(self.values, value)
        computing = fusions.computing[root]
        if named.owns[computing]:
            claim.own(computing, OWN if is_its_own else FUSED)
        elif not is_its_own:
            self._follow_instruction(claim, root, FUSED)
            if fusions.outer_value(fusions.some_elements[root]) != NONE:
                return
            if claim.owner == NONE:
                claim.own(fusions.nearest_weak_name(root), WEAK)
            if claim.owner == NONE or claim.owner_rule == WEAK:
                self._guess_from_operands(claim, row)

    def _follow_instruction(self, claim: Claim, row: int, rule: str) -> None:
        """Give a value the owner of an instruction, fused or not.

        If the instruction is fused, the nearest name inside of the fusion owns, unless the
        instruction only moves an operand of the fusion: then that operand is the candidate.
        """
        named, fusions = self.named, self.fusions
        claim.rule = rule
        if not named.is_fused[row]:
            claim.follow(named.value_of(row))
            return
        operand = self._stack_of_fused_slice(row)
        if operand == NONE and named.owns[fusions.computing[row]]:
            claim.own(fusions.computing[row], rule)
            return
        if operand == NONE:
            operand = fusions.outer_value(fusions.some_elements[row])
            piece = self._concatenations.piece(fusions.same_elements[row], operand)
            operand = operand if piece == NONE else piece
        claim.follow(operand)
        if operand == NONE and (nearest := fusions.nearest_name(row)) != NONE:
            claim.own(nearest, rule)

    def _other(self, claim: Claim, value: int) -> None:
        """A name owns; without one, a changed shape or type is its operand's, else a guess."""
        named, program, row = self.named, self.named.program, self.values.row[value]
        if claim.owner != NONE and claim.owner_rule != WEAK:
            return
        source = self._concatenations.nearly_all(row)
        # ConcatBitcast joins the pieces of one array again.
        is_join = program.custom_call_target.get(row) == "ConcatBitcast"
        is_moved = is_join or program.opcode[row] in _CHANGES_SHAPE_OR_TYPE
        if is_moved and source == NONE:
            source = self.values.operand(value, 0)
        if is_moved or source != NONE:
            piece = self._concatenations.piece(row, source)
            claim.follow(source if piece == NONE else piece)
            claim.rule = MOVED
        elif program.parameter_number[row] == NONE:
            self._guess_from_operands(claim, row)

    def _guess_from_operands(self, claim: Claim, row: int) -> None:
        """Guess the owner of the largest operand that is no fill."""
        named = self.named
        claim.rule = OPERAND
        operands = named.program.operands[row]
        for operand in sorted(operands, key=lambda row: -named.bytes[row]):
            value = named.value_of(operand)
            is_array = value != NONE and self.values.array[value] is not None
            if is_array and not self.fills.is_fill[value]:
                claim.follow(value, may_be_fill=False)
