"""Ways back inside of fusions, from a result to the instruction that computes it."""

from collections.abc import Callable
from typing import Final

from ..named_program import KEEPS_ELEMENTS
from ..program import NONE
from ..values import Values
from .chains import ChainEnds

# The result has some of the operand's elements, or all, or repeats them.
_TAKES_ELEMENTS: Final = KEEPS_ELEMENTS | {"slice", "pad", "broadcast", "dynamic-slice"}
# These carry the name of the instruction that reads them.
_RENAMED: Final = frozenset(("bitcast", "copy"))


class Fusions:
    """Ways back from an instruction inside of a fusion to one that its elements come from.

    Each way leads from an instruction to its first operand while the instruction is of certain
    opcodes, and is a dict from a row to the row at its end. All ways lead through nested fusions:
    from a parameter to the fusion's operand, and from a fusion to its root. At a parameter of an
    outermost fusion a way ends. Instructions that are not fused lead nowhere.

    Attributes:
        root: by array that a fusion defines, the instruction at the fusion's root that computes it.
        same_elements: through nameless instructions that keep the elements.
        moved: as `same_elements`, and through bitcasts and copies of any name.
        computing: as `moved`, and through nested fusions of any name, to the last instruction
            that owns what it computes: the first behind bitcasts and copies, else one of these.
        some_elements: through nameless instructions that keep, take or repeat elements.
        sliced_from: through bitcasts and copies, and others that keep elements if they are
            nameless or named as a slice.
        written: through bitcasts, copies and converts of any name, which may follow an update.
        written_into: from a dynamic-update-slice to what its buffer held before all updates.
        rearranged: through all that rearranges, converts, cuts or pads, of any name.
        repeated: through all that keeps or repeats elements, of any name.
    """

    def __init__(self, values: Values) -> None:
        named = self._named = values.named
        self.root = self._find_roots(values)
        is_named = named.is_named
        opcodes = named.program.opcode

        def is_nameless(row: int) -> bool:
            return not is_named[row]

        def is_renamed_or_nameless(row: int) -> bool:
            return not is_named[row] or opcodes[row] in _RENAMED

        def is_slice_or_nameless(row: int) -> bool:
            # XLA drops the dimension of a single slice by a bitcast, or by a reduce.
            if opcodes[row] in _RENAMED or named.op_name[row].is_slice:
                return True
            return not is_named[row] and opcodes[row] != "reduce"

        def is_written(row: int) -> bool:
            return not is_named[row] or opcodes[row] in (*_RENAMED, "dynamic-update-slice")

        self.same_elements = self._way(KEEPS_ELEMENTS, is_nameless)
        self.moved = self._way(KEEPS_ELEMENTS, is_renamed_or_nameless)
        self.some_elements = self._way(_TAKES_ELEMENTS, is_nameless)
        self.sliced_from = self._way(KEEPS_ELEMENTS | {"reduce"}, is_slice_or_nameless)
        self.written = self._way(_RENAMED | {"convert"}, _is_any)
        self.written_into = self._way(KEEPS_ELEMENTS | {"dynamic-update-slice"}, is_written)
        self.rearranged = self._way(KEEPS_ELEMENTS | {"slice", "pad", "dynamic-slice"}, _is_any)
        self.repeated = self._way(KEEPS_ELEMENTS | {"broadcast"}, _is_any)
        self.computing = ChainEnds(
            lambda row: self._step(
                row,
                KEEPS_ELEMENTS,
                lambda row: opcodes[row] == "fusion" or is_renamed_or_nameless(row),
            ),
            prefer=lambda row, behind: behind if named.owns[behind] or not named.owns[row] else row,
        )
        # Through nested fusions and tuples alone, as far as these are no targets.
        self._through_calls_to_name = self._way(frozenset(), lambda row: not self._is_name(row))
        self._through_calls_to_weak_name = self._way(
            frozenset(), lambda row: not self._is_weak_name(row)
        )

    def _way(self, opcodes: frozenset[str], is_passed: Callable[[int], bool]) -> ChainEnds:
        return ChainEnds(lambda row: self._step(row, opcodes, is_passed))

    def _step(self, row: int, opcodes: frozenset[str], is_passed: Callable[[int], bool]) -> int:
        """One step back through these opcodes where they may be passed; the row itself at the end.

        Parameters of nested fusions and elements of tuples are always passed.
        """
        named, program = self._named, self._named.program
        if not named.is_fused[row]:
            return row
        opcode = program.opcode[row]
        if opcode == "parameter":
            operand = named.outer_operand.get(row, row)
            return operand if named.is_fused[operand] else row
        if opcode == "get-tuple-element":
            return self._element(row)
        if opcode == "fusion":
            root = self._root(row)
            return root if is_passed(row) and program.opcode[root] != "tuple" else row
        if opcode in opcodes and is_passed(row):
            return program.operand(row, 0)
        return row

    def _element(self, row: int) -> int:
        """The operand of a tuple that a get-tuple-element takes; the row itself without a tuple."""
        program = self._named.program
        source = program.operand(row, 0)
        if program.opcode[source] == "fusion":
            source = self._root(source)
        if program.opcode[source] != "tuple":
            return row
        return program.operand(source, program.tuple_index[row])

    def _root(self, fusion: int) -> int:
        """The root of a fusion's computation; the fusion itself if the root was not read."""
        root = self._named.program.called_root(fusion)
        return fusion if root == NONE else root

    def outer_value(self, row: int) -> int:
        """The value that a fused parameter stands for; NONE for other instructions."""
        return self._named.value_of(self._named.outer_operand.get(row, NONE))

    def _find_roots(self, values: Values) -> dict[int, int]:
        program = self._named.program
        roots = {}
        for value, opcode in enumerate(values.opcode):
            if opcode == "fusion" and values.array[value] is not None:
                root = self._root(values.row[value])
                if program.opcode[root] == "tuple":
                    root = program.operand(root, values.element(value))
                roots[value] = root
        return roots

    def is_fill(self, row: int) -> bool:
        """Whether a fused instruction repeats a scalar constant of the fusion."""
        named = self._named
        if not named.is_fused[row]:
            return False
        source = self.repeated[row]
        return named.program.opcode[source] == "constant" and named.rank[source] == 0

    def nearest_name(self, row: int) -> int:
        """The nearest instruction behind a fused one that owns what it computes, or NONE.

        The distance is the number of steps within the fusion; of equally near ones, the larger
        operands come first. Constants and broadcasts of one number compute nothing.
        """
        nearest = self._nearest(row, self._is_name, self._through_calls_to_name)
        return nearest if nearest == NONE else self.computing[nearest]

    def nearest_weak_name(self, row: int) -> int:
        """As `nearest_name`, the nearest instruction with a wrapper's or a joined name."""
        return self._nearest(row, self._is_weak_name, self._through_calls_to_weak_name)

    def _is_name(self, row: int) -> bool:
        is_constant = self._named.program.opcode[row] == "constant"
        return self._named.owns[row] and not is_constant and not self.is_fill(row)

    def _is_weak_name(self, row: int) -> bool:
        is_input = self._named.program.opcode[row] in ("constant", "parameter")
        return self._named.has_weak_name(row) and not is_input

    def _nearest(self, root: int, is_target: Callable[[int], bool], calls: ChainEnds) -> int:
        """The nearest target behind an instruction, breadth first."""
        level, visited = [root], set[int]()
        while level:
            operands: dict[int, None] = {}
            for row in level:
                source = calls[row]
                if is_target(source):
                    return source
                operands |= dict.fromkeys(self._fused_operands(source))
            level = [row for row in operands if row not in visited]
            visited.update(level)
        return NONE

    def _fused_operands(self, row: int) -> list[int]:
        """The operands of an instruction within the fusion, the largest first."""
        named, program = self._named, self._named.program
        # A nested fusion with several results stands for its root.
        if program.opcode[row] == "fusion" and named.is_fused[row]:
            row = self._root(row)
        operands = sorted(program.operands[row], key=lambda row: -named.bytes[row])
        return [row for row in operands if named.is_fused[row]]


def _is_any(row: int) -> bool:
    return True
