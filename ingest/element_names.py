"""Names of the tuple elements that HLO text leaves out since JAX 0.12, as the dump has them.

The reader of HLO text calls such a get-tuple-element `x#1`. The other files of the dump have its
name: it uses the tuple `x` and is the position of the value of element 1.
"""

from collections import defaultdict

from ..xla.parts import LiveRanges, Parts, Position, UsedValues
from ..xla.program import NONE, Program

# A tuple's value and the value of one of its elements.
_Pair = tuple[int, int]


def name_elements(parts: Parts) -> None:
    """Rename the elements in the program as the dump does, and run them when the dump does.

    Without positions, or without a schedule, they keep their names, or their rows.
    """
    program = parts.program
    if program is None or not any("#" in name for name in program.names):
        return
    if parts.used_values is not None:
        _rename(program, parts.used_values, parts.live_ranges)
    if parts.live_ranges is not None:
        parts.program = _in_schedule_order(program, parts.live_ranges.schedule)


def _rename(program: Program, used: UsedValues, live_ranges: LiveRanges | None) -> None:
    """Give each element the dump's name for it.

    If the dump has several for one element, the text does not determine which of them an
    instruction uses: it gets the one that is scheduled first.
    """
    time = {} if live_ranges is None else _times(live_ranges.schedule)
    names = [
        position
        for position in used.positions
        if position.shape_index == "{}" and position.instruction not in program.row_of
    ]
    names.sort(key=lambda position: time.get(position.instruction, len(time)))
    names_of: dict[_Pair, list[str]] = defaultdict(list)
    for pair, name in _pairs_of_names(names, used):
        names_of[pair].append(name)
    elements = [name for name in program.names if "#" in name]
    for name, pair in zip(elements, _pairs_of_elements(elements, used), strict=True):
        if names_of.get(pair):
            program.names[program.row_of[name]] = names_of[pair].pop(0)
    # In the order of the rows, as before.
    program.row_of = {name: row for row, name in enumerate(program.names)}


def _pairs_of_elements(elements: list[str], used: UsedValues) -> list[_Pair]:
    """For each element such as `x#1#0`, the value ids of its tuple `x{1}` and of itself.

    NONE for one without a position; if one has several, the first counts.
    """
    tuples = {element.split("#", 1)[0] for element in elements}
    value_at = {
        (position.instruction, position.shape_index): position.value_id
        for position in reversed(used.positions)
        if position.instruction in tuples
    }

    def value(tuple_name: str, path: list[str]) -> int:
        return value_at.get((tuple_name, "{" + ",".join(path) + "}"), NONE)

    pairs = []
    for element in elements:
        tuple_name, *path = element.split("#")
        pairs.append((value(tuple_name, path[:-1]), value(tuple_name, path)))
    return pairs


def _pairs_of_names(names: list[Position], used: UsedValues) -> list[tuple[_Pair, str]]:
    """By position of a name, the value that it uses as a tuple and the value there, with the name.

    A name that uses no tuple is left out.
    """
    wanted = {position.instruction for position in names}
    tuple_of: dict[str, int] = {}
    for use in used.uses:
        is_whole = use.operand_number == 0 and use.operand_shape_index == "{}"
        if is_whole and use.instruction in wanted:
            tuple_of.setdefault(use.instruction, use.value_id)
    return [
        ((tuple_of[position.instruction], position.value_id), position.instruction)
        for position in names
        if position.instruction in tuple_of
    ]


def _times(schedule: list[str]) -> dict[str, int]:
    return {name: time for time, name in enumerate(schedule)}


def _in_schedule_order(program: Program, schedule: list[str]) -> Program:
    """The program with the rows of each computation that is scheduled as a whole in that order."""
    times = _times(schedule)
    order: list[int] = []
    for computation in range(len(program.computation_names)):
        rows = list(program.rows_of(computation))
        if all(program.names[row] in times for row in rows):
            rows.sort(key=lambda row: times[program.names[row]])
        order += rows
    if order == list(range(len(program))):
        return program
    return reordered(program, order)


def reordered(program: Program, order: list[int]) -> Program:
    """The program with its rows in another order, within each computation.

    Args:
        order: by new row, the old one.
    """
    new_row = [NONE] * len(order)
    for row, old in enumerate(order):
        new_row[old] = row

    result = Program()
    vars(result).update(vars(program))
    for name in (
        "names", "lines", "opcode", "shape", "parameter_number", "tuple_index", "metadata",
    ):  # fmt: skip
        column = getattr(program, name)
        setattr(result, name, [column[old] for old in order])
    result.operands = [tuple(new_row[row] for row in program.operands[old]) for old in order]
    result.root = [NONE if row == NONE else new_row[row] for row in program.root]
    result.row_of = {name: row for row, name in enumerate(result.names)}
    for name in (
        "calls", "attributes", "operand_aliasing", "fusion_kind", "custom_call_target", "integers",
        "scoped", "aliasing_lists", "trip_counts",
    ):  # fmt: skip
        by_row = {new_row[row]: value for row, value in getattr(program, name).items()}
        setattr(result, name, by_row)
    result.control_predecessors = {
        new_row[row]: [new_row[predecessor] for predecessor in predecessors]
        for row, predecessors in program.control_predecessors.items()
    }
    result.less_than = {new_row[row] for row in program.less_than}
    result.kernels = sorted(part._replace(row=new_row[part.row]) for part in program.kernels)
    return result
