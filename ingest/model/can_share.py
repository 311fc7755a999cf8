"""Whether a result may take the place of an operand that ends where the result begins.

The rules are XLA's HloDataflowAnalysis::CanShareOperandBufferWithUser with the hints of each
platform's compiler. They decide estimates only: a dump's offsets say what XLA did.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ...schema.address_space.runs import joined
from ...schema.array_shapes.shape_sizes import padded_bytes
from ...schema.opcodes import ELEMENTWISE
from .aliasing_operands import Recorded
from .dataflow import Dataflow
from .elementwise import Elementwise
from .flattening import Schedule
from .gpu_fusions import GpuFusions
from .liveness import Liveness
from .numbered_program import NONE, Ints, Mask, NumberedProgram
from .sizes import CPU, GPU, TPU

# The operand whose place the result takes, if the instruction reads that operand only once.
_TAKES_OPERAND = {
    "dynamic-update-slice": 0,
    "scatter": 0,
    "set-dimension-size": 0,
    "triangular-solve": 1,
}
_PRODUCTS = ("dot", "convolution")
_LOOP, _INPUT, _OUTPUT = "kLoop", "kInput", "kOutput"


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
        if self.platform == TPU:
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
        operands, results = self.dataflow.in_place_operand, self.dataflow.in_place_result
        found: Mask = np.isin(operand_slot * width + result, operands * width + results)
        return found

    def _default(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """The rules of all platforms for what is no fusion and has equal shapes."""
        opcode, slots = self.program.opcode, self.dataflow.slots
        can: Mask = opcode.is_one_of(*ELEMENTWISE, "while", "conditional")[user]
        once = self._reads_once(user, slots.instruction[operand_slot])
        for name, takes in _TAKES_OPERAND.items():
            can |= opcode.is_one_of(name)[user] & (number == takes) & once
        sorts = opcode.is_one_of("sort")[user]
        used_once = self._use_count[slots.instruction[operand_slot]] == 1
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
        """A result of the same shape and layout takes the place of an operand by the kind.

        kLoop and kInput: the parameter reaches only elementwise instructions and tuples.
        kOutput with an add at its root: one summand is a product, and the root's other summand
        is the parameter's only use. Other fusions: the parameter reaches only elementwise
        instructions, and no tuple. Found by asking XLA about fusions made for the purpose.
        """
        slots, program = self.dataflow.slots, self.program
        parameter = self._parameters(user, number)
        equal = slots.array[operand_slot] == slots.array[result]
        equal &= operand_slot == slots.whole(slots.instruction[operand_slot])
        kind = program.fusion_kind
        loops = kind.is_one_of(_LOOP, _INPUT)[user]
        can: Mask = np.where(
            loops,
            ~self.elementwise.loop_reaches_other[parameter],
            ~self.elementwise.strictly_reaches_other[parameter],
        )
        root = program.called_root(user)
        sums = kind.is_one_of(_OUTPUT)[user] & program.opcode.is_one_of("add")[root]
        for at in np.flatnonzero(sums & equal).tolist():
            can[at] = self._is_other_summand(int(parameter[at]), int(root[at]))
        can &= equal
        return can

    def _is_other_summand(self, parameter: int, root: int) -> bool:
        """Whether a sum of a product and the parameter is the parameter's only use."""
        start, stop = self.program.operand_start[root], self.program.operand_start[root + 1]
        summands = self.program.operands[start:stop].tolist()
        products = self.program.opcode.is_one_of(*_PRODUCTS)[summands]
        if not products.any() or self._use_count[parameter] != 1:
            return False
        return bool(summands[1 - int(np.argmax(products))] == parameter)

    def _tpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """As on a CPU, through bitcasts and reductions too, but not where a convolution reads."""
        kinds: Mask = self.program.fusion_kind.is_one_of(_LOOP, _OUTPUT)[user]
        reaches = self._tpu_reaches_other[self._parameters(user, number)]
        can: Mask = kinds & self._same_data(operand_slot, result) & ~reaches
        return can

    @cached_property
    def _tpu_reaches_other(self) -> Mask:
        return self.elementwise.reaches_other("tuple", "bitcast", "reduce")

    def _gpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """See `gpu_fusions.py`."""
        return self._gpu_fusions.can_share(
            user, self._parameters(user, number), operand_slot, result
        )

    @cached_property
    def _gpu_fusions(self) -> GpuFusions:
        return GpuFusions(self.program, self.dataflow.slots, self.elementwise)

    @cached_property
    def elementwise(self) -> Elementwise:
        """Which instructions work element by element."""
        return Elementwise(self.program)

    def _reads_once(self, user: Ints, operand: Ints) -> Mask:
        """Whether each instruction names the operand only once."""
        counts = self.program.operand_count[user]
        at = joined(self.program.operand_start[user], counts)
        owner = np.repeat(np.arange(len(user)), counts)
        same = self.program.operands[at] == operand[owner]
        once: Mask = np.bincount(owner[same], minlength=len(user)) == 1
        return once

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
