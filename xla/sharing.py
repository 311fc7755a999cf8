"""Reuse of an operand's memory by a result that starts when the operand ends.

The rules are XLA's HloDataflowAnalysis::CanShareOperandBufferWithUser with the hints of each
platform's compiler. They decide estimates only: the offsets in a dump show what XLA did.
"""

import re
from functools import cached_property
from math import prod
from typing import Final

from .analysis import Analysis
from .elementwise import Elementwise
from .opcodes import ELEMENTWISE
from .program import NONE, ShapeIndex
from .shapes import ArrayShape, has_size, logical_bytes, padded_bytes
from .sizes import CPU, GPU, TPU
from .slots import Slots

# Reuse any operand of the same shape.
_REUSES_ANY: Final = frozenset((*ELEMENTWISE, "while", "conditional"))
# Reuse one operand, by its number, if the instruction reads that operand only once.
_REUSED_OPERAND: Final = {
    "dynamic-update-slice": 0,
    "scatter": 0,
    "set-dimension-size": 0,
    "triangular-solve": 1,
}
_PRODUCTS: Final = ("dot", "convolution")
_INDICES = re.compile(r'"indices":\[([^\]]*)\]')
_NUMBER = re.compile(r"\d{1,9}")


class Sharing:
    """Whether results may be written over operands in a program, as the platform's XLA decides."""

    def __init__(self, analysis: Analysis, platform: str) -> None:
        self.platform = platform
        self._program, self._slots = analysis.program, analysis.flow.slots
        self._in_place_pairs = set(analysis.flow.in_place_pairs)
        self._elementwise = Elementwise(analysis.program)
        self._recorded: dict[int, set[tuple[int, int]]] = {}

    def can_share(self, row: int, number: int, operand_slot: int, result_slot: int) -> bool:
        """Whether part of a result may be written where part of an operand is.

        Args:
            row: the instruction.
            number: the operand's number, the first of several if it is read more than once.
            operand_slot, result_slot: the parts.
        """
        program, slots = self._program, self._slots
        if self.platform == TPU and row in program.aliasing_lists:
            return (operand_slot, result_slot) in self._recorded_pairs(row)
        opcode, operand = program.opcode[row], slots.row[operand_slot]
        if opcode == "copy" or program.opcode[operand] == "constant":
            return False
        array, result_array = slots.array(operand_slot), slots.array(result_slot)
        is_equal = array is not None and array == result_array
        if is_equal and (operand_slot, result_slot) in self._in_place_pairs:
            return True
        if opcode == "fusion":
            return self._can_fusion_share(row, number, operand_slot, result_slot)
        if not is_equal:
            return False
        if opcode in _REUSES_ANY:
            return True
        if opcode in _REUSED_OPERAND:
            return number == _REUSED_OPERAND[opcode] and program.operands[row].count(operand) == 1
        if opcode == "sort":
            return self._count_readers(operand) == 1 and self._is_same_part(number, result_slot)
        # XLA for TPU reduces in place; the rules of all platforms have no such case.
        is_all_reduce = opcode == "all-reduce" and self.platform == TPU
        return is_all_reduce and self._is_same_part(number, result_slot)

    def _is_same_part(self, number: int, result_slot: int) -> bool:
        """Whether a slot is element `number` of a result, or the complete result for number 0."""
        slots = self._slots
        root = slots.start[slots.row[result_slot]]
        if slots.element_count(root) > number:
            return slots.element(root, number) == result_slot
        return number == 0 and result_slot == root

    def _count_readers(self, row: int) -> int:
        """The number of operands, of all instructions, that are this instruction."""
        readers = self._program.readers_in(self._program.computation[row])
        return len(readers.get(row, ()))

    def _recorded_pairs(self, row: int) -> set[tuple[int, int]]:
        """The slots of operands and results that share memory, as the newest libtpu states.

        The backend_config lists the leaves that share, where those of the operands come first:

            %z = add(%x, %y), backend_config={… "lists":[{"indices":["1","2"]}]}  # y and z
        """
        pairs = self._recorded.get(row)
        if pairs is None:
            program, slots = self._program, self._slots
            leaves = [leaf for operand in program.operands[row] for leaf in _leaves(slots, operand)]
            n_operands = len(leaves)
            leaves += _leaves(slots, row)
            pairs = self._recorded[row] = set()
            for indices in _INDICES.findall(program.aliasing_lists[row]):
                numbers = [int(number) for number in _NUMBER.findall(indices)]
                results = [n for n in numbers if n_operands <= n < len(leaves)]
                operands = [n for n in numbers if n < n_operands]
                pairs.update((leaves[o], leaves[r]) for o in operands for r in results)
        return pairs

    def _can_fusion_share(self, row: int, number: int, operand_slot: int, result_slot: int) -> bool:
        """Whether a fusion may write part of its result where part of an operand is."""
        slots = self._slots
        array, result_array = slots.array(operand_slot), slots.array(result_slot)
        if array is None or result_array is None:
            return False
        parameter = self._elementwise.parameter(row, number)
        kind = self._program.fusion_kind.get(row, "")
        if self.platform == CPU:
            is_complete = operand_slot == slots.start[slots.row[operand_slot]]
            can_share = is_complete and array == result_array
            return can_share and self._can_cpu_share(row, parameter, kind)
        if self.platform == GPU:
            is_alike = _have_equal_elements(array, result_array)
            return is_alike and self._can_gpu_share(parameter, slots.index(result_slot), kind)
        if kind not in ("kLoop", "kOutput"):
            return False
        return not self._reaches_other_on_tpu[parameter] and _have_equal_data(array, result_array)

    @cached_property
    def _reaches_other_on_tpu(self) -> list[bool]:
        """By row, as XLA for TPU decides: its fusions read through these opcodes, too."""
        return self._elementwise.reaches_other("tuple", "bitcast", "reduce")

    def _can_cpu_share(self, row: int, parameter: int, kind: str) -> bool:
        """Whether a CPU fusion may write a result of the same shape and layout over an operand.

        kLoop and kInput: the parameter reaches only elementwise instructions and tuples.
        kOutput with an add at its root: one summand is a product, and the root's other summand
        is the parameter's only use. Other fusions: the parameter reaches only elementwise
        instructions, and no tuple. Measured: XLA was asked about fusions made for the purpose.
        """
        root = self._program.called_root(row)
        if kind == "kOutput" and self._program.opcode[root] == "add":
            return self._is_other_summand(parameter, root)
        if kind in ("kLoop", "kInput"):
            return not self._elementwise.reaches_other_in_cpu_loop[parameter]
        return not self._elementwise.reaches_other_on_cpu[parameter]

    def _is_other_summand(self, parameter: int, root: int) -> bool:
        """Whether a sum of a product and the parameter is the parameter's only use."""
        program = self._program
        summands = program.operands[root]
        is_product = [program.opcode[summand] in _PRODUCTS for summand in summands]
        if True not in is_product or self._count_readers(parameter) != 1:
            return False
        return summands[1 - is_product.index(True)] == parameter

    def _can_gpu_share(self, parameter: int, result: ShapeIndex, kind: str) -> bool:
        """Whether a parameter reaches a result of its GPU fusion, and only element by element.

        A kInput fusion computes its hero, the first reduction, before it writes anything.
        Source: XLA's FusionCanShareBufferHint: a walk from the parameter to this very result.
        """
        program = self._program
        computation = program.computation[parameter]
        root = program.root[computation]
        if program.opcode[root] == "sort":
            return program.operand(root, result[0] if result else 0) == parameter
        output = root
        for number in result:
            output = program.operand(output, number)
        updated = program.operand(output, 0) if program.opcode[output] == "bitcast" else output
        is_update = program.opcode[updated] == "dynamic-update-slice"
        hero = NONE
        if kind == "kInput":
            reductions = (r for r in program.rows_of(computation) if program.opcode[r] == "reduce")
            hero = next(reductions, NONE)
        users = program.readers_in(computation)
        is_reached = False
        stack, visited = [parameter], {parameter}
        while stack:
            row = stack.pop()
            readers = [user for user in users.get(row, ()) if user != hero]
            if row == output:
                is_reached = True
                if len(readers) > 1:
                    return False
                continue
            for user in readers:
                if is_update and user == updated:
                    if program.operand(user, 0) != row:
                        return False
                elif not self._is_gpu_elementwise(user):
                    return False
                if user not in visited:
                    visited.add(user)
                    stack.append(user)
        return is_reached

    def _is_gpu_elementwise(self, row: int) -> bool:
        """Whether an instruction is elementwise in a GPU fusion: a bitcast is, a copy is not."""
        opcode = self._program.opcode[row]
        if opcode in ("copy", "bitcast"):
            return opcode == "bitcast"
        return self._elementwise.is_elementwise[row]


def _leaves(slots: Slots, row: int) -> list[int]:
    """The slots of the arrays of an instruction's result."""
    start = slots.start[row]
    return [start + part for part, array in enumerate(slots.tree(row).arrays) if array is not None]


def _have_equal_elements(lhs: ArrayShape, rhs: ArrayShape) -> bool:
    """Whether two arrays have equally many elements of equally many bytes."""
    if prod(lhs.dimensions) != prod(rhs.dimensions):
        return False
    if has_size(lhs) and has_size(rhs):
        return logical_bytes(lhs) == logical_bytes(rhs)
    return lhs.element_type == rhs.element_type


def _have_equal_data(lhs: ArrayShape, rhs: ArrayShape) -> bool:
    """Whether element type, number of elements and bytes with padding are equal."""
    return (
        lhs.element_type == rhs.element_type
        and prod(lhs.dimensions) == prod(rhs.dimensions)
        and padded_bytes(lhs) == padded_bytes(rhs)
    )
