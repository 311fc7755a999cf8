"""Dependencies between the arrays of a program, through fusions, calls and loops."""

from collections.abc import Collection, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..xla.program import NONE
from .graph import Graph, Slot

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Their result is their operand under another name.
_FORWARDING = ("async-update", "optimization-barrier", "opt-barrier", "domain", "add-dependency")
# These have rules of their own; the results of others are computed from all their operands.
_WITH_RULES = frozenset(
    {"async-done", "async-start", "call", "conditional", "copy-done", "copy-start", "fusion"}
    | {"get-tuple-element", "parameter", "tuple", "while", *_FORWARDING}
)
# The custom call that joins what is fetched in parts, and the opcodes between.
_JOIN, _BEFORE_JOIN = "ConcatBitcast", ("async-done", "async-start", "bitcast")


class Flow:
    """The arrays that each array of a program is computed from.

    Attributes:
        sources: by slot, the slots that it is computed from, in the order of operands.
        same: pairs of slots of which the first is the second under another name.
        joins: the slots at which a sliced prefetch of a TPU is complete again: their source is
            the array that is fetched, and the parts are left out.
    """

    def __init__(self, graph: Graph) -> None:
        """Follow all instructions. Raises DumpError where one lacks an operand or a callee."""
        self._graph, self._program = graph, graph.program
        program = graph.program
        self.joins: set[Slot] = set()
        self.same: list[tuple[Slot, Slot]] = []
        # A dict keeps the order, and an array that an instruction reads twice counts once.
        sources: list[dict[Slot, None]] = [{} for _ in graph.instruction]
        fetches = {
            program.callee(row, "calls")
            for row, opcode in enumerate(program.opcode)
            if opcode == "async-start"
        }
        for row, opcode in enumerate(program.opcode):
            self._add_forwarded(row, opcode)
        for row in program.calls:
            self._add_calls(row)
        for reader, source in self.same:
            sources[reader][source] = None
        for row, opcode in enumerate(program.opcode):
            is_fetch = opcode == "slice" and program.computation[row] in fetches
            if opcode in _WITH_RULES or is_fetch or graph.root_slot[row] in self.joins:
                continue
            operands = dict.fromkeys(
                source for operand in program.operands[row] for source in self._arrays(operand)
            )
            for reader in self._arrays(row):
                sources[reader].update(operands)
        self.sources: list[list[Slot]] = [list(slots) for slots in sources]

    @cached_property
    def readers(self) -> list[list[Slot]]:
        """By slot, the slots that are computed from it."""
        readers: list[list[Slot]] = [[] for _ in self.sources]
        for reader, sources in enumerate(self.sources):
            for source in sources:
                readers[source].append(reader)
        return readers

    @cached_property
    def reader(self) -> Ints:
        """The reader of each pair of a reader and a source, ascending by slot."""
        counts = [len(sources) for sources in self.sources]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def source(self) -> Ints:
        """The source of each pair, by slot; see `reader`."""
        return np.array([source for sources in self.sources for source in sources], np.int64)

    def before(self, slot: Slot, opcodes: Collection[str]) -> Iterator[Slot]:
        """The slot and all that it is computed from by these opcodes, each once."""
        visited, stack = {slot}, [slot]
        while stack:
            current = stack.pop()
            yield current
            if self._graph.opcode_at(current) in opcodes:
                for source in self.sources[current]:
                    if source not in visited:
                        visited.add(source)
                        stack.append(source)

    def leaving(self, region: Mask, inside: Mask) -> Ints:
        """The slots that are computed from a region and are not inside, ascending.

        Args:
            region, inside: masks of slots.
        """
        return np.unique(self.reader[region[self.source] & ~inside[self.reader]])

    def comes_back(self, region: Mask, inside: Mask) -> bool:
        """Whether the region is computed from a slot outside that is computed from the region.

        Args:
            region, inside: masks of slots; a slot that is not inside is outside.
        """
        stack = self.leaving(region, inside).tolist()
        is_region, is_inside = region.tolist(), inside.tolist()
        visited = set(stack)
        while stack:
            for reader in self.readers[stack.pop()]:
                if is_region[reader]:
                    return True
                if not is_inside[reader] and reader not in visited:
                    visited.add(reader)
                    stack.append(reader)
        return False

    def parts(self, reader: Slot, source: Slot) -> Iterator[tuple[Slot, Slot]]:
        """Pairs of all parts of two slots; none if they have not as many, or one is NONE."""
        sizes = self._graph.slots.size
        if NONE not in (reader, source) and sizes[reader] == sizes[source]:
            for part in range(sizes[reader]):
                yield reader + part, source + part

    def _arrays(self, row: int) -> Iterator[Slot]:
        """The slots of an instruction that are arrays, in order."""
        start, arrays = self._graph.root_slot[row], self._graph.arrays
        for slot in range(start, start + self._graph.slots.size[start]):
            if arrays[slot] is not None:
                yield slot

    def _add_same(self, reader: Slot, source: Slot) -> None:
        """Add the arrays of two slots to the pairs that are the same."""
        arrays = self._graph.arrays
        for one, other in self.parts(reader, source):
            if arrays[one] is not None and arrays[other] is not None:
                self.same.append((one, other))

    def _add_forwarded(self, row: int, opcode: str) -> None:
        """Add what an instruction forwards within its computation."""
        program, graph, root_slot = self._program, self._graph, self._graph.root_slot
        result = root_slot[row]
        if opcode == "tuple":
            for number, operand in enumerate(program.operands[row]):
                self._add_same(graph.element(result, number), root_slot[operand])
        elif opcode == "get-tuple-element":
            source = root_slot[program.operand(row, 0)]
            self._add_same(result, graph.element(source, program.tuple_index[row]))
        elif opcode == "while" or opcode in _FORWARDING:
            self._add_same(result, root_slot[program.operand(row, 0)])
        elif opcode in ("async-done", "copy-done"):
            start = root_slot[program.operand(row, 0)]
            self._add_same(result, graph.element(start, 1 if opcode == "async-done" else 0))
        elif opcode == "copy-start":
            for number in (0, 1):
                self._add_same(graph.element(result, number), root_slot[program.operand(row, 0)])
        elif opcode == "async-start":
            arguments = graph.element(result, 0)
            for number, operand in enumerate(program.operands[row]):
                self._add_same(graph.element(arguments, number), root_slot[operand])
        elif opcode == "custom-call" and program.custom_call_target.get(row) == _JOIN:
            self.joins.add(result)
            fetched = program.operand(row, 0)
            while program.opcode[fetched] in _BEFORE_JOIN:
                fetched = program.operand(fetched, 0)
            self._add_same(result, root_slot[fetched])

    def _add_calls(self, row: int) -> None:
        """Add the parameters of an instruction's callees, and its result from their roots."""
        program, graph, root_slot = self._program, self._graph, self._graph.root_slot
        opcode, operands = program.opcode[row], program.operands[row]
        for number, (attribute, computation) in enumerate(program.calls[row]):
            if opcode not in ("while", "conditional", "call") and attribute != "calls":
                continue
            # The first operand of a conditional is its predicate; each branch has one.
            first = 1 + number if opcode == "conditional" else 0
            for parameter in graph.program.parameters(computation):
                operand = first + program.parameter_number[parameter]
                if operand < len(operands):
                    self._add_same(root_slot[parameter], root_slot[operands[operand]])
                    if opcode == "while":
                        # The state of the next iteration comes from the body.
                        body = program.root[program.callee(row, "body")]
                        self._add_same(root_slot[parameter], root_slot[body])
            root = root_slot[program.root[computation]]
            if opcode in ("fusion", "call", "conditional") or attribute == "body":
                self._add_same(root_slot[row], root)
            elif opcode == "async-start":
                self._add_same(graph.element(root_slot[row], 1), root)
