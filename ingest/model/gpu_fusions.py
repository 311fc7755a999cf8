"""Whether the result of a GPU's fusion may take the place of an operand.

The rules are those of XLA's FusionCanShareBufferHint: a walk from the fused parameter to this
very result.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ...schema.array_shapes.shape_sizes import has_size, logical_bytes
from ...schema.array_shapes.shapes import ArrayShape
from .elementwise import Elementwise
from .numbered_program import NONE, Ints, Mask, NumberedProgram
from .slots import Slots


@dataclass
class GpuFusions:
    """Answers for the fusions of one program."""

    program: NumberedProgram
    slots: Slots
    elementwise: Elementwise

    def can_share(self, user: Ints, parameters: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """Whether each fusion's result may lie where the operand behind a parameter lies."""
        slots = self.slots
        arrays = slots.trees.arrays
        can = np.zeros(len(user), bool)
        for at, parameter in enumerate(parameters.tolist()):
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
        hero = self._first_reduce[computation] if kind == "kInput" else NONE
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
                elif opcode == "copy" or not (self.elementwise.nested[user] or opcode == "bitcast"):
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
        start = np.concatenate(
            [[0], np.cumsum(np.bincount(self.program.operands, minlength=len(self.program)))]
        )
        return order, start


def _same_elements(one: ArrayShape, other: ArrayShape) -> bool:
    """Whether two arrays have as many elements of as many bytes."""
    if prod(one.dimensions) != prod(other.dimensions):
        return False
    if has_size(one) and has_size(other):
        return logical_bytes(one) == logical_bytes(other)
    return one.element_type == other.element_type
