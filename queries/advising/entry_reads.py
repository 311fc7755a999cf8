"""The entry computation's instructions: which values they hold, and which they read."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .asked_program import Program
from .dependencies import Dependencies

# What only hands an array on does not read it.
_HANDS_ON = ("bitcast", "tuple", "get-tuple-element", "opt-barrier")


class EntryReads:
    """Answers for one program. What only hands an array on neither holds nor reads it."""

    def __init__(self, program: Program, dependencies: Dependencies) -> None:
        self._program = program
        self._dependencies = dependencies

    def members(self, value: int) -> list[int]:
        """The values that share this value's memory as one."""
        layout = self._program.layout
        own = layout.alias_set[layout.rows_of(np.array([value]))]
        return [*layout.value_id[np.isin(layout.alias_set, own)].tolist()] or [value]

    def holders(self, values: Sequence[int]) -> list[int]:
        """The entry instructions that hold one of the values."""
        return [
            each
            for value in values
            for each in self._positions.get(value, ())
            if each in self._dependencies and self._dependencies.opcode[each] not in _HANDS_ON
        ]

    def loops(self, positions: Sequence[int]) -> frozenset[int]:
        """Those of the instructions that are loops."""
        return frozenset(each for each in positions if self._dependencies.opcode[each] == "while")

    @cached_property
    def uses(self) -> dict[int, list[tuple[int, int]]]:
        """The entry instructions that read each value, and as which operand."""
        found: dict[int, list[tuple[int, int]]] = {}
        for instruction, reads in self.reads.items():
            for value, number in reads:
                found.setdefault(value, []).append((instruction, number))
        return found

    @cached_property
    def reads(self) -> dict[int, list[tuple[int, int]]]:
        """The values that each entry instruction reads, and as which operand."""
        table = self._program.uses
        found: dict[int, list[tuple[int, int]]] = {}
        for value, instruction, number in zip(
            table["value_id"].to_pylist(),
            table["instruction_id"].to_pylist(),
            table["operand_number"].to_pylist(),
            strict=True,
        ):
            if (
                instruction in self._dependencies
                and self._dependencies.opcode[instruction] not in _HANDS_ON
            ):
                found.setdefault(instruction, []).append((value, number))
        return found

    @cached_property
    def _positions(self) -> dict[int, list[int]]:
        """The instructions that hold each value, without tuples that hold it within."""
        table = self._program.positions
        found: dict[int, list[int]] = {}
        for value, instruction in zip(
            table["value_id"].to_pylist(), table["instruction_id"].to_pylist(), strict=True
        ):
            found.setdefault(value, []).append(instruction)
        return found
