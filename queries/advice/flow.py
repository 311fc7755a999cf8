"""Which arrays are computed from which, through fusions, calls and loops."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator

from ...xla.shapes import Shape, TupleShape
from .asked_program import Graph, Place, part_of

# They give what they take, under another name.
_MOVED = {"async-done": "{1}", "copy-done": "{0}"}
_HANDS_ON = {"optimization-barrier", "opt-barrier", "domain", "add-dependency"}


class Flow:
    """The arrays of a program as places, and from which others each is computed."""

    def __init__(self, graph: Graph, shape: Callable[[Place], Shape]) -> None:
        self._graph, self._shape = graph, shape
        self._numbers = graph.program.parameter_number.tolist()
        self._element = graph.program.tuple_index.tolist()
        self._callers: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for caller, called in graph.called.items():
            for attribute, computations in called.items():
                for computation in computations:
                    self._callers[computation].append((caller, attribute))
        self.sources: dict[Place, list[Place]] = {}
        self.readers: dict[Place, list[Place]] = defaultdict(list)
        for instruction in range(len(graph.opcode)):
            for place in self.leaves((instruction, "{}")):
                sources = self.sources[place] = list(dict.fromkeys(self._read(place)))
                for source in sources:
                    self.readers[source].append(place)

    def leaves(self, place: Place) -> Iterator[Place]:
        """The arrays of a place: of a tuple all of its parts."""
        shape = self._shape(place)
        if isinstance(shape, TupleShape):
            for number in range(len(shape.elements)):
                yield from self.leaves(part_of(place, number))
        else:
            yield place

    def before(self, place: Place, opcodes: Collection[str]) -> Iterator[Place]:
        """The place and all that it is computed from by these operations, once each."""
        seen, waiting = {place}, [place]
        while waiting:
            here = waiting.pop()
            yield here
            if self._graph.opcode[here[0]] in opcodes:
                for source in self.sources[here]:
                    if source not in seen:
                        seen.add(source)
                        waiting.append(source)

    def comes_back(self, region: Collection[Place], is_inside: Callable[[Place], bool]) -> bool:
        """Whether something is computed from the region outside, and the region from that again.

        is_inside: whether a place is not outside, in the region or not.
        """
        seen: set[Place] = set()
        waiting = [
            reader for place in region for reader in self.readers[place] if not is_inside(reader)
        ]
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            for reader in self.readers[place]:
                if reader in region:
                    return True
                if not is_inside(reader):
                    waiting.append(reader)
        return False

    def _read(self, place: Place) -> Iterator[Place]:
        """What a place is computed from; what only hands on has what it hands on."""
        instruction, index = place
        graph = self._graph
        opcode, operands = graph.opcode[instruction], graph.operands[instruction]
        first, _, rest = index.strip("{}").partition(",")
        if opcode == "tuple":
            yield operands[int(first)], f"{{{rest}}}"
        elif opcode == "get-tuple-element":
            within = index.strip("{}")
            number = self._element[instruction]
            yield operands[0], f"{{{number},{within}}}" if within else f"{{{number}}}"
        elif opcode == "parameter":
            yield from self._arguments(instruction, index)
        elif opcode in {"fusion", "call"}:
            yield graph.root(graph.body(instruction)), index
        elif opcode == "while":
            yield operands[0], index
            yield graph.root(graph.called[instruction]["body"][0]), index
        elif opcode == "conditional":
            for branches in graph.called[instruction].values():
                for branch in branches:
                    yield graph.root(branch), index
        elif opcode in _HANDS_ON or opcode == "async-update":
            yield operands[0], index
        elif opcode in {"async-done", "copy-done"}:
            yield operands[0], f"{{1,{rest}}}" if (rest := index.strip("{}")) else _MOVED[opcode]
        elif opcode == "async-start":
            yield from self._of_start(instruction, first, rest)
        elif opcode == "copy-start":
            if first != "2":
                yield operands[0], "{}"
        else:
            for operand in operands:
                if isinstance(self._shape((operand, "{}")), TupleShape):
                    yield from self.leaves((operand, "{}"))
                else:
                    yield operand, "{}"

    def _of_start(self, start: int, part: str, rest: str) -> Iterator[Place]:
        """Of what runs beside others: its operands, its results, and its context."""
        if part == "0":
            number, _, within = rest.partition(",")
            yield self._graph.operands[start][int(number)], f"{{{within}}}"
        elif part == "1":
            yield self._graph.root(self._graph.body(start)), f"{{{rest}}}"

    def _arguments(self, parameter: int, index: str) -> Iterator[Place]:
        """What a computation's callers give for its parameter."""
        graph = self._graph
        number = self._numbers[parameter]
        for caller, attribute in self._callers[graph.computation[parameter]]:
            operands, opcode = graph.operands[caller], graph.opcode[caller]
            if opcode == "while":
                yield operands[0], index
                yield graph.root(graph.called[caller]["body"][0]), index
            elif opcode == "conditional":
                branches = [each for called in graph.called[caller].values() for each in called]
                yield operands[1 + branches.index(graph.computation[parameter])], index
            elif attribute == "calls" or opcode == "call":
                yield operands[number], index
