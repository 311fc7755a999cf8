"""Arguments and residuals that every reader converts to a narrower type at once."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...xla.shapes import ELEMENT_BYTES
from ..cells import counted, human_bytes
from .asked_program import Program
from .finding import Finding, Grade
from .narrowing import FLOATS, Narrowed, Narrowing
from .replay import Change, Piece, saving, together

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
    names = [str(array["op_name"] or array["instruction"]) for array, _ in found]
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
        " FROM saved_for_backward"
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
    return Finding(
        kind="wider than read",
        title=f"save {counted(len(found), 'residual')} in {name}",
        grade=Grade.expected,
        write=f"`.astype(jnp.{name})` at the line that saves it",
        why=f"saved for backward in {_JAX_NAMES[wide]}, and all that read it convert it to {name}"
        f" at once; it takes {human_bytes(int(program.layout.size[rows].max(initial=0)))}",
        value_ids=tuple(program.layout.value_id[largest].tolist()),
        source=source,
        saving_bytes=saved,
        low_bytes=saved,
        high_bytes=saved,
        tolerance=0.01,
        change=change,
    )


def _widens_again(program: Program, narrowed: Narrowed) -> bool:
    """Whether XLA would convert all of a narrower array back before the loop that reads it.

    XLA on CPU computes in float32, and takes the conversion out of the loop: a scan over
    bfloat16 weights needs 25 % more than one over float32 weights.
    """
    if program.platform != "cpu":
        return False
    graph, entry = program.graph, {program.graph.program.entry}
    fused = {c for called in graph.called.values() for c in called.get("calls", ())}
    inside = {graph.computation[each] for each in narrowed.converts} - entry
    callers = {
        graph.computation[caller]
        for caller, called in graph.called.items()
        if inside & set(called.get("calls", ()))
    }
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
