"""The rules for owners, opcode by opcode: the values whose owner a value may share."""

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
    """The rules for the owners of values. Only the first rule that applies to a value is used.

    To follow another value is to add it as a candidate. The last rule is that of opcodes without
    one: a name owns the result, otherwise the owner of the largest operand is the guess.
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
        """The values whose owner each value may share, and the fallback owners by name."""
        values = self.values
        for value, array in enumerate(values.array):
            if array is None or self.fills.is_fill[value] or values.is_context(value):
                continue
            row = values.row[value]
            if self.named.is_argument[row]:
                self._candidates.set_fallback_owner(value, row, ARGUMENT)
            else:
                self._own_by_name(value, row)
                self._apply_rule(value)
        return self._candidates

    def _apply_rule(self, value: int) -> None:
        """Add candidates by the first rule that applies; the fallback by name is set already."""
        opcode = self.values.opcode[value]
        if value in self.loop_phis:
            self._follow_loop(value)
        elif self.named.flow.is_phi[value]:
            self._follow_branches(value)
        elif opcode in COPIES:
            # XLA names a copy after its reader, so its operand's owner is preferred to its name.
            self._follow_value(value, self.values.operand(value, 0), MOVED)
        elif value in self.buffers.updates:
            self._follow_update(value, self.buffers.updates[value])
        elif (loop_input := self._sliced_loop_input(value)) != NONE:
            # A scan slices its stacked inputs: each slice has the owner of the stacked array.
            self._follow_value(value, loop_input, LOOP)
        elif opcode in GATHERS:
            self._follow_gather(value)
        elif opcode in _REDUCES:
            self._follow_reduction(value)
        elif value in self.fusions.root_row:
            self._follow_fusion(value)
        else:
            self._follow_operand(value)

    def _follow_value(self, value: int, candidate: int, rule: str) -> None:
        self._candidates.add_candidate(value, candidate)
        self._candidates.rule[value] = rule

    def _own_by_name(self, value: int, row: int) -> None:
        """Let an instruction own its result by its name: a strong, an argument's or a weak one."""
        if self.named.can_be_owner[row]:
            self._candidates.set_fallback_owner(value, row, OWN)
        elif (argument := self.named.named_argument(row)) != NONE:
            self._candidates.set_fallback_owner(value, argument, MOVED)
        elif self.named.has_weak_name(row):
            self._candidates.set_fallback_owner(value, row, WEAK)

    def _has_good_fallback(self, value: int) -> bool:
        """Whether a value has a fallback owner by more than a weak name."""
        candidates = self._candidates
        return candidates.fallback_owner[value] != NONE and candidates.fallback_rule[value] != WEAK

    def _follow_loop(self, value: int) -> None:
        """Follow the value that the body computes, then the value that enters the loop."""
        inputs = self.loop_phis[value]
        self._candidates.add_candidate(value, inputs.computed, may_be_fill=False)
        self._follow_value(value, inputs.entering, LOOP)

    def _follow_branches(self, value: int) -> None:
        """Follow the results of the branches that compute them, then the other branches' results.

        A branch does not compute an operand that it returns or only copies. If all branches return
        a fill, the first branch's fill is the candidate.
        """
        results = branch_results(self.values, value)
        not_computed = []
        for branch, result in results:
            source = self.buffers.before_relayout[result]
            if is_inside(self.named, self.values.row[source], branch):
                self._candidates.add_candidate(value, result, may_be_fill=False)
            else:
                not_computed.append(result)
        for result in not_computed:
            self._candidates.add_candidate(value, result, may_be_fill=False)
        if results:
            self._follow_value(value, results[0][1], LOOP)

    def _follow_update(self, value: int, update: Update) -> None:
        """Let an argument own its updated buffer, and the owner of the layers a stack of layers.

        HLO: `cache = parameter(0)`, `dynamic-update-slice(cache, new, …)` is owned by `cache`;
        `stack = broadcast(zero)`, `dynamic-update-slice(stack, layer, …)` by `layer`'s owner.
        """
        named, buffers = self.named, self.buffers
        row, first_value = self.values.row[value], buffers.first_value(update)
        target = update.target
        is_carried = target != NONE and buffers.before_relayout[target] in self.loop_phis
        rule = LOOP if is_carried else MOVED
        if first_value != NONE and named.is_argument[self.values.row[first_value]]:
            self._candidates.set_fallback_owner(value, self.values.row[first_value], rule)
        elif is_carried or buffers.begins_filled(update):
            self._follow_row(value, self.fusions.moved[update.written], rule)
        elif named.can_be_owner[update.row] and named.is_fused[update.row]:
            is_its_own = named.can_be_owner[row] and self.values.is_single(value)
            self._candidates.set_fallback_owner(value, update.row, OWN if is_its_own else FUSED)
        elif not named.can_be_owner[row]:
            self._follow_value(value, target, MOVED)

    def _sliced_loop_input(self, value: int) -> int:
        """The input of a loop's body that a value is a slice of, or NONE."""
        if value in self.fusions.root_row:
            return self._loop_input_sliced_by(self.fusions.root_row[value])
        if self.values.opcode[value] != "dynamic-slice":
            return NONE
        operand = self.named.program.operand(self.values.row[value], 0)
        return self._loop_input(operand)

    def _loop_input_sliced_by(self, row: int) -> int:
        """The input of a loop's body that a fused instruction is a slice of, or NONE."""
        program, fusions = self.named.program, self.fusions
        slice_row = fusions.sliced_from[row]
        if program.opcode[slice_row] != "dynamic-slice":
            return NONE
        parameter = fusions.sliced_from[program.operand(slice_row, 0)]
        operand = self.named.outer_operand.get(parameter, NONE)
        return NONE if operand == NONE else self._loop_input(operand)

    def _loop_input(self, row: int) -> int:
        """The value of an instruction that is an input of a loop's body, otherwise NONE.

        A constant does not count: XLA names it after any reader, and a slice of it after its own.
        """
        if not self._bodies.is_input(row):
            return NONE
        value = self.named.value_of(row)
        return NONE if value == NONE or self.values.opcode[value] == "constant" else value

    def _follow_gather(self, value: int) -> None:
        """Let an argument own a gathered copy of it, and the collective's name any other array."""
        values, row = self.values, self.values.row[value]
        source = values.operand(value, values.element(value))
        source_row = NONE if source == NONE else values.row[self.buffers.before_moves[source]]
        if source_row != NONE and self.named.is_argument[source_row]:
            self._candidates.set_fallback_owner(value, source_row, ARGUMENT)
        elif not self.named.can_be_owner[row]:
            self._follow_value(value, source, MOVED)

    def _follow_reduction(self, value: int) -> None:
        """Follow the operand, unless the collective has a name and reduces only one array."""
        values, row = self.values, self.values.row[value]
        if not self.named.can_be_owner[row] or len(self.named.program.operands[row]) > 1:
            self._follow_value(value, values.operand(value, values.element(value)), MOVED)

    def _follow_fusion(self, value: int) -> None:
        """Let the fused instruction own that computes the result: see `Fusions.computing`."""
        named, fusions, row = self.named, self.fusions, self.values.row[value]
        is_its_own = named.can_be_owner[row] and self.values.is_single(value)
        root = fusions.root_row[value]
        computing = fusions.computing[root]
        if named.can_be_owner[computing]:
            self._candidates.set_fallback_owner(value, computing, OWN if is_its_own else FUSED)
        elif not is_its_own:
            self._follow_row(value, root, FUSED)
            is_unknown = fusions.outer_value(fusions.some_elements[root]) == NONE
            if is_unknown and not self._has_good_fallback(value):
                self._guess_from_operands(value, row)

    def _follow_row(self, value: int, row: int, rule: str) -> None:
        """Let a value share the owner of an instruction. The first case that applies:

        1. It is not fused: the value of its result is the candidate.
        2. It is a slice of a loop's input: that input is the candidate.
        3. The instruction that computes its elements can own: that is the fallback owner.
        4. It only moves an operand of the fusion, or a piece of one: that is the candidate.
        5. Otherwise the nearest owner inside of the fusion is the fallback owner.
        """
        named, fusions = self.named, self.fusions
        self._candidates.rule[value] = rule
        if not named.is_fused[row]:
            self._candidates.add_candidate(value, named.value_of(row))
            return
        candidate = self._loop_input_sliced_by(row)
        if candidate == NONE and named.can_be_owner[fusions.computing[row]]:
            self._candidates.set_fallback_owner(value, fusions.computing[row], rule)
            return
        if candidate == NONE:
            operand = fusions.outer_value(fusions.some_elements[row])
            piece = self._concatenations.piece(fusions.same_elements[row], operand)
            candidate = operand if piece == NONE else piece
        self._candidates.add_candidate(value, candidate)
        if candidate == NONE and (nearest := fusions.nearest_owner(row)) != NONE:
            self._candidates.set_fallback_owner(value, nearest, rule)

    def _follow_operand(self, value: int) -> None:
        """Without a name, follow the operand whose shape or type is changed, otherwise guess."""
        program, row = self.named.program, self.values.row[value]
        if self._has_good_fallback(value):
            return
        source = self._concatenations.main_operand(row)
        # XLA for TPU joins the pieces of one array by a ConcatBitcast.
        is_join = program.custom_call_target.get(row) == "ConcatBitcast"
        is_moved = is_join or program.opcode[row] in _CHANGES_SHAPE_OR_TYPE
        if is_moved and source == NONE:
            source = self.values.operand(value, 0)
        if is_moved or source != NONE:
            piece = self._concatenations.piece(row, source)
            self._follow_value(value, source if piece == NONE else piece, MOVED)
        elif program.parameter_number[row] == NONE:
            self._guess_from_operands(value, row)

    def _guess_from_operands(self, value: int, row: int) -> None:
        """Guess the owner of the largest operand that is no fill."""
        named = self.named
        self._candidates.rule[value] = OPERAND
        operands = named.program.operands[row]
        for operand in sorted(operands, key=lambda operand: -named.bytes[operand]):
            source = named.value_of(operand)
            is_array = source != NONE and self.values.array[source] is not None
            if is_array and not self.fills.is_fill[source]:
                self._candidates.add_candidate(value, source, may_be_fill=False)
