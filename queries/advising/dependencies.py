"""What each instruction of the entry computation is computed from."""

from collections.abc import Iterable

import numpy as np

from .asked_program import Program


class Dependencies:
    """The entry computation's instructions in the schedule's order, with their operands.

    An operand is always scheduled before the instruction that reads it. A set of instructions
    is an integer, a bit for each instruction that was asked about.
    """

    def __init__(self, program: Program) -> None:
        table = program.instructions
        entry = program.rows(
            "SELECT computation FROM computations WHERE module_id = $1 AND is_entry"
        )
        computations = table["computation"].to_pylist()
        times = table["schedule_time"].to_pylist()
        numbers = table["instruction_id"].to_pylist()
        within = entry["computation"].to_pylist()
        self.time: dict[int, int] = {
            number: time
            for number, computation, time in zip(numbers, computations, times, strict=True)
            if computation in within and time is not None
        }
        self.opcode: dict[int, str] = dict(zip(numbers, table["opcode"].to_pylist(), strict=True))
        self._operands = self._read_operands(program)

    def __contains__(self, instruction: int) -> bool:
        """Whether the entry computation has the instruction."""
        return instruction in self.time

    def ancestors(self, asked: Iterable[int]) -> dict[int, int]:
        """Of each instruction: which of those asked about it is computed from, itself included.

        Bit n stands for the nth instruction asked about.
        """
        own: dict[int, int] = {}
        for bit, instruction in enumerate(asked):
            own[instruction] = own.get(instruction, 0) | 1 << bit
        found: dict[int, int] = {}
        for instruction, operands in self._operands.items():
            bits = own.get(instruction, 0)
            for each in operands:
                bits |= found.get(each, 0)
            found[instruction] = bits
        return found

    def _read_operands(self, program: Program) -> dict[int, list[int]]:
        """Each instruction's operands, in the schedule's order."""
        operands: dict[int, list[int]] = {
            number: [] for number in sorted(self.time, key=self.time.__getitem__)
        }
        reader = program.operands["instruction_id"].to_numpy()
        read = program.operands["operand_instruction_id"].to_numpy()
        is_entry = np.isin(reader, np.fromiter(operands, np.int64, len(operands)))
        for user, operand in zip(reader[is_entry].tolist(), read[is_entry].tolist(), strict=True):
            operands[user].append(operand)
        return operands
