"""Which values could be stored in a narrower type, because all that read them convert them to it.

Between a value and the conversions stand only instructions that move data. A value's whole alias
set is followed, because it shares the buffer.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...xla.shapes import ELEMENT_BYTES, ArrayShape, parse_shape
from .asked_program import Program

FLOATS = {"f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"}
# These give their first operand's elements at other places; it is read by nothing else of them.
_MOVES = {
    "bitcast",
    "broadcast",
    "copy",
    "dynamic-slice",
    "gather",
    "get-tuple-element",
    "reshape",
    "slice",
    "transpose",
}
# What runs in these reads the value; they themselves only hand it over.
_HAND_OVER = {"while", "call", "conditional", "async-start"}
_DONE = {"async-done", "copy-done"}


@dataclass
class Narrowed:
    """values: what would be stored narrower; element_type: as what; converts: the instructions
    that convert; repeats: conversions' results that are then the same as what they convert."""

    values: set[int] = field(default_factory=set)
    element_type: str = ""
    converts: list[int] = field(default_factory=list)
    repeats: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _End:
    """Where an operand of a fusion comes to; None: something that computes with it.

    is_whole: with all its elements in their order; is_converted: as what converts it.
    """

    instruction: int | None
    is_whole: bool
    is_converted: bool


_OTHERWISE = _End(None, False, False)


