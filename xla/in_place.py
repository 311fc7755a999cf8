"""In-place pairs: the operands that must share their memory with a result.

The rules are those of XLA's HloDataflowAnalysis::GetInPlaceInputOutputPairs, on all platforms.
"""

from typing import Final, NamedTuple

from .program import NONE, Program, ShapeIndex
from .slots import Slots, read_shape_tree

# Only instructions with these opcodes, with a declared alias, or that fuse these have pairs.
_IN_PLACE: Final = (
    "dynamic-update-slice",
    "scatter",
    "all-reduce-start",
    "collective-permute",
    "collective-permute-start",
    "set-dimension-size",
    "ragged-all-to-all",
)
# XLA also prints the asynchronous start of these as an opcode: dynamic-update-slice-start.
_STARTED: Final = {
    f"{opcode}-start": opcode
    for opcode in ("dynamic-update-slice", "scatter", "set-dimension-size", "ragged-all-to-all")
}
# Fusions of real programs nest twice. The limit keeps a corrupt text from exhausting the stack.
_MAX_DEPTH: Final = 100


class InPlacePair(NamedTuple):
    """A part of an operand, and the part of the result that shares its memory."""

    operand_number: int
    operand_index: ShapeIndex
    result_index: ShapeIndex


class InPlaceRules:
    """The in-place pairs of a program's instructions.

    Attributes:
        rows: the only instructions that may have a pair.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rows = _find_candidates(program)
        self._fused_pairs: dict[int, list[InPlacePair]] = {}
        self._depth = 0

    def pairs(self, row: int) -> list[InPlacePair]:
        """The in-place pairs of one instruction.

        p = f32[8] dynamic-update-slice(a, b, i)            (0, {}) and {}
        s = (f32[8], f32[8]) scatter(a, b, i, x, y)         (0, {}) and {0}, (1, {}) and {1}
        """
        if row not in self.rows:
            return []
        opcode = self.program.opcode[row]
        if opcode in _STARTED:
            # The results of an asynchronous start are its element {1}.
            pairs = self._pairs_by_opcode(row, _STARTED[opcode])
            return [pair._replace(result_index=(1, *pair.result_index)) for pair in pairs]
        return self._pairs_by_opcode(row, opcode)

    def _pairs_by_opcode(self, row: int, opcode: str) -> list[InPlacePair]:
        """The operands that must share memory with the result, by an opcode's rule.

        Args:
            opcode: the instruction's, or of a start such as `scatter-start` what it starts.
        """
        n_operands = len(self.program.operands[row])
        match opcode:
            case "dynamic-update-slice" | "set-dimension-size":
                return [InPlacePair(0, (), ())]
            case "ragged-all-to-all":
                return [InPlacePair(1, (), ())]
            case "scatter":
                return _pairs_by_number((n_operands - 1) // 2)
            case "all-reduce-start":
                return _pairs_by_number(n_operands)
            case "collective-permute" | "collective-permute-start" if n_operands == 4:
                result = (1,) if opcode == "collective-permute-start" else ()
                indices = read_shape_tree(self.program.shape[self.program.operand(row, 1)]).indices
                return [InPlacePair(1, index, result + index) for index in indices]
        declared = [
            InPlacePair(alias.number, alias.operand_index, alias.output_index)
            for alias in self.program.operand_aliasing.get(row, ())
        ]
        if opcode == "fusion":
            return declared + self._pairs_of_fused(self.program.callee(row, "calls"))
        return declared

    def _pairs_of_fused(self, computation: int) -> list[InPlacePair]:
        """The pairs of a fusion that come from its computation."""
        if computation not in self._fused_pairs:
            # The empty list ends the recursion if a computation fuses itself.
            self._fused_pairs[computation] = []
            root = self.program.root[computation]
            if self._depth == _MAX_DEPTH:
                raise self.program.error(root, f"is within more than {_MAX_DEPTH} nested fusions")
            self._depth += 1
            tree = read_shape_tree(self.program.shape[root])
            self._fused_pairs[computation] = [
                pair
                for index, array in zip(tree.indices, tree.arrays, strict=True)
                if array is not None
                for pair in self._pairs_of_leaf(root, index)
            ]
            self._depth -= 1
        return self._fused_pairs[computation]

    def _pairs_of_leaf(self, root: int, leaf: ShapeIndex) -> list[InPlacePair]:
        """The operands of a fusion that share memory with an array of its root.

        The search follows the array back to its defining instruction. If that has an in-place
        pair, the search continues from the pair's operand, through at most one more in-place
        fusion. The operand counts if the search ends at a parameter.
        """
        program = self.program
        pairs = []
        source, source_index = self._trace_back(root, leaf)
        for pair in self.pairs(source):
            if pair.result_index != source_index:
                continue
            row, index = self._operand_source(source, pair)
            if program.opcode[row] == "fusion":
                for inner in self.pairs(row):
                    if inner.result_index == index:
                        row, index = self._operand_source(row, inner)
                        break
            if program.opcode[row] == "parameter":
                pairs.append(InPlacePair(program.parameter_number[row], index, leaf))
        return pairs

    def _operand_source(self, row: int, pair: InPlacePair) -> tuple[int, ShapeIndex]:
        """The instruction and index that the operand of a pair comes from."""
        operand = self.program.operand(row, pair.operand_number)
        return self._trace_back(operand, pair.operand_index)

    def _trace_back(self, row: int, index: ShapeIndex) -> tuple[int, ShapeIndex]:
        """Follow tuples, then get-tuple-elements, then bitcasts of arrays back to their source."""
        program = self.program
        while index and program.opcode[row] == "tuple":
            row, index = program.operand(row, index[0]), index[1:]
        while program.opcode[row] == "get-tuple-element":
            row, index = program.operand(row, 0), (program.tuple_index[row], *index)
        while not index and program.opcode[row] == "bitcast":
            row = program.operand(row, 0)
        return row, index


def _find_candidates(program: Program) -> set[int]:
    """The rows that may have a pair: by opcode, by a declared alias, or fusions of such."""
    candidates = {*program.operand_aliasing, *program.rows_with(*_IN_PLACE, *_STARTED)}
    fusions: dict[int, list[int]] = {}
    for row in program.rows_with("fusion"):
        for _, computation in program.calls.get(row, ()):
            fusions.setdefault(computation, []).append(row)
    stack = list(candidates)
    while stack:
        # Visit the fusions of a computation once, for its first candidate.
        for fusion in fusions.pop(program.computation[stack.pop()], ()):
            candidates.add(fusion)
            stack.append(fusion)
    return candidates


def _pairs_by_number(count: int) -> list[InPlacePair]:
    """Operand i shares memory with result i; a single operand with the complete result."""
    if count == 1:
        return [InPlacePair(0, (), ())]
    return [InPlacePair(number, (), (number,)) for number in range(count)]


def in_place_slots(program: Program, slots: Slots) -> list[tuple[int, int]]:
    """The in-place pairs of the instructions that have slots: operand's slot, result's slot.

    In text order. Raises DumpError if a pair names a part that does not exist.
    """
    rules = InPlaceRules(program)
    pairs = []
    for row in sorted(rules.rows):
        if not slots.count(row):
            continue
        for pair in rules.pairs(row):
            operand = program.operand(row, pair.operand_number)
            operand_slot = slots.find(operand, pair.operand_index)
            result_slot = slots.find(row, pair.result_index)
            if NONE in (operand_slot, result_slot):
                raise program.error(row, "aliases a part of a shape that does not exist")
            pairs.append((operand_slot, result_slot))
    return pairs
