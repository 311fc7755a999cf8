"""In-place pairs: which operand of an instruction must share its memory with the result.

The rules are XLA's HloDataflowAnalysis::GetInPlaceInputOutputPairs, on all platforms alike.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .program import NONE, Ints, Mask, NumberedProgram, Slots, parse_aliases
from .runs import followed
from .shapes import Shape, TupleShape, parse_shape

Index = tuple[int, ...]

# Fusions are looked into only if one of these lies in them: nothing else is in place.
_IN_PLACE = (
    "dynamic-update-slice",
    "scatter",
    "all-reduce-start",
    "collective-permute",
    "collective-permute-start",
    "set-dimension-size",
    "ragged-all-to-all",
)

# Real fusions nest twice. The limit keeps a hostile text from exhausting the stack.
_MAX_DEPTH = 100


class InPlace(NamedTuple):
    """The operand's sub-shape that lies where the result's sub-shape does."""

    operand: int
    operand_index: Index
    result_index: Index


@dataclass
class InPlaceRules:
    """Finds the in-place pairs of instructions one by one, each fused computation once.

    Only a few instructions have a pair, so that Python looks at each of these alone.
    """

    program: NumberedProgram
    _of_fused: dict[int, list[InPlace]] = field(default_factory=dict)
    _shapes: dict[int, Shape] = field(default_factory=dict)
    _aliases: dict[int, list[InPlace]] = field(default_factory=dict)
    _depth: int = 0

    def pairs(self, row: int) -> list[InPlace]:
        """The in-place pairs of one instruction."""
        program = self.program
        opcode = program.opcode.at(row)
        count = int(program.operand_count[row])
        if opcode in ("dynamic-update-slice", "set-dimension-size"):
            return [InPlace(0, (), ())]
        if opcode == "scatter":
            updated = (count - 1) // 2
            return _each(updated)
        if opcode == "all-reduce-start":
            return _each(count)
        if opcode in ("collective-permute", "collective-permute-start") and count == 4:
            into = (1,) if opcode == "collective-permute-start" else ()
            below = _indices(self._shape(self.operand(row, 1)))
            return [InPlace(1, index, into + index) for index in below]
        if opcode == "ragged-all-to-all":
            return [InPlace(1, (), ())]
        found = self._named(row)
        if opcode == "fusion" and self._may_be_in_place[row]:
            found = found + self._fused(self._fused_by[row])
        return found

    def _named(self, row: int) -> list[InPlace]:
        """The pairs that `output_to_operand_aliasing` names."""
        code = int(self.program.operand_aliasing.codes[row])
        if code not in self._aliases:
            self._aliases[code] = [
                InPlace(alias.number, alias.operand_index, alias.output_index)
                for alias in parse_aliases(self.program.operand_aliasing.at(row))
            ]
        return self._aliases[code]

    @cached_property
    def _fused_by(self) -> dict[int, int]:
        """The computation of each fusion."""
        calls = self.program.call_attribute.is_one_of("calls")
        calls &= self.program.opcode.is_one_of("fusion")[self.program.call_row]
        rows, called = self.program.call_row[calls], self.program.call_computation[calls]
        return dict(zip(rows.tolist(), called.tolist(), strict=True))

    @cached_property
    def _may_be_in_place(self) -> Mask:
        """Which instructions may have a pair: the opcode, an attribute, or what a fusion holds."""
        program = self.program
        may = program.opcode.is_one_of(*_IN_PLACE)
        may |= program.operand_aliasing.codes != NONE
        fusion = np.array(list(self._fused_by), np.int64)
        fused = np.array(list(self._fused_by.values()), np.int64)
        while True:
            # One nesting of fusions a round.
            holds = np.zeros(len(program.first), bool)
            holds[program.computation[may]] = True
            further = may.copy()
            further[fusion[holds[fused]]] = True
            if np.array_equal(further, may):
                return may
            may = further

    @cached_property
    def _leads_to_pair(self) -> Mask:
        """Which instructions may have a pair or only pass on one that may, through bitcasts."""
        program = self.program
        bitcasts = np.flatnonzero(program.opcode.is_one_of("bitcast") & (program.operand_count > 0))
        pointer = np.arange(len(program))
        pointer[bitcasts] = program.operand(bitcasts, 0)
        # Of a tuple and its elements, only a closer look tells.
        open_ended = program.opcode.is_one_of("tuple", "get-tuple-element")
        may = self._may_be_in_place
        found: Mask = may | (may | open_ended)[followed(pointer)]
        return found

    def candidates(self) -> Ints:
        """The instructions that may have a pair."""
        return np.flatnonzero(self._may_be_in_place)

    def _fused(self, computation: int) -> list[InPlace]:
        """The pairs of a fusion that come from its computation."""
        if computation not in self._of_fused:
            # A computation that fuses itself ends here.
            self._of_fused[computation] = []
            root = int(self.program.root[computation])
            if self._depth == _MAX_DEPTH:
                self.program.refuse(root, f"lies in more than {_MAX_DEPTH} nested fusions")
            self._depth += 1
            self._of_fused[computation] = [
                pair
                for leaf in self._leaves_in_place(root)
                for pair in self._fused_leaf(root, leaf)
            ]
            self._depth -= 1
        return self._of_fused[computation]

    def _leaves_in_place(self, root: int) -> list[Index]:
        """The leaves of a computation's root that may be in place."""
        leads = self._leads_to_pair
        leaves = _leaves(self._shape(root))
        if self.program.opcode.at(root) != "tuple":
            return leaves if leads[root] else []
        start, stop = self.program.operand_start[root], self.program.operand_start[root + 1]
        chosen = leads[self.program.operands[start:stop]].tolist()
        # A leaf beyond the operands is an error, which a closer look reports.
        return [leaf for leaf in leaves if not leaf or leaf[0] >= len(chosen) or chosen[leaf[0]]]

    def _fused_leaf(self, root: int, leaf: Index) -> list[InPlace]:
        """The fusion's operands that the instruction behind a leaf of its root updates in place.

        From the root back to the origin of the leaf; if the origin is in place itself, from its
        operand back, through one more in-place fusion too, to a parameter.
        """
        source, index = self._origin(root, leaf)
        found = []
        for pair in self.pairs(source):
            if pair.result_index != index:
                continue
            row, at = self._origin(self.operand(source, pair.operand), pair.operand_index)
            if self.program.opcode.at(row) == "fusion":
                for inner in self.pairs(row):
                    if inner.result_index == at:
                        row, at = self._origin(
                            self.operand(row, inner.operand), inner.operand_index
                        )
                        break
            if self.program.opcode.at(row) == "parameter":
                found.append(InPlace(int(self.program.parameter_number[row]), at, leaf))
        return found

    def _origin(self, row: int, index: Index) -> tuple[int, Index]:
        """Go back through tuples, then get-tuple-elements, then bitcasts of arrays."""
        opcode = self.program.opcode
        while index and opcode.at(row) == "tuple":
            row, index = self.operand(row, index[0]), index[1:]
        while opcode.at(row) == "get-tuple-element":
            index = (int(self.program.tuple_index[row]), *index)
            row = self.operand(row, 0)
        while not index and opcode.at(row) == "bitcast":
            row = self.operand(row, 0)
        return row, index

    def operand(self, row: int, number: int) -> int:
        """The row of an instruction's operand. Raises DumpError if there is none."""
        start, stop = self.program.operand_start[row], self.program.operand_start[row + 1]
        if start + number >= stop:
            self.program.refuse(row, f"has no operand {number}")
        return int(self.program.operands[start + number])

    def _shape(self, row: int) -> Shape:
        code = int(self.program.shape.codes[row])
        if code not in self._shapes:
            self._shapes[code] = parse_shape(self.program.shape.texts[code])
        return self._shapes[code]