class Narrowing:
    """The values of a module, asked whether they could be narrower."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._graph = program.graph
        values = program.rows(
            'SELECT value_id, instruction_id, shape_index, element_type, alias_set FROM "values"'
            " WHERE module_id = $1"
        ).to_pylist()
        self._type = {each["value_id"]: each["element_type"] for each in values}
        self._instruction = {each["value_id"]: each["instruction_id"] for each in values}
        self._value = {
            (each["instruction_id"], each["shape_index"]): each["value_id"] for each in values
        }
        self._alias_set = {each["value_id"]: each["alias_set"] for each in values}
        self._aliases: dict[int, list[int]] = defaultdict(list)
        for value, alias_set in self._alias_set.items():
            self._aliases[value if alias_set is None else alias_set].append(value)

    @cached_property
    def _uses(self) -> dict[int, list[tuple[int, int]]]:
        uses: dict[int, list[tuple[int, int]]] = defaultdict(list)
        table = self._program.uses
        columns = (table["value_id"], table["instruction_id"], table["operand_number"])
        for value, *use in zip(*(each.to_pylist() for each in columns), strict=True):
            uses[value].append((use[0], use[1]))
        return uses

    @cached_property
    def _positions(self) -> dict[int, list[int]]:
        positions: dict[int, list[int]] = defaultdict(list)
        table = self._program.positions
        for value, instruction in zip(
            table["value_id"].to_pylist(), table["instruction_id"].to_pylist(), strict=True
        ):
            positions[value].append(instruction)
        return positions

    @cached_property
    def _live_out(self) -> set[int]:
        """The values in the result of the entry."""
        times = self._program.instructions["schedule_time"].to_pylist()
        last = max((time for time in times if time is not None), default=None)
        root = times.index(last) if last is not None else -1
        return {value for value, at in self._positions.items() if root in at}

    def narrowed(self, value: int) -> Narrowed | None:
        """What is narrower if this value is; None if something reads it as it is."""
        found = Narrowed()
        waiting = [value]
        while waiting:
            for each in self._set_of(waiting.pop()):
                if each in found.values or self._type[each] is None:
                    continue
                if each in self._live_out or self._type[each] != self._type[value]:
                    return None
                found.values.add(each)
                for use in self._uses[each]:
                    results = self._read(each, *use, found)
                    if results is None:
                        return None
                    waiting.extend(results)
        types = {_element_type(self._graph.shape[each]) for each in found.converts}
        if len(types) != 1 or not is_narrower(found.element_type, self._type[value]):
            return None
        return found

    def _set_of(self, value: int) -> list[int]:
        alias_set = self._alias_set[value]
        return self._aliases[value if alias_set is None else alias_set]

    def _read(self, value: int, user: int, number: int, found: Narrowed) -> Iterable[int] | None:
        """The values that a use only moves the value to; None if it reads it otherwise."""
        opcode = self._graph.opcode[user]
        if opcode in _DONE:
            return ()
        if opcode in _HAND_OVER:
            called = {c for each in self._graph.called[user].values() for c in each}
            inside = any(
                self._graph.opcode[at] == "parameter" and self._graph.computation[at] in called
                for every in self._set_of(value)
                for at in self._positions[every]
            )
            return () if inside else None
        if opcode == "copy-start":
            return self._results(user, "{0}")
        if opcode == "fusion":
            return self._read_inside(value, user, number, found)
        if self._converts(user, number):
            self._note(user, found)
            if opcode == "convert":
                self._repeat(value, user, found)
            return ()
        return self._results(user, "{}") if self._moves(user, number) else None

    def _results(self, instruction: int, shape_index: str) -> list[int] | None:
        result = self._value.get((instruction, shape_index))
        return None if result is None else [result]

    def _read_inside(
        self, value: int, fusion: int, number: int, found: Narrowed
    ) -> list[int] | None:
        """The same of a fusion: what its computation does with the operand."""
        results: list[int] = []
        for end in self._ends(fusion, number, True):
            if end.instruction is None:
                return None
            if end.is_converted:
                self._note(end.instruction, found)
                if end.is_whole and not self._graph.users[end.instruction]:
                    self._repeat(value, fusion, found)
                continue
            # The operand leaves the fusion as it came.
            moved = self._results(fusion, "{}")
            if moved is None or self._graph.shape[fusion].startswith("("):
                return None
            results.extend(moved)
        return results

    def _ends(self, fusion: int, number: int, is_whole: bool) -> Iterator[_End]:
        """Where the operand of a fusion ends: at a conversion, or at the fusion's root."""
        parameters = self._graph.parameters(self._graph.body(fusion))
        if not self._graph.users[parameters[number]]:
            yield _OTHERWISE
            return
        waiting = [(parameters[number], is_whole)]
        while waiting:
            instruction, whole = waiting.pop()
            if not self._graph.users[instruction]:
                yield _End(instruction, whole, False)
            for user, at in self._graph.readers(instruction):
                opcode = self._graph.opcode[user]
                if self._converts(user, at):
                    yield _End(user, whole and opcode == "convert", True)
                elif opcode == "fusion":
                    for end in self._ends(user, at, whole):
                        if end.instruction is None or end.is_converted:
                            yield replace(end, is_whole=False)
                        else:
                            waiting.append((user, end.is_whole))
                elif self._moves(user, at):
                    waiting.append((user, whole and opcode in {"bitcast", "copy"}))
                else:
                    yield _OTHERWISE

    def _converts(self, instruction: int, number: int) -> bool:
        """Whether it gives its operand's elements in another type; a TPU's gather also does."""
        opcode, operands = self._graph.opcode[instruction], self._graph.operands[instruction]
        if opcode != "convert" and not self._moves(instruction, number):
            return False
        types = {_element_type(self._graph.shape[each]) for each in (instruction, operands[number])}
        return len(types) > 1

    def _moves(self, instruction: int, number: int) -> bool:
        """Whether it only gives its operand's elements at other places, or fills gaps in them."""
        opcode = self._graph.opcode[instruction]
        if opcode == "select" and number > 0:
            return self._is_constant(self._graph.operands[instruction][3 - number])
        return number == 0 and opcode in _MOVES | {"dynamic-update-slice"}

    def _is_constant(self, instruction: int) -> bool:
        while self._graph.opcode[instruction] == "broadcast":
            (instruction,) = self._graph.operands[instruction]
        return self._graph.opcode[instruction] == "constant"

    def _note(self, converting: int, found: Narrowed) -> None:
        found.converts.append(converting)
        found.element_type = _element_type(self._graph.shape[converting])

    def _repeat(self, value: int, converting: int, found: Narrowed) -> None:
        """Note the result of a conversion that the narrower value can stand for."""
        result = self._value.get((converting, "{}"))
        if result is None or result in self._live_out or len(self._set_of(result)) > 1:
            return
        one, other = (
            parse_shape(self._graph.shape[each]) for each in (self._instruction[value], converting)
        )
        if isinstance(one, ArrayShape) and isinstance(other, ArrayShape):
            same = (one.dimensions, one.minor_to_major) == (other.dimensions, other.minor_to_major)
            found.repeats |= {result} if same else set()


def is_narrower(one: str, other: str) -> bool:
    """Whether the elements of one type of floats take less than those of the other."""
    return {one, other} <= FLOATS and ELEMENT_BYTES[one] < ELEMENT_BYTES[other]


def _element_type(shape: str) -> str:
    return shape.partition("[")[0]
