"""Dependencies between the arrays of a program, through fusions, calls and loops."""

from collections.abc import Collection, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...xla.program import NONE
from .graph import Graph, Place

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
        self.joins: set[Place] = set()
        self.same: list[tuple[Place, Place]] = []
        # A dict keeps the order, and an array that an instruction reads twice counts once.
        sources: list[dict[Place, None]] = [{} for _ in graph.instruction]
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
            if opcode in _WITH_RULES or is_fetch or graph.whole[row] in self.joins:
                continue
            operands = dict.fromkeys(
                source for operand in program.operands[row] for source in self._arrays(operand)
            )
            for reader in self._arrays(row):
                sources[reader].update(operands)
        self.sources: list[list[Place]] = [list(places) for places in sources]

    @cached_property
    def readers(self) -> list[list[Place]]:
        """By slot, the slots that are computed from it."""
        readers: list[list[Place]] = [[] for _ in self.sources]
        for reader, sources in enumerate(self.sources):
            for source in sources:
                readers[source].append(reader)
        return readers

    @cached_property
    def reader(self) -> Ints:
        """The readers of all pairs of a reader and a source, ascending."""
        counts = [len(sources) for sources in self.sources]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def source(self) -> Ints:
        """The sources of the same pairs."""
        return np.array([source for sources in self.sources for source in sources], np.int64)

    def before(self, place: Place, opcodes: Collection[str]) -> Iterator[Place]:
        """The slot and all that it is computed from by these opcodes, each once."""
        visited, stack = {place}, [place]
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

    def parts(self, reader: Place, source: Place) -> Iterator[tuple[Place, Place]]:
        """Pairs of all parts of two slots; none if they have not as many, or one is NONE."""
        sizes = self._graph.slots.size
        if NONE not in (reader, source) and sizes[reader] == sizes[source]:
            for part in range(sizes[reader]):
                yield reader + part, source + part

    def _arrays(self, row: int) -> Iterator[Place]:
        """The slots of an instruction that are arrays, in order."""
        start, arrays = self._graph.whole[row], self._graph.arrays
        for place in range(start, start + self._graph.slots.size[start]):
            if arrays[place] is not None:
                yield place

    def _add_same(self, reader: Place, source: Place) -> None:
        """Add the arrays of two slots to the pairs that are the same."""
        arrays = self._graph.arrays
        for one, other in self.parts(reader, source):
            if arrays[one] is not None and arrays[other] is not None:
                self.same.append((one, other))

    def _add_forwarded(self, row: int, opcode: str) -> None:
        """Add what an instruction forwards within its computation."""
        program, graph, whole = self._program, self._graph, self._graph.whole
        result = whole[row]
        if opcode == "tuple":
            for number, operand in enumerate(program.operands[row]):
                self._add_same(graph.element(result, number), whole[operand])
        elif opcode == "get-tuple-element":
            source = whole[program.operand(row, 0)]
            self._add_same(result, graph.element(source, program.tuple_index[row]))
        elif opcode == "while" or opcode in _FORWARDING:
            self._add_same(result, whole[program.operand(row, 0)])
        elif opcode in ("async-done", "copy-done"):
            start = whole[program.operand(row, 0)]
            self._add_same(result, graph.element(start, 1 if opcode == "async-done" else 0))
        elif opcode == "copy-start":
            for number in (0, 1):
                self._add_same(graph.element(result, number), whole[program.operand(row, 0)])
        elif opcode == "async-start":
            arguments = graph.element(result, 0)
            for number, operand in enumerate(program.operands[row]):
                self._add_same(graph.element(arguments, number), whole[operand])
        elif opcode == "custom-call" and program.custom_call_target.get(row) == _JOIN:
            self.joins.add(result)
            fetched = program.operand(row, 0)
            while program.opcode[fetched] in _BEFORE_JOIN:
                fetched = program.operand(fetched, 0)
            self._add_same(result, whole[fetched])

    def _add_calls(self, row: int) -> None:
        """Add the parameters of what an instruction calls, and its results from their roots."""
        program, graph, whole = self._program, self._graph, self._graph.whole
        opcode, operands = program.opcode[row], program.operands[row]
        for number, (attribute, computation) in enumerate(program.calls[row]):
            if opcode not in ("while", "conditional", "call") and attribute != "calls":
                continue
            # The first operand of a conditional is its predicate; each branch has one.
            first = 1 + number if opcode == "conditional" else 0
            for parameter in graph.parameters(computation):
                operand = first + program.parameter_number[parameter]
                if operand < len(operands):
                    self._add_same(whole[parameter], whole[operands[operand]])
                    if opcode == "while":
                        # The state of the next iteration comes from the body.
                        body = program.root[program.callee(row, "body")]
                        self._add_same(whole[parameter], whole[body])
            root = whole[program.root[computation]]
            if opcode in ("fusion", "call", "conditional") or attribute == "body":
                self._add_same(whole[row], root)
            elif opcode == "async-start":
                self._add_same(graph.element(whole[row], 1), root)
