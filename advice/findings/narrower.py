"""Arguments and residuals that every reader converts to a narrower type at once."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...queries.result import counted
from ...schema.readable import human_bytes
from ...xla.shapes import ELEMENT_BYTES, ArrayShape, parse_shape
from ..asked_program import Change, Piece, Program, rows_with, saving, together
from ..finding import Finding, Grade
from ..graph import Slot
from . import listed

# Which values could be stored in a narrower type, because all that read them convert them to it.
#
# Between a value and the conversions stand only instructions that move data. A value's whole
# alias set is followed, because it shares the buffer.

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
            "SELECT value_id, instruction_id, shape_index, element_type,"
            ' coalesce(alias_set, value_id) AS alias_set FROM "values" WHERE module_id = $1'
            " ORDER BY alias_set, value_id"
        )
        self._id, self._instruction, self._alias_set = (
            values[name].to_numpy() for name in ("value_id", "instruction_id", "alias_set")
        )
        self._element_type = values["element_type"]
        indices = values["shape_index"].to_pylist()
        places = self._graph.find_slots(self._instruction.tolist(), indices)
        self._value_at = dict(zip(places, self._id.tolist(), strict=True))
        self._by_id = np.argsort(self._id)

    def _row(self, value: int) -> int:
        return int(self._by_id[np.searchsorted(self._id, value, sorter=self._by_id)])

    def _type(self, value: int) -> str | None:
        found: str | None = self._element_type[self._row(value)].as_py()
        return found

    def _uses(self, value: int) -> Iterator[tuple[int, int]]:
        uses = self._program.uses
        rows = rows_with(uses["value_id"].to_numpy(), value)
        columns = (uses[name][rows].to_pylist() for name in ("instruction_id", "operand_number"))
        return zip(*columns, strict=True)

    @cached_property
    def _live_out(self) -> set[int]:
        """The values in the result of the entry."""
        positions = self._program.positions
        times = self._program.instructions["schedule_time"].to_pylist()
        last = max((time for time in times if time is not None), default=None)
        root = times.index(last) if last is not None else -1
        at_root = positions["instruction_id"].to_numpy() == root
        return set(positions["value_id"].to_numpy()[at_root].tolist())

    def narrowed(self, value: int) -> Narrowed | None:
        """What is narrower if this value is; None if something reads it as it is."""
        found, element_type = Narrowed(), self._type(value)
        waiting = [value]
        while waiting:
            for each in self._set_of(waiting.pop()):
                if each in found.values or self._type(each) is None:
                    continue
                if each in self._live_out or self._type(each) != element_type:
                    return None
                found.values.add(each)
                for use in self._uses(each):
                    results = self._read(each, *use, found)
                    if results is None:
                        return None
                    waiting.extend(results)
        types = {_element_type(self._graph.program.shape[each]) for each in found.converts}
        if len(types) != 1 or not is_narrower(found.element_type, element_type or ""):
            return None
        return found

    def _set_of(self, value: int) -> list[int]:
        found: list[int] = self._id[
            rows_with(self._alias_set, self._alias_set[self._row(value)])
        ].tolist()
        return found

    def _read(self, value: int, user: int, number: int, found: Narrowed) -> Iterable[int] | None:
        """The values that a use only moves the value to; None if it reads it otherwise."""
        opcode = self._graph.opcode[user]
        if opcode in _DONE:
            return ()
        if opcode in _HAND_OVER:
            called = {*self._graph.called(user)}
            inside = any(
                self._graph.opcode[at] == "parameter"
                and self._graph.program.computation[at] in called
                for every in self._set_of(value)
                for at in self._program.holders(every)
            )
            return () if inside else None
        if opcode == "copy-start":
            # The first element of a tuple is the place after the tuple's own.
            return self._results(self._graph.root_slot[user] + 1)
        if opcode == "fusion":
            return self._read_inside(value, user, number, found)
        if self._converts(user, number):
            self._note(user, found)
            if opcode == "convert":
                self._repeat(value, user, found)
            return ()
        return self._results(self._graph.root_slot[user]) if self._moves(user, number) else None

    def _results(self, place: Slot) -> list[int] | None:
        result = self._value(place)
        return None if result is None else [result]

    def _value(self, place: Slot) -> int | None:
        """The value that is defined at a place."""
        return self._value_at.get(place)

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
            moved = self._results(self._graph.root_slot[fusion])
            if moved is None or self._graph.program.shape[fusion].startswith("("):
                return None
            results.extend(moved)
        return results

    def _ends(self, fusion: int, number: int, is_whole: bool) -> Iterator[_End]:
        """Where the operand of a fusion ends: at a conversion, or at the fusion's root."""
        parameters = self._graph.program.parameters(self._graph.body(fusion))
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
        types = {
            _element_type(self._graph.program.shape[each])
            for each in (instruction, operands[number])
        }
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
        found.element_type = _element_type(self._graph.program.shape[converting])

    def _repeat(self, value: int, converting: int, found: Narrowed) -> None:
        """Note the result of a conversion that the narrower value can stand for."""
        result = self._value(self._graph.root_slot[converting])
        if result is None or result in self._live_out or len(self._set_of(result)) > 1:
            return
        one, other = (
            parse_shape(self._graph.program.shape[each])
            for each in (int(self._instruction[self._row(value)]), converting)
        )
        if isinstance(one, ArrayShape) and isinstance(other, ArrayShape):
            same = (one.dimensions, one.minor_to_major) == (other.dimensions, other.minor_to_major)
            found.repeats |= {result} if same else set()


