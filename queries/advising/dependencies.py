"""What each instruction of the entry computation is computed from."""

from collections.abc import Iterable

from .asked_program import Program


class Dependencies:
    """The entry computation's instructions in the schedule's order, with their operands.

    An operand is always scheduled before the instruction that reads it. A set of instructions
    is an integer, a bit for each instruction that was asked about.
    """

    def __init__(self, program: Program) -> None:
        graph = program.graph
        entry = graph.program.entry
        times = program.instructions["schedule_time"].to_pylist()
        start, stop = int(graph.program.first[entry]), int(graph.program.stop[entry])
        self.opcode = graph.opcode
        self.time: dict[int, int] = {
            number: times[number] for number in range(start, stop) if times[number] is not None
        }
        self._operands = {
            number: graph.operands[number]
            for number in sorted(self.time, key=self.time.__getitem__)
        }

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
