"""The first named instruction that reads a value, also inside of fusions."""

from collections import defaultdict
from functools import cached_property

from ..named_program import CONVERTS_OR_RESHAPES, COPIES
from ..program import NONE
from ..values import Values

_COPIES_OR_CONVERTS = COPIES | CONVERTS_OR_RESHAPES
# XLA names these after the instruction that reads them.
_RENAMED = COPIES | {"bitcast"}


class Readers:
    """The readers of values; the results are cached.

    The reader of a fusion's operand is the first instruction in the fusion with a strong op_name.
    """

    def __init__(self, values: Values) -> None:
        self._values, self._named = values, values.named
        self._inner: dict[int, int] = {}

    def inner_reader(self, user: int, operand_number: int) -> int:
        """The instruction that reads an operand of a user: the user itself, or one in the fusion.

        In a fusion the search starts at the operand's parameter and passes through readers without
        a strong op_name, level by level. If no reader has one, the fusion is the reader.
        """
        program = self._named.program
        if program.opcode[user] != "fusion":
            return user
        parameter = program.parameter(program.callee(user, "calls"), operand_number, caller=user)
        if parameter not in self._inner:
            self._inner[parameter] = self._find_inner_reader(parameter)
        reader = self._inner[parameter]
        return user if reader == NONE else reader

    def _find_inner_reader(self, parameter: int) -> int:
        """The nearest named reader of a fused instruction, breadth first, or NONE."""
        program = self._named.program
        readers_of = program.readers_in(program.computation[parameter])
        level, visited = [parameter], {parameter}
        while level:
            readers = [reader for row in level for reader in readers_of.get(row, ())]
            for reader in readers:
                if self._named.can_be_owner[reader]:
                    return reader
            level = sorted(set(readers) - visited)
            visited.update(level)
        return NONE

    def first_reader(self, value: int) -> int:
        """The first instruction with a strong op_name that reads a value or a copy of it, or NONE.

        The readers of the value come first, then those of its copies, then those of their copies.
        """
        level, visited = [value], {value}
        while level:
            for source in level:
                reader = self._named_reader(source)
                if reader != NONE:
                    return reader
            copies = [copy for source in level for copy in self._copies.get(source, ())]
            level = [copy for copy in copies if copy not in visited]
            visited.update(level)
        return NONE

    def _named_reader(self, value: int) -> int:
        """The first instruction with a strong op_name that reads a value, or NONE."""
        opcodes = self._named.program.opcode
        for user, operand_number in self._uses.get(value, ()):
            reader = self.inner_reader(user, operand_number)
            if self._named.can_be_owner[reader] and opcodes[user] not in _RENAMED:
                return reader
        return NONE

    @cached_property
    def _uses(self) -> dict[int, list[tuple[int, int]]]:
        """By value, its uses in text order: (user, number of the operand)."""
        flow = self._named.flow
        uses: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for value, row, operand in zip(flow.use_value, flow.use_row, flow.use_operand, strict=True):
            uses[value].append((row, operand))
        for pairs in uses.values():
            pairs.sort()
        return uses

    @cached_property
    def _copies(self) -> dict[int, list[int]]:
        """By value, its copies and conversions, in text order."""
        values = self._values
        copies: dict[int, list[int]] = defaultdict(list)
        for value in range(len(values)):
            if values.array[value] is not None and values.opcode[value] in _COPIES_OR_CONVERTS:
                source = values.operand(value, 0)
                if source != NONE:
                    copies[source].append(value)
        return copies

    def defined_values(self, value: int) -> set[int]:
        """The values that the readers of a value define."""
        return {
            result
            for user, _ in self._uses.get(value, ())
            for result in self._defined_by.get(user, ())
        }

    @cached_property
    def _defined_by(self) -> dict[int, list[int]]:
        defined: dict[int, list[int]] = defaultdict(list)
        for value, row in enumerate(self._values.row):
            defined[row].append(value)
        return defined