def is_narrower(one: str, other: str) -> bool:
    """Whether the elements of one type of floats take less than those of the other."""
    return {one, other} <= FLOATS and ELEMENT_BYTES[one] < ELEMENT_BYTES[other]


def _element_type(shape: str) -> str:
    return shape.partition("[")[0]


# Arguments and residuals that every reader converts to a narrower type at once.

# Less of the peak is not worth an edit.
_WORTH = 0.002
_SHOWN = 3
_JAX_NAMES = {
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
}


@listed(5)
def narrower(program: Program) -> list[Finding]:
    """A finding for the arguments of each type, and one for each line that saves residuals."""
    narrowing = Narrowing(program)
    found = [
        *_arguments(program, narrowing),
        *_residuals(program, narrowing),
    ]
    worth = _WORTH * program.layout.peak_bytes
    return [each for each in found if each.saving_bytes is None or each.saving_bytes > worth]


def _arguments(program: Program, narrowing: Narrowing) -> list[Finding]:
    least = _WORTH * program.layout.peak_bytes / 100
    by_types: dict[tuple[str, str], list[tuple[dict[str, object], Narrowed]]] = defaultdict(list)
    for array in program.entry_arrays.to_pylist():
        if (
            array["is_output"]
            or array["is_shared"]
            or array["element_type"] not in FLOATS
            or (array["padded_bytes"] or 0) < least
            or array["allocation_index"] not in program.layout.allocation_index
        ):
            continue
        narrowed = narrowing.narrowed(array["value_id"])
        if narrowed is not None and not _widens_again(program, narrowed):
            by_types[array["element_type"], narrowed.element_type].append((array, narrowed))
    return [
        _of_arguments(program, wide, narrow, found) for (wide, narrow), found in by_types.items()
    ]


