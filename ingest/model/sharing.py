"""The peak of each memory space from HLO text alone: an estimate.

XLA's heap simulator replays the schedule: a result may take the place of an operand that
ends as the result begins, values that must alias lie in one place, and all others get a
place of their own. The peak needs only who shares a place, and no offsets.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..hlo_text import HloText
from ..occupancy import accumulated
from .aliasing_operands import recorded_sharing
from .can_share import Sharing
from .derived import Derived
from .placement import CONSTANT, OUTPUT, PARAMETER, TEMP, Placement, place
from .program import NONE, Ints, Mask
from .runs import followed
from .sizes import TPU, Sizes, platform_of, value_sizes

_VMEM = 1


@dataclass(frozen=True)
class Estimate:
    """What a program occupies: each value's size, space, kind of allocation and place.

    `group` is the number of the value that first had a temp value's place; values of one group
    share it. `peaks` has a row for each memory space: memory_space, argument_bytes,
    output_bytes, constant_bytes, temp_peak_bytes, peak_bytes, peak_time.
    """

    sizes: Sizes
    placement: Placement
    group: Ints
    peaks: pa.Table


def estimate(hlo: HloText, derived: Derived) -> Estimate:
    """Estimate the peak of each memory space. Raises DumpError for an unbounded shape."""
    platform = platform_of(hlo)
    sizes = value_sizes(derived.dataflow, platform)
    sharing = Sharing(
        derived.program,
        derived.schedule,
        derived.dataflow,
        derived.liveness,
        platform,
        recorded_sharing(hlo.instruction_lines, derived.program, derived.dataflow.slots),
    )
    placement = place(derived.program, derived.dataflow, derived.liveness, sizes, sharing)
    group = _temp_groups(derived, sizes, placement, sharing)
    return Estimate(sizes, placement, group, _peaks(derived, sizes, placement, group, sharing))


def _temp_groups(derived: Derived, sizes: Sizes, placement: Placement, sharing: Sharing) -> Ints:
    """Which temp values lie in one place: the number of the place's first value.

    A value takes the place of the first operand that ends now, is temp and is not taken yet;
    otherwise that of its alias set, if a value of the set came before.
    """
    liveness, dataflow = derived.liveness, derived.dataflow
    is_array = dataflow.slots.array[dataflow.defined_at] != NONE
    temp = (placement.kind == TEMP) & is_array
    pointer = _first_of_set(temp, liveness.start, liveness.alias_set)
    later, earlier = _handovers(derived, sizes, temp, sharing)
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
    defines = dataflow.defined_at[held] == position
    if sharing.platform == TPU:
        defines |= sizes.space[held] == _VMEM
    at = np.flatnonzero(ends & defines)
    at = at[sharing.can_share(user[at], number[at], position[at], dataflow.defined_at[value[at]])]
    order = np.lexsort((number[at], value[at], liveness.start[value[at]]))
    return value[at][order], held[at][order]


def _peaks(
    derived: Derived, sizes: Sizes, placement: Placement, group: Ints, sharing: Sharing
) -> pa.Table:
    """The fixed bytes, the peak and its time in each memory space."""
    length = len(derived.schedule)
    rows = []
    fixed = np.flatnonzero(placement.allocation == np.arange(len(group)))
    space = sizes.space
    for number in np.unique(space).tolist():
        here = fixed[space[fixed] == number]
        of_kind = {
            kind: int(placement.set_size[here[placement.kind[here] == kind]].sum())
            for kind in (PARAMETER, OUTPUT, CONSTANT)
        }
        temp = (placement.kind == TEMP) & (space == number)
        times, live = _occupied(derived, sizes, group, temp, sharing)
        inside = times < max(length, 1)
        peak = int(np.argmax(live[inside])) if inside.any() else NONE
        temp_peak = int(live[inside][peak]) if peak != NONE else 0
        rows.append(
            {
                "memory_space": number,
                "argument_bytes": of_kind[PARAMETER],
                "output_bytes": of_kind[OUTPUT],
                "constant_bytes": of_kind[CONSTANT],
                "temp_peak_bytes": temp_peak,
                "peak_bytes": sum(of_kind.values()) + temp_peak,
                "peak_time": int(times[inside][peak]) if peak != NONE else 0,
            }
        )
    return pa.Table.from_pylist(rows)


def _occupied(
    derived: Derived, sizes: Sizes, group: Ints, chosen: Mask, sharing: Sharing
) -> tuple[Ints, Ints]:
    """When the bytes of the chosen values' places change, and the bytes from then on.

    A place counts the largest of its values that live at a time.
    """
    at = np.flatnonzero(chosen)
    start, end = derived.liveness.start[at], _ends(derived, sharing)[at]
    size, place_of = sizes.size[at], group[at]
    _, code, count = np.unique(place_of, return_inverse=True, return_counts=True)
    alone = count[code] == 1
    times = [start[alone], end[alone] + 1]
    deltas = [size[alone], -size[alone]]
    shared = np.flatnonzero(~alone)
    if len(shared):
        begin, stop, bytes_ = _largest_live(code[shared], start[shared], end[shared], size[shared])
        times += [begin, stop]
        deltas += [bytes_, -bytes_]
    return accumulated(np.concatenate(times), np.concatenate(deltas))


def _largest_live(code: Ints, start: Ints, end: Ints, size: Ints) -> tuple[Ints, Ints, Ints]:
    """For each place the pieces of time, and the largest size that lives in each piece.

    The places' times are cut at each start and end; sizes are raised from the smallest on.
    """
    lift = int(end.max()) + 2
    low, high = code * lift + start, code * lift + end + 1
    bounds = np.unique(np.concatenate([low, high]))
    first, stop = np.searchsorted(bounds, low), np.searchsorted(bounds, high)
    count = stop - first
    owner = np.repeat(np.arange(len(code)), count)
    segment = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    largest = np.zeros(len(bounds), np.int64)
    np.maximum.at(largest, segment, size[owner])
    used = np.flatnonzero(largest)
    return bounds[used] % lift, bounds[used + 1] % lift, largest[used]


def _ends(derived: Derived, sharing: Sharing) -> Ints:
    """The end of each value's range as the heap counts it."""
    end = derived.liveness.end
    if sharing.platform != TPU:
        return end
    return np.where(sharing.is_within_result, end - 1, end)
