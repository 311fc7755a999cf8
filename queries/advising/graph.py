"""A module's instructions as a graph, into the computations that they call."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

# XLA numbers a fused computation's parameters in their names, and some of its passes spell
# the word out. All of 9,900 fused computations in dumps agree, or have one parameter alone.
_NUMBER = re.compile(r"param(?:eter)?_(\d+)(?:\.|$)")


@dataclass(frozen=True)
class Graph:
    """Lists by instruction_id, which counts from 0, from a module's rows of these tables."""

    instructions: pa.Table
    operand_rows: pa.Table
    calls: pa.Table

    @cached_property
    def opcode(self) -> list[str]:
        """What each instruction does."""
        return self._column("opcode")

    @cached_property
    def shape(self) -> list[str]:
        """What each instruction gives, with layout."""
        return self._column("shape")

    @cached_property
    def name(self) -> list[str]:
        """The name of each instruction."""
        return self._column("instruction")

    @cached_property
    def computation(self) -> list[str]:
        """Where each instruction stands."""
        return self._column("computation")

    @cached_property
    def operands(self) -> "_Lists":
        """What each instruction reads, in order."""
        table = self.operand_rows.sort_by(
            [("instruction_id", "ascending"), ("operand_number", "ascending")]
        )
        return self._lists(table["instruction_id"], table["operand_instruction_id"])

    @cached_property
    def users(self) -> "_Lists":
        """What reads each instruction; an instruction that reads it twice stands twice."""
        table = self.operand_rows
        return self._lists(table["operand_instruction_id"], table["instruction_id"])

    @cached_property
    def called(self) -> dict[int, dict[str, list[str]]]:
        """The computations that an instruction calls, by the attribute that names them."""
        called: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for caller, attribute, computation in zip(*self.calls.to_pydict().values(), strict=True):
            called[caller][attribute].append(computation)
        return called

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The instructions of each computation, in the order of the text."""
        members: dict[str, list[int]] = defaultdict(list)
        for instruction, computation in enumerate(self.computation):
            members[computation].append(instruction)
        return members

    def root(self, computation: str, shape: str) -> int | None:
        """The instruction of this shape that gives the computation's result, if only one can."""
        found = [
            each
            for each in self.members[computation]
            if not self.users[each] and _same(self.shape[each], shape)
        ]
        return found[0] if len(found) == 1 else None

    def inside(self, fusion: int) -> str | None:
        """The computation that a fusion runs."""
        found = self.called[fusion].get("calls", []) if fusion in self.called else []
        return found[0] if len(found) == 1 else None

    def parameters(self, fusion: int) -> list[int] | None:
        """The parameters of a fusion's computation, one an operand; None if names do not tell."""
        computation = self.inside(fusion)
        if computation is None:
            return None
        parameters = [
            each for each in self.members[computation] if self.opcode[each] == "parameter"
        ]
        if len(parameters) == 1 == len(self.operands[fusion]):
            return parameters
        numbers = [_NUMBER.match(self.name[each]) for each in parameters]
        by_number = {
            int(number[1]): each
            for number, each in zip(numbers, parameters, strict=True)
            if number is not None
        }
        ordered = [by_number.get(number) for number in range(len(self.operands[fusion]))]
        told = [each for each in ordered if each is not None]
        return told if len(told) == len(parameters) == len(ordered) else None

    def readers(self, instruction: int) -> Iterator[tuple[int, int]]:
        """What reads an instruction, and as which operand."""
        for user in dict.fromkeys(self.users[instruction]):
            for number, operand in enumerate(self.operands[user]):
                if operand == instruction:
                    yield user, number

    def _column(self, name: str) -> list[str]:
        column: list[str] = self.instructions[name].to_pylist()
        return column

    def _lists(self, keys: pa.ChunkedArray, values: pa.ChunkedArray) -> "_Lists":
        number = keys.to_numpy()
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(len(self.opcode) + 1))
        return _Lists(starts.tolist(), values.to_numpy()[order].tolist())


@dataclass(frozen=True)
class _Lists:
    """A list for each instruction, one behind the other: many are made faster so."""

    starts: list[int]
    values: list[int]

    def __getitem__(self, instruction: int) -> list[int]:
        return self.values[self.starts[instruction] : self.starts[instruction + 1]]


def _same(one: str, other: str) -> bool:
    """Whether two shapes are one, but for their layouts, which a fusion's root may not say."""
    return _LAYOUT.sub("", one) == _LAYOUT.sub("", other)


_LAYOUT = re.compile(r"\{[^{}]*\}|/\*index=\d+\*/")
