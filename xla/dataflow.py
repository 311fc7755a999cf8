"""The values of a program: the slots that define them, their positions and their uses.

A value is the array, or the table of a tuple, that one instruction defines at one index of its
result. Its positions are all slots that have it, its uses the operands that read it. The rules
are XLA's HloDataflowAnalysis in SSA form.
"""

from typing import Final

from .analysis import Dataflow, Schedule
from .forwarding import Forwarding
from .in_place import in_place_slots
from .phis import PhiGraph, find_phis
from .program import NONE, Program
from .schedule import find_computations_with_values
from .slots import Slots

# These do not read their operands: a tuple only refers to its elements.
_READS_NOTHING: Final = ("tuple", "domain")
# These read the table of a tuple, not its elements.
_READS_TABLE: Final = ("get-tuple-element", "copy")


def trace_values(
    program: Program, schedule: Schedule, *, is_written_at_start: bool = False
) -> Dataflow:
    """Number the values of a program, and find their positions, uses and phis.

    Scheduled computations have values, and regions: reducers and the like, see
    `find_computations_with_values`. Fused computations have none.

    Args:
        is_written_at_start: whether an array that an async-start updates in place is the new value
            from there on, otherwise from the async-done on.

    Raises DumpError where an instruction does not fit its operands.
    """
    slots = Slots(program, find_computations_with_values(program, schedule))
    forwarding = Forwarding(program, slots)
    in_place_pairs = in_place_slots(program, slots)
    forwarding.apply_calls(schedule, in_place_pairs, is_written_at_start=is_written_at_start)
    source = forwarding.resolve()
    phis = PhiGraph([(phi, source[slot]) for phi, slot in find_phis(program, schedule, slots)])
    value_defined_at = [NONE] * len(slots)
    defined_at: list[int] = []
    for slot, origin in enumerate(source):
        is_defined = origin == slot and slot not in phis.replaced_by
        if is_defined and slot not in forwarding.valueless:
            value_defined_at[slot] = len(defined_at)
            defined_at.append(slot)
    if phis.replaced_by:
        source = [phis.value_of(origin) for origin in source]
    value = [value_defined_at[origin] for origin in source]
    use_value, use_row, use_operand, use_slot = _find_uses(program, slots, value)
    return Dataflow(
        slots=slots,
        value=value,
        defined_at=defined_at,
        row=[slots.row[slot] for slot in defined_at],
        is_phi=[slot in phis.inputs for slot in defined_at],
        use_value=use_value,
        use_row=use_row,
        use_operand=use_operand,
        use_slot=use_slot,
        in_place_pairs=in_place_pairs,
    )


def _find_uses(
    program: Program, slots: Slots, value: list[int]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """The uses of all values, see `Dataflow`: value, reader, operand number, slot of the operand.

    A tuple or domain reads nothing, a get-tuple-element or copy of a tuple its table alone; a
    bitcast reads. A root is a user of each value at its positions, even if it only refers to it.
    """
    use_value: list[int] = []
    use_row: list[int] = []
    use_operand: list[int] = []
    use_slot: list[int] = []
    roots = set(program.root)
    starts, sizes = slots.start, slots.size
    for row, operands in enumerate(program.operands):
        start = starts[row]
        # Instructions of fused computations have no slots.
        if start == NONE or not operands:
            continue
        opcode = program.opcode[row]
        reads_table = opcode in _READS_TABLE
        reads_nothing = opcode in _READS_NOTHING
        forwarded: set[int] = set()
        if (reads_table or reads_nothing) and row in roots:
            forwarded.update(value[start : start + sizes[start]])
        elif reads_nothing:
            continue
        for number, operand in enumerate(operands):
            table = starts[operand]
            # The elements are skipped if not read: many instructions may read one large tuple.
            size = 1 if reads_table and not forwarded else sizes[table]
            for slot in range(table, table + size):
                is_read = not reads_nothing and (slot == table or not reads_table)
                used = value[slot]
                if used != NONE and (is_read or used in forwarded):
                    use_value.append(used)
                    use_row.append(row)
                    use_operand.append(number)
                    use_slot.append(slot)
    return use_value, use_row, use_operand, use_slot
