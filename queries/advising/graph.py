"""A program as lists, for rules that walk from instruction to instruction."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...xla.program import Codes, NumberedProgram
from ...xla.runs import starts_of


@dataclass(frozen=True)
class Graph:
    """Lists by instruction_id, which counts from 0; computations are numbers too."""

    program: NumberedProgram

    @cached_property
    def opcode(self) -> list[str]:
        """What each instruction does."""
        return _texts(self.program.opcode)

    @cached_property
    def shape(self) -> list[str]:
        """What each instruction gives, with layout."""
        return _texts(self.program.shape)

    @cached_property
    def computation(self) -> list[int]:
        """Where each instruction stands."""
        numbers: list[int] = self.program.computation.tolist()
        return numbers

    @cached_property
    def operands(self) -> "_Lists":
        """What each instruction reads, in order."""
        return _Lists(self.program.operand_start.tolist(), self.program.operands.tolist())

    @cached_property
    def users(self) -> "_Lists":
        """What reads each instruction; an instruction that reads it twice stands twice."""
        order = np.argsort(self.program.operands, kind="stable")
        counts = np.bincount(self.program.operands, minlength=len(self.program))
        return _Lists(starts_of(counts).tolist(), self.program.operand_row[order].tolist())

    @cached_property
    def called(self) -> dict[int, dict[str, list[int]]]:
        """The computations that an instruction calls, by the attribute that names them."""
        called: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        program = self.program
        rows, computations = program.call_row.tolist(), program.call_computation.tolist()
        for row, attribute, computation in zip(
            rows, _texts(program.call_attribute), computations, strict=True
        ):
            called[row][attribute].append(computation)
        return called

    def root(self, computation: int) -> int:
        """The instruction that gives a computation's result."""
        return int(self.program.root[computation])

    def parameters(self, computation: int) -> list[int]:
        """The parameters of a computation, by their numbers."""
        start, stop = self.program.parameter_start[computation : computation + 2]
        parameters: list[int] = self.program.parameters[start:stop].tolist()
        return parameters

    def body(self, caller: int) -> int:
        """The computation that a fusion or a call runs."""
        return int(self.program.callee(np.array([caller]), "calls", "to_apply")[0])

    def readers(self, instruction: int) -> Iterator[tuple[int, int]]:
        """What reads an instruction, and as which operand."""
        for user in dict.fromkeys(self.users[instruction]):
            for number, operand in enumerate(self.operands[user]):
                if operand == instruction:
                    yield user, number


@dataclass(frozen=True)
class _Lists:
    """A list for each instruction, one behind the other: many are made faster so."""

    starts: list[int]
    values: list[int]

    def __getitem__(self, instruction: int) -> list[int]:
        return self.values[self.starts[instruction] : self.starts[instruction + 1]]


def _texts(column: Codes) -> list[str]:
    """The text of each row; empty for null."""
    texts = [*column.texts, ""]
    return [texts[code] for code in column.codes.tolist()]
