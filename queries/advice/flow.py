"""Which arrays are computed from which, through fusions, calls and loops."""

from collections.abc import Collection, Iterator
from functools import cached_property

import numpy as np

from ...xla.columns.program import NONE, Ints, Mask
from ...xla.columns.runs import joined, starts_of
from .asked_program import Graph, Lists, Place, packed

# They give what they take, under another name.
_HANDS_ON = ("async-update", "optimization-barrier", "opt-barrier", "domain", "add-dependency")
# What is computed by these is told by rules of their own; what others give is computed from all
# that they take.
_TOLD = (
    *("async-done", "async-start", "call", "conditional", "copy-done", "copy-start", "fusion"),
    *("get-tuple-element", "parameter", "tuple", "while", *_HANDS_ON),
)
# The custom call that joins what is fetched in parts, and what stands between.
_JOINS, _ON_THE_WAY = "ConcatBitcast", ("async-done", "async-start", "bitcast")
_Pairs = tuple[Ints, Ints]


class Flow:
    """From which other arrays each array of a program is computed, as pairs of places.

    reader, source: the pairs, by the reader, and as it takes its operands; same: those pairs in
    which the reader is what it reads. joins: the places where what XLA for TPU fetches in parts is
    whole again: they read what is fetched, and the parts are nobody's.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph, slots = graph, graph.slots
        self._join_rows = graph.program.rows("custom-call")
        is_join = graph.program.custom_call_target.is_one_of(_JOINS)[self._join_rows]
        self._join_rows = self._join_rows[is_join]
        self.joins = np.zeros(len(slots), bool)
        self.joins[slots.whole(self._join_rows)] = True
        self.same = self._arrays([*self._handed_on(), *self._calls()])
        reader, source = self._arrays([self.same, self._computed()])
        by_reader = np.argsort(reader, kind="stable")
        reader, source = reader[by_reader], source[by_reader]
        # What an instruction takes twice counts once.
        _, first = np.unique(reader * len(slots) + source, return_index=True)
        first.sort()
        self.reader, self.source = reader[first], source[first]

    @cached_property
    def sources(self) -> Lists:
        """What each place is computed from."""
        return self._by_place(self.reader, self.source)

    @cached_property
    def readers(self) -> Lists:
        """What is computed from each place."""
        return self._by_place(self.source, self.reader)

    def before(self, place: Place, opcodes: Collection[str]) -> Iterator[Place]:
        """The place and all that it is computed from by these operations, once each."""
        seen, waiting = {place}, [place]
        while waiting:
            here = waiting.pop()
            yield here
            if self._graph.opcode_at(here) in opcodes:
                for source in self.sources[here]:
                    if source not in seen:
                        seen.add(source)
                        waiting.append(source)

    def leaving(self, region: Mask, inside: Mask) -> Ints:
        """What is computed from a region, but is not inside, once each."""
        return np.unique(self.reader[region[self.source] & ~inside[self.reader]])

    def comes_back(self, region: Mask, inside: Mask) -> bool:
        """Whether something is computed from the region outside, and the region from that again.

        inside: which places are not outside, in the region or not.
        """
        waiting = self.leaving(region, inside).tolist()
        is_region, is_outside = region.tobytes(), (~inside).tobytes()
        seen = set(waiting)
        while waiting:
            for reader in self.readers[waiting.pop()]:
                if is_region[reader]:
                    return True
                if is_outside[reader] and reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
        return False

    def _by_place(self, place: Ints, other: Ints) -> Lists:
        by_place = np.argsort(place, kind="stable")
        starts = starts_of(np.bincount(place, minlength=len(self._graph.slots)))
        return Lists(packed(starts), packed(other[by_place]))

    def _arrays(self, pairs: list[_Pairs]) -> _Pairs:
        """The pairs in which both are arrays."""
        reader, source = (np.concatenate(side) for side in zip(*pairs, strict=True))
        is_array = self._graph.slots.is_leaf[reader] & self._graph.slots.is_leaf[source]
        return reader[is_array], source[is_array]

    def _handed_on(self) -> Iterator[_Pairs]:
        """What is handed on within a computation."""
        program, slots = self._graph.program, self._graph.slots
        taken, owner = slots.whole(program.operands), program.operand_row
        number = np.arange(len(owner)) - program.operand_start[owner]
        at = np.flatnonzero(program.opcode.is_one_of("tuple")[owner])
        yield self.alike(self.element(slots.whole(owner[at]), number[at]), taken[at])
        rows = program.rows("get-tuple-element")
        whole = slots.whole(program.operand(rows, 0))
        yield self.alike(slots.whole(rows), self.element(whole, program.tuple_index[rows]))
        rows = program.rows("while", *_HANDS_ON)
        yield self.alike(slots.whole(rows), slots.whole(program.operand(rows, 0)))
        for opcode, element in (("async-done", 1), ("copy-done", 0)):
            rows = program.rows(opcode)
            start = slots.whole(program.operand(rows, 0))
            yield self.alike(slots.whole(rows), self.element(start, element))
        rows = program.rows("copy-start")
        for element in (0, 1):
            copy = self.element(slots.whole(rows), element)
            yield self.alike(copy, slots.whole(program.operand(rows, 0)))
        at = np.flatnonzero(program.opcode.is_one_of("async-start")[owner])
        arguments = self.element(slots.whole(owner[at]), 0)
        yield self.alike(self.element(arguments, number[at]), taken[at])
        fetched = program.operand(self._join_rows, 0)
        while (on_the_way := program.opcode.is_one_of(*_ON_THE_WAY)[fetched]).any():
            fetched[on_the_way] = program.operand(fetched[on_the_way], 0)
        yield self.alike(slots.whole(self._join_rows), slots.whole(fetched))

    def _computed(self) -> _Pairs:
        """What is computed, from all that its instruction takes."""
        program, slots = self._graph.program, self._graph.slots
        starts = program.rows("async-start")
        is_fetch = np.isin(program.computation, program.callee(starts, "calls"))
        is_told = program.opcode.is_one_of(*_TOLD) | (is_fetch & program.opcode.is_one_of("slice"))
        is_told[self._join_rows] = True
        at = np.flatnonzero(~is_told[program.operand_row])
        owner, taken = program.operand_row[at], slots.whole(program.operands[at])
        counts = slots.count[owner]
        result, read = joined(slots.whole(owner), counts), np.repeat(taken, counts)
        counts = slots.size[read]
        return np.repeat(result, counts), joined(read, counts)

    def _calls(self) -> Iterator[_Pairs]:
        """What callers give for parameters, and what they have from roots."""
        program, slots = self._graph.program, self._graph.slots
        caller, called = program.call_row, program.call_computation
        root = slots.whole(program.root[called])
        is_while = program.opcode.is_one_of("while")[caller]
        is_branching = program.opcode.is_one_of("conditional")[caller]
        runs = program.call_attribute.is_one_of("calls") | program.opcode.is_one_of("call")[caller]
        runs &= ~is_while & ~is_branching
        # The operand that is the first parameter of what is called.
        operand = np.zeros(len(caller), np.int64)
        by_caller = np.argsort(caller, kind="stable")
        in_order = caller[by_caller]
        number = np.arange(len(caller)) - np.searchsorted(in_order, in_order)
        operand[by_caller] = np.where(is_branching[by_caller], 1 + number, 0)
        at = np.flatnonzero(runs | is_while | is_branching)
        counts = np.diff(program.parameter_start)[called[at]]
        parameter = program.parameters[joined(program.parameter_start[called[at]], counts)]
        at = np.repeat(at, counts)
        number = operand[at] + program.parameter_number[parameter]
        given = number < program.operand_count[caller[at]]
        at, parameter, number = at[given], parameter[given], number[given]
        taken = program.operands[program.operand_start[caller[at]] + number]
        yield self.alike(slots.whole(parameter), slots.whole(taken))
        # What a loop carries comes from its body, too.
        looping, carried = is_while[at], slots.whole(parameter)
        body = slots.whole(program.root[program.callee(caller[at[looping]], "body")])
        yield self.alike(carried[looping], body)
        is_body = is_while & program.call_attribute.is_one_of("body")
        is_start = program.opcode.is_one_of("async-start")[caller]
        gives = (runs & ~is_start & program.opcode.is_one_of("fusion", "call")[caller]) | is_body
        gives |= is_branching
        yield self.alike(slots.whole(caller[gives]), root[gives])
        start = runs & is_start
        yield self.alike(self.element(slots.whole(caller[start]), 1), root[start])

    def element(self, tuples: Ints, number: Ints | int) -> Ints:
        """An element of each tuple; NONE where it has no such."""
        slots = self._graph.slots
        numbers = np.broadcast_to(number, tuples.shape)
        has = (tuples != NONE) & (numbers >= 0) & (numbers < slots.element_count(tuples))
        found = np.full(len(tuples), NONE)
        found[has] = slots.element(tuples[has], numbers[has])
        return found

    def alike(self, reader: Ints, source: Ints) -> _Pairs:
        """All parts of the readers and of what they are, where both have as many."""
        size = self._graph.slots.size
        fits = (reader != NONE) & (source != NONE) & (size[reader] == size[source])
        reader, source = reader[fits], source[fits]
        return joined(reader, size[reader]), joined(source, size[reader])
