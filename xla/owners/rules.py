"""The rules for owners, opcode by opcode: the values that a value may share its owner with."""

from typing import Final

from ..named_program import CONVERTS_OR_RESHAPES, COPIES, GATHERS
from ..program import NONE
from ..values import Values
from .buffers import Buffers, Update
from .candidates import ARGUMENT, FUSED, LOOP, MOVED, OPERAND, OWN, WEAK, Candidates
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
        self.fusions = Fusions(values)
        self.fills = Fills(values, self.fusions)
        self.loop_phis = find_loop_phis(values)
        self.buffers = Buffers(values, self.fusions, self.fills, self.loop_phis)
        self._bodies = LoopBodies(values.named)
        self._concatenations = Concatenations(values, self.fusions)
        self._candidates = Candidates(len(values))

    def find_candidates(self) -> Candidates:
        """The values that each value may share its owner with, and the names that may own it."""
        values = self.values
        for value, array in enumerate(values.array):
            if array is None or self.fills.is_fill[value] or values.is_context(value):
                continue
            row = values.row[value]
            if self.named.is_argument[row]:
                self._candidates.set_owner(value, row, ARGUMENT)
            else:
                self._own_by_name(value, row)
                self._apply_rule(value)
        return self._candidates

    def _apply_rule(self, value: int) -> None:
        opcode = self.values.opcode[value]
        if value in self.loop_phis:
            self._loop(value)
        elif self.named.flow.is_phi[value]:
            self._conditional(value)
        elif opcode in COPIES:
            # A copy carries its reader's name, so that the name is the last resort.
            self._follow(value, self.values.operand(value, 0), MOVED)
        elif value in self.buffers.updates:
            self._update(value, self.buffers.updates[value])
        elif (stack := self._sliced_stack(value)) != NONE:
            # A scan slices its stacked inputs: each slice is owned by the stack's owner.
            self._follow(value, stack, LOOP)
        elif opcode in GATHERS:
            self._gather(value)
        elif opcode in _REDUCES:
            self._reduction(value)
        elif value in self.fusions.root:
            self._fusion(value)
        else:
            self._other(value)

    def _follow(self, value: int, candidate: int, rule: str) -> None:
        self._candidates.follow(value, candidate)
        self._candidates.rule[value] = rule

    def _own_by_name(self, value: int, row: int) -> None:
        """Let an instruction own its result by its name: a strong, an argument's or a weak one."""
        if self.named.owns[row]:
            self._candidates.set_owner(value, row, OWN)
        elif (argument := self.named.named_argument(row)) != NONE:
            self._candidates.set_owner(value, argument, MOVED)
        elif self.named.has_weak_name(row):
            self._candidates.set_owner(value, row, WEAK)

    def _has_good_owner(self, value: int) -> bool:
        """Whether a name owns a value that is not just weak."""
        candidates = self._candidates
        return candidates.owner[value] != NONE and candidates.owner_rule[value] != WEAK

    def _loop(self, value: int) -> None:
        """The owner of the value that the body computes, else of the value that enters the loop."""
        inputs = self.loop_phis[value]
        self._candidates.follow(value, inputs.computed, may_be_fill=False)
        self._follow(value, inputs.entering, LOOP)

    def _conditional(self, value: int) -> None:
        """The owner of the first branch that computes its result, else of the first branch.

        A branch does not compute what it is passed or only copies. If all branches yield a fill,
        the first branch's fill is the candidate.
        """
        results = branch_results(self.values, value)
        passed = []
        for branch, result in results:
            source = self.buffers.relaid_from[result]
            if is_inside(self.named, self.values.row[source], branch):
                self._candidates.follow(value, result, may_be_fill=False)
            else:
                passed.append(result)
        for result in passed:
            self._candidates.follow(value, result, may_be_fill=False)
        if results:
            self._follow(value, results[0][1], LOOP)

    def _update(self, value: int, update: Update) -> None:
        """A cache that is updated in place is the argument's; a stack is its layers' owner's.

        HLO: `cache = parameter(0)`, `dynamic-update-slice(cache, new, …)` is owned by `cache`;
        `stack = broadcast(zero)`, `dynamic-update-slice(stack, layer, …)` by `layer`'s owner.
        """
        named, buffers = self.named, self.buffers
        row, first = self.values.row[value], buffers.begins_as(update)
        is_carried = update.target != NONE and buffers.relaid_from[update.target] in self.loop_phis
        rule = LOOP if is_carried else MOVED
        if first != NONE and named.is_argument[self.values.row[first]]:
            self._candidates.set_owner(value, self.values.row[first], rule)
        elif is_carried or buffers.begins_filled(update):
            self._follow_instruction(value, self.fusions.moved[update.written], rule)
        elif named.owns[update.row] and named.is_fused[update.row]:
            is_its_own = named.owns[row] and self.values.is_single(value)
            self._candidates.set_owner(value, update.row, OWN if is_its_own else FUSED)
        elif not named.owns[row]:
            self._follow(value, update.target, MOVED)

    def _sliced_stack(self, value: int) -> int:
        """The input of a loop's body that a value is a slice of, or NONE."""
        if value in self.fusions.root:
            return self._stack_of_fused_slice(self.fusions.root[value])
        if self.values.opcode[value] != "dynamic-slice":
            return NONE
        operand = self.named.program.operand(self.values.row[value], 0)
        return self._loop_input(operand)

    def _stack_of_fused_slice(self, row: int) -> int:
        """The input of a loop's body that a fused instruction takes a slice of, or NONE."""
        program, fusions = self.named.program, self.fusions
        root = fusions.sliced_from[row]
        if program.opcode[root] != "dynamic-slice":
            return NONE
        operand = self.named.outer_operand.get(fusions.sliced_from[program.operand(root, 0)], NONE)
        return NONE if operand == NONE else self._loop_input(operand)

    def _loop_input(self, row: int) -> int:
        """The value of an instruction that is an input of a loop's body, else NONE.

        A constant is none: its name says less than that of a slice of it.
        """
        if not self._bodies.is_input(row):
            return NONE
        value = self.named.value_of(row)
        return NONE if value == NONE or self.values.opcode[value] == "constant" else value

    def _gather(self, value: int) -> None:
        """A gathered argument is the argument; another array has the collective's name."""
        values, row = self.values, self.values.row[value]
        source = values.operand(value, values.element(value))
        first = NONE if source == NONE else values.row[self.buffers.rearranged_from[source]]
        if first != NONE and self.named.is_argument[first]:
            self._candidates.set_owner(value, first, ARGUMENT)
        elif not self.named.owns[row]:
            self._follow(value, source, MOVED)

    def _reduction(self, value: int) -> None:
        """The owner of the operand, unless one name is that of one array."""
        values, row = self.values, self.values.row[value]
        if not self.named.owns[row] or len(self.named.program.operands[row]) > 1:
            self._follow(value, values.operand(value, values.element(value)), MOVED)

    def _fusion(self, value: int) -> None:
        """The owner is the first named instruction behind the root that computes the result."""
        named, fusions, row = self.named, self.fusions, self.values.row[value]
        is_its_own = named.owns[row] and self.values.is_single(value)
        root = fusions.root[value]
        computing = fusions.computing[root]
        if named.owns[computing]:
            self._candidates.set_owner(value, computing, OWN if is_its_own else FUSED)
        elif not is_its_own:
            self._follow_instruction(value, root, FUSED)
            is_unknown = fusions.outer_value(fusions.some_elements[root]) == NONE
            if is_unknown and not self._has_good_owner(value):
                self._guess_from_operands(value, row)

    def _follow_instruction(self, value: int, row: int, rule: str) -> None:
        """Give a value the owner of an instruction, fused or not.

        If the instruction is fused, the nearest name inside of the fusion owns, unless the
        instruction only moves an operand of the fusion: then that operand is the candidate.
        """
        named, fusions = self.named, self.fusions
        self._candidates.rule[value] = rule
        if not named.is_fused[row]:
            self._candidates.follow(value, named.value_of(row))
            return
        operand = self._stack_of_fused_slice(row)
        if operand == NONE and named.owns[fusions.computing[row]]:
            self._candidates.set_owner(value, fusions.computing[row], rule)
            return
        if operand == NONE:
            operand = fusions.outer_value(fusions.some_elements[row])
            piece = self._concatenations.piece(fusions.same_elements[row], operand)
            operand = operand if piece == NONE else piece
        self._candidates.follow(value, operand)
        if operand == NONE and (nearest := fusions.nearest_name(row)) != NONE:
            self._candidates.set_owner(value, nearest, rule)

    def _other(self, value: int) -> None:
        """A name owns; without one, a changed shape or type is its operand's, else a guess."""
        program, row = self.named.program, self.values.row[value]
        if self._has_good_owner(value):
            return
        source = self._concatenations.nearly_all(row)
        # ConcatBitcast joins the pieces of one array again.
        is_join = program.custom_call_target.get(row) == "ConcatBitcast"
        is_moved = is_join or program.opcode[row] in _CHANGES_SHAPE_OR_TYPE
        if is_moved and source == NONE:
            source = self.values.operand(value, 0)
        if is_moved or source != NONE:
            piece = self._concatenations.piece(row, source)
            self._follow(value, source if piece == NONE else piece, MOVED)
        elif program.parameter_number[row] == NONE:
            self._guess_from_operands(value, row)

    def _guess_from_operands(self, value: int, row: int) -> None:
        """Guess the owner of the largest operand that is no fill."""
        named = self.named
        self._candidates.rule[value] = OPERAND
        operands = named.program.operands[row]
        for operand in sorted(operands, key=lambda row: -named.bytes[row]):
            source = named.value_of(operand)
            is_array = source != NONE and self.values.array[source] is not None
            if is_array and not self.fills.is_fill[source]:
                self._candidates.follow(value, source, may_be_fill=False)
