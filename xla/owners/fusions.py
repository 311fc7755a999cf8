"""Ways back inside of fusions, from a result to the instruction that computes it."""

from collections.abc import Callable, Set
from functools import partial
from typing import Final

from ..named_program import KEEPS_ELEMENTS, NamedProgram
from ..program import NONE, Program
from ..values import Values
from .chains import ChainEnds

# These carry the name of the instruction that reads them.
_RENAMED: Final = frozenset(("bitcast", "copy"))
_CUTS_OR_PADS: Final = frozenset(("slice", "pad", "dynamic-slice"))


_MayPass = Callable[[NamedProgram, int], bool]


def _always(named: NamedProgram, row: int) -> bool:
    return True


def _is_nameless(named: NamedProgram, row: int) -> bool:
    return not named.is_named[row]


def _is_renamed_or_nameless(named: NamedProgram, row: int) -> bool:
    return not named.is_named[row] or named.program.opcode[row] in _RENAMED


def _is_slice_or_nameless(named: NamedProgram, row: int) -> bool:
    # XLA drops the dimension of a single slice by a bitcast, or by a reduce.
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
    """The instruction before a fused one: one step of a way; NONE at its end.

    Args:
        opcodes: those that lead on to their first operand.
        may_pass: whether the way leads on from an instruction. From parameters of nested fusions
            and elements of tuples it always does.
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


def _is_name(named: NamedProgram, repeated: ChainEnds, row: int) -> bool:
    """Whether an instruction owns what it computes; a constant or a fill computes nothing."""
    is_constant = named.program.opcode[row] == "constant"
    return named.owns[row] and not is_constant and not _is_fused_fill(named, repeated, row)


class Fusions:
    """Ways back from an instruction inside of a fusion to one that its elements come from.

    Each way leads from an instruction to its first operand while the instruction has certain
    opcodes, and is a dict from a row to the row at its end. All ways lead from a parameter of a
    nested fusion to the fusion's operand, and through elements of tuples; from a nested fusion to
    its root only where the way may pass the fusion and its root is no tuple. At a parameter of an
    outermost fusion a way ends. An instruction that is not fused is the end of its own way.

    Attributes:
        root: by array that a fusion defines, the instruction at the fusion's root that computes it.
        same_elements: through nameless instructions that keep the elements.
        moved: as `same_elements`, and through bitcasts and copies of any name.
        computing: as `moved`, and through nested fusions of any name: the end of that way if it
            owns what it computes, otherwise the last owner on the way; the end itself if nothing on
            the way is an owner.
        some_elements: through nameless instructions that keep, take or repeat elements.
        sliced_from: through bitcasts and copies, and others that keep elements if they are
            nameless or named as a slice.
        written: through bitcasts, copies and converts of any name, which may follow an update.
        written_into: from a dynamic-update-slice to the contents of its buffer before all updates.
        rearranged: through everything that rearranges, converts, cuts or pads, of any name.
        repeated: through everything that keeps or repeats elements, of any name.
    """

    def __init__(self, values: Values) -> None:
        named = self._named = values.named
        owns = named.owns

        def last_owner(row: int, source: int) -> int:
            return row if owns[row] and not owns[source] else source

        def way(
            opcodes: Set[str],
            may_pass: _MayPass = _always,
            prefer: Callable[[int, int], int] | None = None,
        ) -> ChainEnds:
            return ChainEnds(partial(_step_back, named, opcodes, may_pass), prefer)

        takes_elements = KEEPS_ELEMENTS | _CUTS_OR_PADS | {"broadcast"}
        self.root = self._find_roots(values)
        self.same_elements = way(KEEPS_ELEMENTS, _is_nameless)
        self.moved = way(KEEPS_ELEMENTS, _is_renamed_or_nameless)
        self.computing = way(KEEPS_ELEMENTS, _is_fusion_or_nameless, last_owner)
        self.some_elements = way(takes_elements, _is_nameless)
        self.sliced_from = way(KEEPS_ELEMENTS | {"reduce"}, _is_slice_or_nameless)
        self.written = way(_RENAMED | {"convert"})
        self.written_into = way(KEEPS_ELEMENTS | {"dynamic-update-slice"}, _is_update_or_nameless)
        self.rearranged = way(KEEPS_ELEMENTS | _CUTS_OR_PADS)
        self.repeated = way(KEEPS_ELEMENTS | {"broadcast"})
        is_name = self._is_name = partial(_is_name, named, self.repeated)
        self._through_nested = way(frozenset(), lambda _, row: not is_name(row))

    def _find_roots(self, values: Values) -> dict[int, int]:
        program = self._named.program
        roots = {}
        for value, opcode in enumerate(values.opcode):
            if opcode == "fusion" and values.array[value] is not None:
                root = _fused_root(program, values.row[value])
                if program.opcode[root] == "tuple":
                    root = program.operand(root, values.element(value))
                roots[value] = root
        return roots

    def outer_value(self, row: int) -> int:
        """The value that a fused parameter stands for; NONE for other instructions."""
        return self._named.value_of(self._named.outer_operand.get(row, NONE))

    def is_fill(self, row: int) -> bool:
        """Whether a fused instruction repeats a scalar constant of the fusion."""
        return _is_fused_fill(self._named, self.repeated, row)

    def nearest_name(self, root: int) -> int:
        """The nearest instruction behind a fused one that owns what it computes, or NONE.

        The distance is the number of steps within the fusion; of equally near ones, the larger
        operands come first. Constants and broadcasts of one number compute nothing.
        """
        level, visited = [root], set[int]()
        while level:
            operands: dict[int, None] = {}
            for row in level:
                source = self._through_nested[row]
                if self._is_name(source):
                    return self.computing[source]
                operands |= dict.fromkeys(self._fused_operands(source))
            level = [row for row in operands if row not in visited]
            visited.update(level)
        return NONE

    def _fused_operands(self, row: int) -> list[int]:
        """The operands of an instruction within the fusion, the largest first."""
        named, program = self._named, self._named.program
        # A nested fusion with several results stands for its root.
        if program.opcode[row] == "fusion" and named.is_fused[row]:
            row = _fused_root(program, row)
        operands = sorted(program.operands[row], key=lambda operand: -named.bytes[operand])
        return [operand for operand in operands if named.is_fused[operand]]