def _each(count: int) -> list[InPlace]:
    """Operand i and result i; one operand has the whole result."""
    if count == 1:
        return [InPlace(0, (), ())]
    return [InPlace(number, (), (number,)) for number in range(count)]


def _indices(shape: Shape, index: Index = ()) -> list[Index]:
    """Every index of a shape, tuples included."""
    elements = shape.elements if isinstance(shape, TupleShape) else ()
    return [
        index,
        *(at for number, part in enumerate(elements) for at in _indices(part, (*index, number))),
    ]


def _leaves(shape: Shape, index: Index = ()) -> list[Index]:
    if not isinstance(shape, TupleShape):
        return [index]
    return [
        leaf
        for number, element in enumerate(shape.elements)
        for leaf in _leaves(element, (*index, number))
    ]


def in_place_slots(
    program: NumberedProgram, slots: Slots, rules: InPlaceRules
) -> tuple[Ints, Ints]:
    """The in-place pairs of all instructions that have slots: operands' slots, results' slots.

    Raises DumpError if a pair names a sub-shape that is not there.
    """
    candidates = rules.candidates()
    candidates = candidates[slots.count[candidates] > 0]
    found = [rules.pairs(row) for row in candidates.tolist()]
    row = np.repeat(candidates, np.fromiter(map(len, found), np.int64, len(found)))
    pairs = [pair for of_row in found for pair in of_row]
    number = np.array([pair.operand for pair in pairs], np.int64)
    operand = slots.find(program.operand(row, number), [pair.operand_index for pair in pairs])
    result = slots.find(row, [pair.result_index for pair in pairs])
    is_there = (operand != NONE) & (result != NONE)
    program.require(row, is_there, "aliases a sub-shape that is not there")
    return operand, result
