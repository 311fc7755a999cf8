"""In-place pairs: the operands that must share their memory with a result.

The rules are XLA's HloDataflowAnalysis::GetInPlaceInputOutputPairs, on all platforms alike.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..runs import followed
from ..shapes import Shape, TupleShape, parse_shape
from .program import NONE, Ints, Mask, NumberedProgram, Slots, parse_aliases

Index = tuple[int, ...]

# Without an alias that the text declares, only these opcodes have in-place pairs, and fusions
# of them.
_IN_PLACE = (
    "dynamic-update-slice",
    "scatter",
    "all-reduce-start",
    "collective-permute",
    "collective-permute-start",
    "set-dimension-size",
    "ragged-all-to-all",
)

# Of these XLA also prints the asynchronous start as an opcode, such as dynamic-update-slice-start.
_STARTED = ("dynamic-update-slice", "scatter", "set-dimension-size", "ragged-all-to-all")

# Fusions of real programs nest twice. The limit keeps a hostile text from exhausting the stack.
_MAX_DEPTH = 100


class InPlace(NamedTuple):
    """A sub-shape of an operand and the sub-shape of the result that shares its memory."""

    operand: int
    operand_index: Index
    result_index: Index


@dataclass
class InPlaceRules:
    """The in-place pairs of single instructions; those of a fused computation are kept.

    A Python call for each instruction is quick enough, because few instructions have a pair.
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
        started = opcode.removesuffix("-start")
        if opcode not in _IN_PLACE and started in _STARTED:
            # The start of what writes in place: its results are `{1}`.
            pairs = self._of_opcode(row, started, count)
            return [pair._replace(result_index=(1, *pair.result_index)) for pair in pairs]
        return self._of_opcode(row, opcode, count)

    def _of_opcode(self, row: int, opcode: str, count: int) -> list[InPlace]:
        """The in-place pairs of an instruction, as those of this opcode have them."""
        if opcode in ("dynamic-update-slice", "set-dimension-size"):
            return [InPlace(0, (), ())]
        if opcode == "scatter":
            arrays = (count - 1) // 2
            return _operand_to_result_pairs(arrays)
        if opcode == "all-reduce-start":
            return _operand_to_result_pairs(count)
        if opcode in ("collective-permute", "collective-permute-start") and count == 4:
            result_index = (1,) if opcode == "collective-permute-start" else ()
            operand_indices = _indices(self._shape(self.operand(row, 1)))
            return [InPlace(1, index, result_index + index) for index in operand_indices]
        if opcode == "ragged-all-to-all":
            return [InPlace(1, (), ())]
        declared_pairs = self._declared(row)
        if opcode == "fusion" and self._may_be_in_place[row]:
            return declared_pairs + self._fused(self._fused_by[row])
        return declared_pairs

    def _declared(self, row: int) -> list[InPlace]:
        """The pairs that `output_to_operand_aliasing` declares."""
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
        """Which instructions may have a pair: by opcode, attribute, or a fused instruction."""
        program = self.program
        may = program.opcode.is_one_of(*_IN_PLACE, *(f"{opcode}-start" for opcode in _STARTED))
        may |= program.operand_aliasing.codes != NONE
        fusions = np.array(list(self._fused_by), np.int64)
        computations = np.array(list(self._fused_by.values()), np.int64)
        while True:
            # Each round goes one fusion further out.
            holds = np.zeros(len(program.first), bool)
            holds[program.computation[may]] = True
            with_fusions = may.copy()
            with_fusions[fusions[holds[computations]]] = True
            if np.array_equal(with_fusions, may):
                return may
            may = with_fusions

    @cached_property
    def _leads_to_pair(self) -> Mask:
        """Which instructions may have a pair, or are bitcasts of one that may."""
        program = self.program
        bitcasts = np.flatnonzero(program.opcode.is_one_of("bitcast") & (program.operand_count > 0))
        source = np.arange(len(program))
        source[bitcasts] = program.operand(bitcasts, 0)
        # Tuples and their elements also count, because their indices are not traced here.
        is_tuple_access = program.opcode.is_one_of("tuple", "get-tuple-element")
        may = self._may_be_in_place
        leads_to_pair: Mask = may | (may | is_tuple_access)[followed(source)]
        return leads_to_pair

    def candidates(self) -> Ints:
        """The instructions that may have a pair."""
        return np.flatnonzero(self._may_be_in_place)

    def _fused(self, computation: int) -> list[InPlace]:
        """The pairs of a fusion that come from its computation."""
        if computation not in self._of_fused:
            # The empty list ends the recursion if a computation fuses itself.
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
        leads_to_pair = self._leads_to_pair
        leaves = _leaves(self._shape(root))
        if self.program.opcode.at(root) != "tuple":
            return leaves if leads_to_pair[root] else []
        start, stop = self.program.operand_start[root], self.program.operand_start[root + 1]
        is_candidate = leads_to_pair[self.program.operands[start:stop]].tolist()
        # A leaf beyond the operands is an error, which `operand` reports.
        return [
            leaf
            for leaf in leaves
            if not leaf or leaf[0] >= len(is_candidate) or is_candidate[leaf[0]]
        ]

    def _fused_leaf(self, root: int, leaf: Index) -> list[InPlace]:
        """The fusion's operands that share memory with a leaf of its root.

        The search goes from the root back to the instruction that makes the leaf. If that has an
        in-place pair, the search goes on from the pair's operand, through at most one in-place
        fusion more. The operand counts if the search ends at a parameter.
        """
        source, index = self._origin(root, leaf)
        pairs = []
        for pair in self.pairs(source):
            if pair.result_index != index:
                continue
            row, row_index = self._origin(self.operand(source, pair.operand), pair.operand_index)
            if self.program.opcode.at(row) == "fusion":
                for inner in self.pairs(row):
                    if inner.result_index == row_index:
                        row, row_index = self._origin(
                            self.operand(row, inner.operand), inner.operand_index
                        )
                        break
            if self.program.opcode.at(row) == "parameter":
                pairs.append(InPlace(int(self.program.parameter_number[row]), row_index, leaf))
        return pairs

    def _origin(self, row: int, index: Index) -> tuple[int, Index]:
        """Follow tuples, then get-tuple-elements, then bitcasts of arrays back to row and index."""
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


def _operand_to_result_pairs(count: int) -> list[InPlace]:
    """Operand i shares memory with result i; a single operand with the whole result."""
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
    """The in-place pairs of all instructions that have slots: operand slots, result slots.

    Raises DumpError if a pair names a sub-shape that does not exist.
    """
    candidates = rules.candidates()
    candidates = candidates[slots.count[candidates] > 0]
    pairs_by_row = [rules.pairs(row) for row in candidates.tolist()]
    counts = np.fromiter(map(len, pairs_by_row), np.int64, len(pairs_by_row))
    row = np.repeat(candidates, counts)
    pairs = [pair for row_pairs in pairs_by_row for pair in row_pairs]
    number = np.array([pair.operand for pair in pairs], np.int64)
    operand = slots.find(program.operand(row, number), [pair.operand_index for pair in pairs])
    result = slots.find(row, [pair.result_index for pair in pairs])
    exists = (operand != NONE) & (result != NONE)
    program.require(row, exists, "aliases a sub-shape that is not there")
    return operand, result
