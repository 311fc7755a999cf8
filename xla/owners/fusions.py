"""Chains inside of fusions, from a result back to the instruction that computes it."""

from collections.abc import Callable, Set
from functools import partial
from typing import Final

from ..named_program import KEEPS_ELEMENTS, NamedProgram
from ..program import NONE, Program
from ..values import Values
from .chains import ChainEnds

# XLA names these after the instruction that reads them.
_RENAMED: Final = frozenset(("bitcast", "copy"))
_SLICES_OR_PADS: Final = frozenset(("slice", "pad", "dynamic-slice"))

_MayPass = Callable[[NamedProgram, int], bool]


def _always(named: NamedProgram, row: int) -> bool:
    return True


def _is_nameless(named: NamedProgram, row: int) -> bool:
    return not named.is_named[row]


def _is_renamed_or_nameless(named: NamedProgram, row: int) -> bool:
    return not named.is_named[row] or named.program.opcode[row] in _RENAMED


def _is_slice_or_nameless(named: NamedProgram, row: int) -> bool:
    # XLA drops the dimension of a slice of size 1 by a bitcast, or by a reduce.
    opcode = named.program.opcode[row]
    if opcode in _RENAMED or named.op_name[row].is_slice:
        return True
    return not named.is_named[row] and opcode != "reduce"


def _is_update_or_nameless(named: NamedProgram, row: int) -> bool:
    opcode = named.program.opcode[row]
    return _is_renamed_or_nameless(named, row) or opcode == "dynamic-update-slice"


def _is_fusion_or_nameless(named: NamedProgram, row: int) -> bool:
    return _is_renamed_or_nameless(named, row) or named.program.opcode[row] == "fusion"


def _step_back(named: NamedProgram, opcodes: Set[str], may_pass: _MayPass, row: int) -> int:
    """The instruction that a fused one has its elements from: one step of a chain; NONE at its end.

    Args:
        opcodes: those that the chain passes to their first operand.
        may_pass: whether the chain passes an instruction. It always passes parameters of nested
            fusions and elements of tuples.
    """
    program = named.program
    if not named.is_fused[row]:
        return NONE
    opcode = program.opcode[row]
    if opcode == "parameter":
        operand = named.outer_operand.get(row, NONE)
        return operand if operand != NONE and named.is_fused[operand] else NONE
    if opcode == "get-tuple-element":
        return _element_of_tuple(program, row)
    if not may_pass(named, row):
        return NONE
    if opcode == "fusion":
        root = _fused_root(program, row)
        return NONE if program.opcode[root] == "tuple" else root
    return program.operand(row, 0) if opcode in opcodes else NONE


def _fused_root(program: Program, fusion: int) -> int:
    """The root of a fusion's computation; the fusion itself if the root was not read."""
    root = program.called_root(fusion)
    return fusion if root == NONE else root


def _element_of_tuple(program: Program, row: int) -> int:
    """The operand of a tuple that a get-tuple-element takes; NONE if there is no tuple."""
    source = program.operand(row, 0)
    if program.opcode[source] == "fusion":
        source = _fused_root(program, source)
    if program.opcode[source] != "tuple":
        return NONE
    return program.operand(source, program.tuple_index[row])


def _is_fused_fill(named: NamedProgram, repeated: ChainEnds, row: int) -> bool:
    """Whether a fused instruction repeats a scalar constant of the fusion."""
    if not named.is_fused[row]:
        return False
    source = repeated[row]
    return named.program.opcode[source] == "constant" and named.rank[source] == 0


def _is_owner(named: NamedProgram, repeated: ChainEnds, row: int) -> bool:
    """Whether an instruction owns what it computes; a constant or a fill computes nothing."""
    is_constant = named.program.opcode[row] == "constant"
    return named.can_be_owner[row] and not is_constant and not _is_fused_fill(named, repeated, row)


