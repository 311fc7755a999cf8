"""What shares memory with what, from HLO text alone: an estimate.

XLA's heap simulator replays the schedule: a result may take the place of an operand that
ends as the result begins, values that must alias lie in one place, and all others get a
place of their own. A peak needs only who shares a place, and no offsets.
"""

from dataclasses import dataclass

import numpy as np

from ...schema.address_space.runs import followed
from .aliasing_operands import recorded_sharing
from .can_share import Sharing
from .derived import Derived
from .numbered_program import NONE, Ints, Mask
from .parts import HloText
from .placement import TEMP, Placement, place
from .sizes import TPU, Sizes, platform_of, value_sizes

_VMEM = 1


@dataclass(frozen=True)
class Estimate:
    """What a program occupies: each value's size, space, kind of allocation and place.

    `group` is the number of the value that first had a temp value's place; values of one group
    share it. `ends` are the ends of the live ranges as the heap counts them.
    """

    platform: str
    sizes: Sizes
    placement: Placement
    group: Ints
    ends: Ints


def estimate(hlo: HloText, derived: Derived, *, platform: str | None = None) -> Estimate:
    """Estimate what a program occupies. Raises DumpError for an unbounded shape.

    `platform` is cpu, gpu or tpu, if the file names tell; otherwise the text tells.
    """
    platform = platform or platform_of(hlo)
    sizes = value_sizes(derived.dataflow, platform)
    sharing = Sharing(
        derived.program,
        derived.schedule,
        derived.dataflow,
        derived.liveness,
        platform,
        recorded_sharing(
            hlo.attributes().aliasing_operands, derived.program, derived.dataflow.slots
        ),
    )
    placement = place(derived, sizes, sharing)
    group = _temp_groups(derived, sizes, placement, sharing)
    ends = _heap_ends(derived, sharing)
    return Estimate(platform, sizes, placement, group, ends)


def _temp_groups(derived: Derived, sizes: Sizes, placement: Placement, sharing: Sharing) -> Ints:
    """Which temp values lie in one place: the number of the place's first value.

    A value takes the place of the first operand that ends now, is temp and is not taken yet;
    otherwise that of its alias set, if a value of the set came before.
    """
    liveness, dataflow = derived.liveness, derived.dataflow
    is_array = dataflow.slots.array[dataflow.defined_at] != NONE
    temp = placement.kind == TEMP
    pointer = _first_of_set(temp, liveness.start, liveness.alias_set)
    later, earlier = _handovers(derived, sizes, temp & is_array, sharing)
    taken: set[int] = set()
    shared: set[int] = set()
    for value, operand in zip(later.tolist(), earlier.tolist(), strict=True):
        if value not in shared and operand not in taken:
            shared.add(value)
            taken.add(operand)
            pointer[value] = operand
    return followed(pointer)


def _first_of_set(temp: Mask, start: Ints, alias_set: Ints) -> Ints:
    """For each temp value the first temp value of its alias set; itself for other values."""
    pointer = np.arange(len(temp))
    at = np.flatnonzero(temp)
    at = at[np.lexsort((at, start[at], alias_set[at]))]
    head = np.concatenate([[True], alias_set[at[1:]] != alias_set[at[:-1]]])[: len(at)]
    pointer[at] = at[np.maximum.accumulate(np.where(head, np.arange(len(at)), 0))]
    return pointer


def _handovers(derived: Derived, sizes: Sizes, temp: Mask, sharing: Sharing) -> tuple[Ints, Ints]:
    """Pairs (value, operand's value) that may share, in the order in which XLA tries them."""
    program, dataflow, liveness = derived.program, derived.dataflow, derived.liveness
    slots = dataflow.slots
    values = np.flatnonzero(temp)
    row = dataflow.instruction[values]
    values = values[~program.opcode.is_one_of("parameter")[row]]
    row = dataflow.instruction[values]
    count = program.operand_count[row]
    value = np.repeat(values, count)
    user = np.repeat(row, count)
    number = np.arange(len(value)) - np.repeat(np.cumsum(count) - count, count)
    operand = program.operands[program.operand_start[user] + number]
    position = slots.start[operand]
    held = dataflow.value[position]
    ends = (held != NONE) & (liveness.end[held] == liveness.start[value])
    ends &= temp[held] & (sizes.space[held] == sizes.space[value])
    # In VMEM a TPU looks at the operand itself, elsewhere at the instruction that defines it.
    # XLA's heap leaves values alone that must alias others.
    alone = np.bincount(liveness.alias_set, minlength=len(dataflow))[liveness.alias_set] == 1
    may = (dataflow.defined_at[held] == position) & alone[value] & alone[held]
    if sharing.platform == TPU:
        may |= sizes.space[held] == _VMEM
    at = np.flatnonzero(ends & may)
    # Of an operand that the instruction names several times, XLA looks at the first.
    _, first = np.unique(value[at] * len(slots) + position[at], return_index=True)
    at = at[np.sort(first)]
    at = at[sharing.can_share(user[at], number[at], position[at], dataflow.defined_at[value[at]])]
    # Values that begin together are results of one instruction, in the order of their ends.
    order = np.lexsort((number[at], value[at], liveness.end[value[at]], liveness.start[value[at]]))
    return value[at][order], held[at][order]


def _heap_ends(derived: Derived, sharing: Sharing) -> Ints:
    """The end of each value's range as the heap counts it.

    The operands of a TPU's ConcatBitcast lie within its result, so that they end one earlier.
    """
    end = derived.liveness.end
    return np.where(sharing.is_within_result, end - 1, end) if sharing.platform == TPU else end