def _of_arguments(
    program: Program,
    wide: str,
    narrow: str,
    found: list[tuple[dict[str, object], Narrowed]],
) -> Finding:
    allocations = frozenset(_number(array["allocation_index"]) for array, _ in found)
    change = together(
        [
            Change(
                freed=allocations, pieces=_halved_allocations(program, allocations, wide, narrow)
            ),
            *(
                _stored_narrower(program, narrowed, wide, {_number(array["value_id"])})
                for array, narrowed in found
            ),
            Change(gone=_saved_again(program, narrow, found)),
        ]
    )
    saved = saving(program.layout, change)
    found.sort(key=lambda each: -_number(each[0]["padded_bytes"]))
    names = [str(array["argument_name"] or array["instruction"]) for array, _ in found]
    shapes = {(array["element_type"], array["dimensions"]) for array, _ in found}
    name, short = _JAX_NAMES[narrow], ", ".join(f"`{each}`" for each in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    converts = [each for _, narrowed in found for each in narrowed.converts]
    # In the type of a weight comes its gradient, which takes less then.
    has_gradient = program.trains and not shapes.isdisjoint(_shapes_of_outputs(program))
    grade = Grade.exact if program.platform in ("cpu", "tpu") else Grade.at_most
    return Finding(
        kind="wider than read",
        title=f"store {counted(len(found), 'argument')} in {name}: {short}{more}",
        grade=Grade.fact if has_gradient else grade,
        write=f"pass {short}{more} in jnp.{name}: store them so, or convert them once outside",
        why=f"{_JAX_NAMES[wide]}, and {_all_readers(len(converts))} to {name} before computing"
        + (
            "; gradients come in the new type too"
            if has_gradient
            else ": the results stay the same"
        ),
        value_ids=tuple(_number(array["value_id"]) for array, _ in found),
        source=_line(program, converts),
        **({} if has_gradient else _saving(saved, change)),
    )


def _saving(saved: int, change: Change) -> dict[str, Any]:
    return {"saving_bytes": saved, "low_bytes": saved, "high_bytes": saved, "change": change}


def _shapes_of_outputs(program: Program) -> set[tuple[object, object]]:
    return {
        (array["element_type"], array["dimensions"])
        for array in program.entry_arrays.to_pylist()
        if array["is_output"]
    }


def _all_readers(number: int) -> str:
    return "its only reader converts" if number == 1 else f"all {number} readers convert"


def _saved_again(
    program: Program, narrow: str, found: list[tuple[dict[str, object], Narrowed]]
) -> frozenset[int]:
    """What a loop saves of the converted arguments, slice by slice: then the arguments as such."""
    whole = {
        (array["instruction_id"], _narrow(_number(array["logical_bytes"]), wide, narrow))
        for array, _ in found
        for wide in [str(array["element_type"])]
    }
    rows = program.rows(
        'SELECT value_id, alias_set, origin_instruction_id, logical_bytes FROM "values"'
        " WHERE module_id = $1 AND element_type = $2 AND origin_instruction_id <> instruction_id",
        [narrow],
    ).to_pylist()
    return frozenset(
        row["value_id"]
        for row in rows
        if (row["origin_instruction_id"], row["logical_bytes"]) in whole
    )


def _residuals(program: Program, narrowing: Narrowing) -> list[Finding]:
    # XLA on CPU computes in float32 what a program asks for in bfloat16, and may save it so.
    if program.platform == "cpu":
        return []
    rows = program.rows(
        "SELECT value_id, element_type, source_file || ':' || source_line AS source"
        " FROM internal.saved_for_backward"
        " WHERE module_id = $1 AND memory_space = $2 AND size_bytes > $3"
        " ORDER BY size_bytes DESC, value_id",
        [program.layout.memory_space, round(_WORTH * program.layout.peak_bytes / 100)],
    ).to_pylist()
    temps = program.layout.value_id[
        [
            bool(program.layout.is_temp[program.layout.allocation_index == each].any())
            for each in program.layout.allocation
        ]
    ]
    findings = defaultdict(list)
    done: set[int] = set()
    for row in rows:
        if row["value_id"] in done or row["value_id"] not in temps:
            continue
        if row["element_type"] not in FLOATS:
            continue
        narrowed = narrowing.narrowed(row["value_id"])
        if narrowed is None:
            continue
        done |= narrowed.values
        findings[row["source"], row["element_type"], narrowed.element_type].append(narrowed)
    return [_of_residuals(program, *key, found) for key, found in findings.items()]


def _of_residuals(
    program: Program, source: str | None, wide: str, narrow: str, found: list[Narrowed]
) -> Finding:
    change = together(_stored_narrower(program, each, wide, set()) for each in found)
    saved = saving(program.layout, change)
    values = sorted({value for each in found for value in each.values})
    rows = program.layout.rows_of(np.array(values, np.int64))
    largest = rows[(-program.layout.size[rows]).argsort(kind="stable")]
    name = _JAX_NAMES[narrow]
    # On a GPU the peak fell by more than this on the one program that was recompiled.
    is_fact = program.platform == "gpu"
    return Finding(
        kind="wider than read",
        title=f"save {counted(len(found), 'residual')} in {name}",
        grade=Grade.fact if is_fact else Grade.expected,
        write=f"`.astype(jnp.{name})` at the line that saves it",
        why=f"saved for backward in {_JAX_NAMES[wide]}, and all that read it convert it to {name}"
        f" at once; it takes {human_bytes(int(program.layout.size[rows].max(initial=0)))}",
        value_ids=tuple(program.layout.value_id[largest].tolist()),
        source=source,
        **({} if is_fact else _saving(saved, change) | {"tolerance": 0.01}),
    )


def _widens_again(program: Program, narrowed: Narrowed) -> bool:
    """Whether XLA would convert all of a narrower array back before the loop that reads it.

    XLA on CPU computes in float32, and takes the conversion out of the loop: a scan over
    bfloat16 weights needs 25 % more than one over float32 weights.
    """
    if program.platform != "cpu":
        return False
    graph, entry = program.graph, {program.graph.program.entry}
    calls = [(row, {*graph.called(row, "calls")}) for row in graph.program.calls]
    fused = {computation for _, called in calls for computation in called}
    inside = {graph.program.computation[each] for each in narrowed.converts} - entry
    callers = {graph.program.computation[row] for row, called in calls if inside & called}
    return bool((inside - fused) | (callers - entry))


def _halved_allocations(
    program: Program, allocations: Iterable[int], wide: str, narrow: str
) -> tuple[Piece, ...]:
    layout = program.layout
    sizes = dict(
        zip(layout.allocation_index.tolist(), layout.allocation_bytes.tolist(), strict=True)
    )
    return tuple(
        Piece(place, _narrow(sizes[each], wide, narrow), 0, layout.schedule_length)
        for place, each in enumerate(sorted(allocations))
    )


def _stored_narrower(program: Program, narrowed: Narrowed, wide: str, besides: set[int]) -> Change:
    """The values at their narrower size, but for those in allocations of their own."""
    layout = program.layout
    rows = layout.rows_of(np.array(sorted(narrowed.values - besides), np.int64))
    pieces = tuple(
        Piece(
            int(layout.alias_set[row]),
            _narrow(int(layout.size[row]), wide, narrowed.element_type),
            int(layout.start[row]),
            int(layout.end[row]),
        )
        for row in rows
    )
    return Change(gone=frozenset(narrowed.values | narrowed.repeats), pieces=pieces)


def _narrow(size: int, wide: str, narrow: str) -> int:
    return size * ELEMENT_BYTES[narrow] // ELEMENT_BYTES[wide]


def _line(program: Program, converts: Iterable[int]) -> str | None:
    """The line of a conversion, or of the first thing after one that has a line."""
    files, lines = (program.instructions[name] for name in ("source_file", "source_line"))
    waiting = list(dict.fromkeys(converts))
    for each in waiting:
        if files[each].is_valid:
            return f"{files[each].as_py()}:{lines[each].as_py()}"
        waiting.extend(user for user in program.graph.users[each] if user not in waiting)
    return None


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
