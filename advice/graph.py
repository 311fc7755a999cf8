"""A program as a graph: the slots of its instructions, and who reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..xla.program import NONE, Program
from ..xla.shapes import ArrayShape
from ..xla.slots import Slots

# A slot of the program: an instruction's result, or a part of it if that is a tuple.
Slot = int


@dataclass(frozen=True)
class Graph:
    """A program, its slots and users, for rules that walk from instruction to instruction."""

    program: Program

    @property
    def opcode(self) -> list[str]:
        """By instruction."""
        return self.program.opcode

    @property
    def operands(self) -> list[tuple[int, ...]]:
        """By instruction, in order."""
        return self.program.operands

    @cached_property
    def slots(self) -> Slots:
        """The parts of all results. Raises DumpError for a shape that cannot be read."""
        return Slots(self.program, [True] * len(self.program.computation_names))

    @property
    def root_slot(self) -> list[Slot]:
        """The slot of each instruction's whole result."""
        return self.slots.start

    @property
    def instruction(self) -> list[int]:
        """The instruction of each slot."""
        return self.slots.row

    @cached_property
    def arrays(self) -> list[ArrayShape | None]:
        """The array at each slot; None for a tuple."""
        return [array for row in range(len(self.program)) for array in self.slots.tree(row).arrays]

    def find_slots(self, instructions: Sequence[int], indices: Sequence[str]) -> list[Slot]:
        """The slots of parts of instructions, such as `{0,1}`; NONE for a missing part."""
        parts: dict[str, dict[str, int]] = {}
        slots = []
        for row, index in zip(instructions, indices, strict=True):
            shape = self.program.shape[row]
            if shape not in parts:
                texts = self.slots.tree(row).index_texts
                parts[shape] = {text: part for part, text in enumerate(texts)}
            part = parts[shape].get(index, NONE)
            slots.append(NONE if part == NONE else self.root_slot[row] + part)
        return slots

    def opcode_at(self, slot: Slot) -> str:
        """The opcode of a slot's instruction."""
        return self.program.opcode[self.instruction[slot]]

    def element(self, slot: Slot, number: int) -> Slot:
        """The slot of an element of the tuple at a slot; NONE without one."""
        if slot == NONE or not 0 <= number < self.slots.element_count(slot):
            return NONE
        return self.slots.element(slot, number)

    @cached_property
    def users(self) -> list[list[int]]:
        """The users of each instruction; one that reads it twice is listed twice."""
        users: list[list[int]] = [[] for _ in range(len(self.program))]
        for row, operands in enumerate(self.program.operands):
            for operand in operands:
                users[operand].append(row)
        return users

    def called(self, row: int, attribute: str | None = None) -> list[int]:
        """The computations that an instruction calls, by one attribute or by any."""
        return [
            computation
            for name, computation in self.program.calls.get(row, ())
            if attribute in (None, name)
        ]

    def body(self, caller: int) -> int:
        """The computation that a fusion or a call runs. Raises DumpError without one."""
        return self.program.callee(caller, "calls", "to_apply")

    def readers(self, instruction: int) -> Iterator[tuple[int, int]]:
        """The users of an instruction, with the number of the operand."""
        for user in dict.fromkeys(self.users[instruction]):
            for number, operand in enumerate(self.program.operands[user]):
                if operand == instruction:
                    yield user, number
