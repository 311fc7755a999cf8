"""Whether a result may take the place of an operand that ends where the result begins.

The rules are XLA's HloDataflowAnalysis::CanShareOperandBufferWithUser with the hints of each
platform's compiler. They decide estimates only: a dump's offsets say what XLA did.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from .aliasing_operands import Recorded
from .dataflow import Dataflow
from .flattening import Schedule
from .liveness import Liveness
from .numbered_program import NONE, Ints, Mask, NumberedProgram
from .shape_sizes import logical_bytes, padded_bytes
from .shapes import ArrayShape
from .sizes import CPU, GPU, TPU

_ELEMENTWISE_TEXT = """
    abs acos acosh add and asin asinh atan2 atanh bitcast-convert cbrt ceil clamp compare complex
    convert copy cos cosh cosine count-leading-zeros divide erf exponential exponential-minus-one
    floor imag is-finite log log-plus-one logistic map maximum minimum multiply negate not or
    popcnt power real reduce-precision remainder rng round-nearest-afz round-nearest-even rsqrt
    select shift-left shift-right-arithmetic shift-right-logical sign sine sinh sqrt
    stochastic-convert subtract tan tanh xor
"""
_ELEMENTWISE = tuple(_ELEMENTWISE_TEXT.split())
_TAKES_OPERAND = {"dynamic-update-slice": 0, "scatter": 0, "triangular-solve": 1}
_LOOP, _INPUT, _OUTPUT, _CUSTOM = "kLoop", "kInput", "kOutput", "kCustom"


@dataclass
class Sharing:
    """Answers for pairs of an operand and a result of the same instruction."""

    program: NumberedProgram
    schedule: Schedule
    dataflow: Dataflow
    liveness: Liveness
    platform: str
    recorded: Recorded

    def can_share(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """Whether each result may lie where operand `number` of its instruction lies.

        `user` are the instructions, `operand_slot` and `result` the slots of the operand's
        and the result's sub-shapes.
        """
        program, slots = self.program, self.dataflow.slots
        operand = slots.instruction[operand_slot]
        never = program.opcode.is_one_of("constant")[operand]
        never |= program.opcode.is_one_of("copy")[user]
        equal = slots.array[operand_slot] == slots.array[result]
        equal &= slots.array[result] != NONE
        can: Mask = self._is_in_place(operand_slot, result) & equal
        is_fusion = program.opcode.is_one_of("fusion")[user]
        can |= equal & ~is_fusion & self._default(user, number, operand_slot, result)
        if self.platform == TPU:
            can |= equal & self._all_reduce(user, number, result)
        fusions = np.flatnonzero(is_fusion & ~can & ~never)
        by_platform = {CPU: self._cpu_fusion, GPU: self._gpu_fusion, TPU: self._tpu_fusion}
        can[fusions] = by_platform[self.platform](
            user[fusions], number[fusions], operand_slot[fusions], result[fusions]
        )
        can &= ~never
        known = self.recorded.is_known[user]
        can[known] = self.recorded.shares(operand_slot[known], result[known])
        return can

    @cached_property
    def until(self) -> Ints:
        """How long each instruction holds its values: a root until its computation ends."""
        is_root = np.zeros(len(self.program), bool)
        is_root[self.program.root] = True
        ends: Ints = self.schedule.span_end[self.program.computation]
        return np.where(is_root, ends, self.schedule.time)

    @cached_property
    def is_within_result(self) -> Mask:
        """Which values lie inside the result of the ConcatBitcast that reads them last."""
        found = np.zeros(len(self.dataflow), bool)
        flow = self.dataflow
        calls = self.program.custom_call_target.is_one_of("ConcatBitcast")
        reads = calls[flow.use_instruction]
        found[flow.use_value[reads]] = True
        return found

    def _is_in_place(self, operand_slot: Ints, result: Ints) -> Mask:
        width = len(self.dataflow.slots)
        operands, results = self.liveness.in_place_operand, self.liveness.in_place_result
        found: Mask = np.isin(operand_slot * width + result, operands * width + results)
        return found

    def _default(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """The rules of all platforms for what is no fusion and has equal shapes."""
        opcode = self.program.opcode
        can: Mask = opcode.is_one_of(*_ELEMENTWISE, "while", "conditional")[user]
        for name, takes in _TAKES_OPERAND.items():
            can |= opcode.is_one_of(name)[user] & (number == takes)
        sorts = opcode.is_one_of("sort")[user]
        used_once = self._use_count[self.dataflow.slots.instruction[operand_slot]] == 1
        can |= sorts & used_once & self._same_place(number, result)
        return can

    def _all_reduce(self, user: Ints, number: Ints, result: Ints) -> Mask:
        """A TPU's all-reduce works where its operand lies; XLA's default has no such rule."""
        reduces: Mask = self.program.opcode.is_one_of("all-reduce")[user]
        return reduces & self._same_place(number, result)

    def _same_place(self, number: Ints, result: Ints) -> Mask:
        """Whether operand i meets result `{i}`, or the only operand the whole result."""
        slots = self.dataflow.slots
        row = slots.instruction[result]
        whole = slots.whole(row)
        same: Mask = (number == 0) & (result == whole)
        elements = slots.element_count(whole)
        inner = np.flatnonzero(elements > number)
        same[inner] = slots.element(whole[inner], number[inner]) == result[inner]
        return same

    @cached_property
    def _use_count(self) -> Ints:
        """How many operands name each instruction."""
        return np.bincount(self.program.operands, minlength=len(self.program))

    def _parameters(self, user: Ints, number: Ints) -> Ints:
        """The parameter of the fused computation that stands for an operand of the fusion."""
        if not len(user):
            return user
        fused = self.program.callee(user, "calls")
        return self.program.parameter_of(fused, number, user)

    def _cpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """A loop may overwrite an operand that all its users read element by element."""
        slots = self.dataflow.slots
        loops: Mask = self.program.fusion_kind.is_one_of(_LOOP, _INPUT, _CUSTOM)[user]
        equal = slots.array[operand_slot] == slots.array[result]
        can: Mask = loops & equal & ~self._reaches_other[self._parameters(user, number)]
        return can

    def _tpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """As on a CPU, through bitcasts and reductions too, but not where a convolution reads."""
        kinds: Mask = self.program.fusion_kind.is_one_of(_LOOP, _OUTPUT)[user]
        reaches = self._reaches_other[self._parameters(user, number)]
        can: Mask = kinds & self._same_data(operand_slot, result) & ~reaches
        return can

    def _same_data(self, operand_slot: Ints, result: Ints) -> Mask:
        """Whether element type, elements and bytes agree, whatever the dimensions are."""
        arrays = self.dataflow.slots.trees.arrays
        codes: dict[tuple[object, ...], int] = {}
        code = np.array(
            [
                codes.setdefault(
                    (shape.element_type, prod(shape.dimensions), padded_bytes(shape)), len(codes)
                )
                for shape in arrays
            ],
            np.int64,
        )
        a, b = self.dataflow.slots.array[operand_slot], self.dataflow.slots.array[result]
        same: Mask = (a != NONE) & (b != NONE)
        same &= code[a] == code[b]
        return same

    @cached_property
    def _nested_elementwise(self) -> Mask:
        """Which instructions are elementwise; a nested fusion if it is a loop of only such."""
        program = self.program
        found = program.opcode.is_one_of(*_ELEMENTWISE)
        calls = program.call_attribute.is_one_of("calls")
        calls &= program.fusion_kind.is_one_of(_LOOP)[program.call_row]
        fusion, fused = program.call_row[calls], program.call_computation[calls]
        parameter = program.opcode.is_one_of("parameter")
        while True:
            # One nesting of fusions a round.
            other = np.zeros(len(program.first), bool)
            other[program.computation[~found & ~parameter]] = True
            further = found.copy()
            further[fusion[~other[fused]]] = True
            if np.array_equal(further, found):
                return found
            found = further

    @cached_property
    def _reaches_other(self) -> Mask:
        """Which instructions have a user, or a user's user and so on, that is not elementwise.

        A tuple counts as elementwise, on a TPU a bitcast and a reduction too.
        """
        program = self.program
        through = ("tuple", "bitcast", "reduce") if self.platform == TPU else ("tuple",)
        allowed = self._nested_elementwise | program.opcode.is_one_of(*through)
        reaches = np.zeros(len(program), bool)
        tell = np.flatnonzero(~allowed[program.operand_row])
        while len(tell):
            told = np.unique(program.operands[tell])
            told = told[~reaches[told]]
            reaches[told] = True
            fresh = np.zeros(len(program), bool)
            fresh[told] = True
            tell = np.flatnonzero(fresh[program.operand_row])
        return reaches

    def _gpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """XLA's FusionCanShareBufferHint: walks from the parameter to this very result."""
        slots = self.dataflow.slots
        arrays = slots.trees.arrays
        can = np.zeros(len(user), bool)
        parameters = self._parameters(user, number).tolist()
        for at, parameter in enumerate(parameters):
            one, other = arrays[slots.array[operand_slot[at]]], arrays[slots.array[result[at]]]
            if slots.array[operand_slot[at]] == NONE or slots.array[result[at]] == NONE:
                continue
            if not _same_elements(one, other):
                continue
            index = slots.trees.index_texts[slots.trees.index[slots.node[result[at]]]]
            path = tuple(int(part) for part in index.strip("{}").split(",") if part)
            can[at] = self._walk(parameter, path, kind=self.program.fusion_kind.at(int(user[at])))
        return can

    def _walk(self, parameter: int, path: tuple[int, ...], *, kind: str) -> bool:
        """Whether a parameter reaches one output of its fusion, and element by element only.

        A kInput fusion works out its first reduction before it writes anything.
        """
        program = self.program
        computation = int(program.computation[parameter])
        hero = self._first_reduce[computation] if kind == _INPUT else NONE
        output = int(program.root[computation])
        if program.opcode.at(output) == "sort":
            place = path[0] if path else 0
            return self._operand(output, place) == parameter
        for number in path:
            output = self._operand(output, number)
        root = output
        if program.opcode.at(output) == "bitcast":
            root = self._operand(output, 0)
        is_update = program.opcode.at(root) == "dynamic-update-slice"
        found = False
        waiting, seen = [parameter], {parameter}
        while waiting:
            row = waiting.pop()
            if row == output:
                found = True
                if len([user for user in self._users(row) if user != hero]) > 1:
                    return False
                continue
            for user in self._users(row):
                opcode = program.opcode.at(user)
                if user == hero:
                    continue
                if is_update and user == root:
                    if self._operand(user, 0) != row:
                        return False
                elif opcode == "copy" or not (
                    self._nested_elementwise[user] or opcode == "bitcast"
                ):
                    return False
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
        return found

    @cached_property
    def _first_reduce(self) -> Ints:
        """The first reduction of each computation; NONE if it has none."""
        found = np.full(len(self.program.first), NONE)
        rows = self.program.rows("reduce")[::-1]
        found[self.program.computation[rows]] = rows
        return found

    def _operand(self, row: int, number: int) -> int:
        return int(self.program.operand(np.array([row]), number)[0])

    def _users(self, row: int) -> list[int]:
        order, start = self._by_operand
        found: list[int] = self.program.operand_row[order[start[row] : start[row + 1]]].tolist()
        return found

    @cached_property
    def _by_operand(self) -> tuple[Ints, Ints]:
        """The operands sorted by what they name, and where each name starts."""
        order = np.argsort(self.program.operands, kind="stable")
        start = np.concatenate([[0], np.cumsum(self._use_count)])
        return order, start


def _same_elements(one: ArrayShape, other: ArrayShape) -> bool:
    """Whether two arrays have as many elements of as many bytes."""
    return prod(one.dimensions) == prod(other.dimensions) and (
        logical_bytes(one) == logical_bytes(other)
    )