class Fusions:
    """Chains from an instruction inside of a fusion back to one that its elements come from.

    Each chain leads from an instruction to its first operand while the instruction has certain
    opcodes; its attribute is a dict from a row to the row at the chain's end. All chains lead from
    a parameter of a nested fusion to the fusion's operand, and through elements of tuples; from a
    nested fusion to its root only if the chain may pass the fusion and its root is no tuple. A
    parameter of an outermost fusion, or an instruction that is not fused, ends a chain.

    Attributes:
        root_row: by value that a fusion defines, the row at the fusion's root that computes it.
        same_elements: through nameless instructions that keep the elements.
        moved: as `same_elements`, and through bitcasts and copies of any name.
        computing: as `moved`, and through nested fusions of any name: the end of that chain if it
            can own, otherwise the row nearest to the end that can; the end itself if none can.
        some_elements: through nameless instructions that keep, take or repeat elements.
        sliced_from: through bitcasts and copies, and others that keep elements if they are
            nameless or named as a slice.
        written: through bitcasts, copies and converts of any name, which may read an update.
        written_into: from a dynamic-update-slice to the contents of its buffer before all updates.
        rearranged: through everything that rearranges, converts, slices or pads, of any name.
        repeated: through everything that keeps or repeats elements, of any name.
    """

    def __init__(self, values: Values) -> None:
        named = self._named = values.named
        can_be_owner = named.can_be_owner

        def prefer_owner(row: int, source: int) -> int:
            return row if can_be_owner[row] and not can_be_owner[source] else source

        def chain(
            opcodes: Set[str],
            may_pass: _MayPass = _always,
            prefer: Callable[[int, int], int] | None = None,
        ) -> ChainEnds:
            return ChainEnds(partial(_step_back, named, opcodes, may_pass), prefer)

        takes_elements = KEEPS_ELEMENTS | _SLICES_OR_PADS | {"broadcast"}
        self.root_row = self._find_root_rows(values)
        self.same_elements = chain(KEEPS_ELEMENTS, _is_nameless)
        self.moved = chain(KEEPS_ELEMENTS, _is_renamed_or_nameless)
        self.computing = chain(KEEPS_ELEMENTS, _is_fusion_or_nameless, prefer_owner)
        self.some_elements = chain(takes_elements, _is_nameless)
        self.sliced_from = chain(KEEPS_ELEMENTS | {"reduce"}, _is_slice_or_nameless)
        self.written = chain(_RENAMED | {"convert"})
        self.written_into = chain(KEEPS_ELEMENTS | {"dynamic-update-slice"}, _is_update_or_nameless)
        self.rearranged = chain(KEEPS_ELEMENTS | _SLICES_OR_PADS)
        self.repeated = chain(KEEPS_ELEMENTS | {"broadcast"})
        is_owner = self._is_owner = partial(_is_owner, named, self.repeated)
        self._through_nested = chain(frozenset(), lambda _, row: not is_owner(row))

    def _find_root_rows(self, values: Values) -> dict[int, int]:
        program = self._named.program
        root_row = {}
        for value, opcode in enumerate(values.opcode):
            if opcode == "fusion" and values.array[value] is not None:
                root = _fused_root(program, values.row[value])
                is_tuple = program.opcode[root] == "tuple"
                element = values.element(value)
                root_row[value] = program.operand(root, element) if is_tuple else root
        return root_row

    def outer_value(self, row: int) -> int:
        """The value that a fused parameter stands for; NONE for other instructions."""
        return self._named.value_of(self._named.outer_operand.get(row, NONE))

    def is_fill(self, row: int) -> bool:
        """Whether a fused instruction repeats a scalar constant of the fusion."""
        return _is_fused_fill(self._named, self.repeated, row)

    def nearest_owner(self, start: int) -> int:
        """The nearest instruction that a fused one depends on and that can own, or NONE.

        The distance is the number of operands between them, inside of the fusion; of equally near
        ones, the larger operands come first. Constants and broadcasts of one number do not count.
        """
        level, visited = [start], set[int]()
        while level:
            operands: dict[int, None] = {}
            for row in level:
                source = self._through_nested[row]
                if self._is_owner(source):
                    return self.computing[source]
                operands |= dict.fromkeys(self._fused_operands(source))
            level = [row for row in operands if row not in visited]
            visited.update(level)
        return NONE

    def _fused_operands(self, row: int) -> list[int]:
        """The operands of an instruction within the fusion, the largest first."""
        named, program = self._named, self._named.program
        # A nested fusion with several results is not passed: its root has the operands.
        is_nested = program.opcode[row] == "fusion" and named.is_fused[row]
        reader = _fused_root(program, row) if is_nested else row
        operands = sorted(program.operands[reader], key=lambda operand: -named.bytes[operand])
        return [operand for operand in operands if named.is_fused[operand]]
