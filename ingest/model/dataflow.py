"""Which values a program computes, where each stands, and who uses it.

A *value* is a buffer's worth of data that one instruction defines at one index of its shape.
A value's *positions* are all places that hold the value, its *uses* are the operands that
read the value. The rules are XLA's HloDataflowAnalysis in SSA form.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...schema.address_space.runs import followed, joined
from .flattening import Schedule
from .forwarding import Forwarding, check_opcodes, forward_calls, forward_within, pairs
from .in_place import InPlaceRules, in_place_slots
from .numbered_program import NONE, Ints, Mask, NumberedProgram
from .phis import resolve_phis
from .slots import Slots, lay_slots

# Operands that these instructions do not read: a tuple only refers to its elements.
_NEVER_USES = ("tuple", "domain")
# These read the table of a tuple and not its elements.
_USES_WHOLE_ONLY = ("get-tuple-element", "copy")


@dataclass(frozen=True)
class Dataflow:
    """The values of a program, numbered from 0 in the order of the text.

    `value` is the number of the value at each slot, NONE where none is; `defined_at` is each
    value's slot, `is_phi` marks the merged values of loops and conditionals. Of each use:
    `use_value`, `use_instruction`, `use_operand` (its number) and `use_slot`, the slot of the
    operand that is read. The in-place pairs are the slots of an operand and of the result that
    is written where the operand lies.
    """

    slots: Slots
    value: Ints
    defined_at: Ints
    is_phi: Mask
    use_value: Ints
    use_instruction: Ints
    use_operand: Ints
    use_slot: Ints
    in_place_operand: Ints
    in_place_result: Ints

    def __len__(self) -> int:
        return len(self.defined_at)

    @cached_property
    def instruction(self) -> Ints:
        """Each value's defining instruction."""
        found: Ints = self.slots.instruction[self.defined_at]
        return found

    def values_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, shape_index, is_phi."""
        return pa.table(
            {
                "value_id": pa.array(np.arange(len(self)), pa.int32()),
                "instruction_id": pa.array(self.instruction, pa.int32()),
                "shape_index": self.slots.index.take(pa.array(self.defined_at)),
                "is_phi": pa.array(self.is_phi),
            }
        )

    def positions_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, shape_index; by value, then in the text's order."""
        held = np.flatnonzero(self.value != NONE)
        held = held[np.argsort(self.value[held], kind="stable")]
        return pa.table(
            {
                "value_id": pa.array(self.value[held], pa.int32()),
                "instruction_id": pa.array(self.slots.instruction[held], pa.int32()),
                "shape_index": self.slots.index.take(pa.array(held)),
            }
        )

    def uses_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, operand_number, operand_shape_index."""
        order = np.argsort(self.use_value, kind="stable")
        return pa.table(
            {
                "value_id": pa.array(self.use_value[order], pa.int32()),
                "instruction_id": pa.array(self.use_instruction[order], pa.int32()),
                "operand_number": pa.array(self.use_operand[order], pa.int32()),
                "operand_shape_index": self.slots.index.take(pa.array(self.use_slot[order])),
            }
        )


def trace_values(
    program: NumberedProgram,
    schedule: Schedule,
    regions: Ints,
    rules: InPlaceRules,
    *,
    any_opcode: bool = False,
) -> Dataflow:
    """Find the values of the scheduled computations, and of `regions`.

    Regions are computations that an instruction applies to elements, such as a reducer: their
    parameters are values of their own. Raises DumpError for an opcode without a rule, and
    where an instruction does not fit its operands. With `any_opcode`, an opcode without a rule
    defines all that its shape holds.
    """
    looked_at = schedule.is_reached.copy()
    looked_at[regions] = True
    chosen = looked_at[program.computation]
    if not any_opcode:
        check_opcodes(program, np.flatnonzero(chosen))
    slots = lay_slots(program, chosen)
    flow = forward_within(program, slots, chosen)
    reached = schedule.is_reached[program.computation]
    in_place = in_place_slots(program, slots, rules)
    parameters = np.flatnonzero(reached & program.opcode.is_one_of("parameter"))
    forward_calls(flow, schedule, parameters, in_place)
    phi, phi_input = _phis(flow, schedule)
    source = resolve_phis(followed(flow.source), phi, phi_input)
    is_value = (source == np.arange(len(source))) & ~flow.holds_none
    number = np.where(is_value, np.cumsum(is_value) - 1, NONE)
    value = number[source]
    defined_at = np.flatnonzero(is_value)
    could_be_phi = np.zeros(len(slots), bool)
    could_be_phi[phi] = True
    return Dataflow(
        slots,
        value,
        defined_at,
        could_be_phi[defined_at],
        *_uses(program, slots, value, chosen),
        *in_place,
    )


def _phis(flow: Forwarding, schedule: Schedule) -> tuple[Ints, Ints]:
    """Pairs (slot, input) of all slots that merge values, sorted by slot.

    A while, the parameter of its body and that of its condition merge at each index the
    loop's operand and the root of its body; a conditional merges the roots of its branches.
    """
    program, slots = flow.program, flow.slots
    loops = program.rows("while")
    loops = loops[schedule.time[loops] != NONE]
    body, condition = program.callee(loops, "body"), program.callee(loops, "condition")
    merging = [
        loops,
        program.parameter_of(body, 0, loops),
        program.parameter_of(condition, 0, loops),
    ]
    inputs = (program.operand(loops, 0), program.root[body])
    found = [
        pairs(program, slots, slots.whole(merged), slots.whole(entering))
        for merged in merging
        for entering in inputs
    ]
    branches = np.flatnonzero(
        program.opcode.is_one_of("conditional")[schedule.caller] & (schedule.caller != NONE)
    )
    found.append(
        pairs(
            program,
            slots,
            slots.whole(schedule.caller[branches]),
            slots.whole(program.root[branches]),
        )
    )
    phi = np.concatenate([to for to, _ in found])
    phi_input = np.concatenate([origin for _, origin in found])
    order = np.argsort(phi, kind="stable")
    return phi[order], phi_input[order]


def _uses(
    program: NumberedProgram, slots: Slots, value: Ints, chosen: Mask
) -> tuple[Ints, Ints, Ints, Ints]:
    """Every operand that reads a value: the value, the instruction, the number, the slot.

    A root counts as a user of each value that it holds itself, even if it only forwards it.
    """
    is_root = np.zeros(len(program), bool)
    is_root[program.root] = True
    passes_all = program.opcode.is_one_of(*_NEVER_USES)
    passes_elements = program.opcode.is_one_of(*_USES_WHOLE_ONLY)
    at = np.flatnonzero((chosen & (is_root | ~passes_all))[program.operand_row])
    owner, operand = program.operand_row[at], program.operands[at]
    counts = np.where(passes_elements[owner] & ~is_root[owner], 1, slots.count[operand])
    slot = joined(slots.whole(operand), counts)
    user = np.repeat(owner, counts)
    number = np.repeat(at - program.operand_start[owner], counts)
    used = value[slot]
    reads = ~passes_all[user] & ~(
        passes_elements[user] & (slot != slots.whole(slots.instruction[slot]))
    )
    forwarding = np.flatnonzero(~reads)
    reads[forwarding] = _held_by(slots, value, user[forwarding], used[forwarding])
    reads &= used != NONE
    return used[reads], user[reads], number[reads], slot[reads]


def _held_by(slots: Slots, value: Ints, rows: Ints, values: Ints) -> Mask:
    """Whether each of these instructions holds the value beside it at any index."""
    distinct = np.unique(rows)
    held = joined(slots.whole(distinct), slots.count[distinct])
    width = len(slots) + 1
    there = slots.instruction[held] * width + value[held]
    found: Mask = np.isin(rows * width + values, there)
    return found
