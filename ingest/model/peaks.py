"""How full each memory space is over time, with places but no offsets: an estimate.

A place counts with the largest of its values that live at a time; allocations outside of
temp count for the whole program.
"""

import numpy as np
import pyarrow as pa

from ...schema.address_space.occupancy import changes
from .derived import Derived
from .numbered_program import NONE, Ints, Mask
from .placement import CONSTANT, OUTPUT, PARAMETER, TEMP, THREAD_LOCAL, Placement
from .sizes import Sizes


def occupancy_steps(
    derived: Derived, sizes: Sizes, placement: Placement, group: Ints, ends: Ints
) -> pa.Table:
    """When the bytes in a memory space change, and the bytes from then on.

    Columns as in `occupancy`: memory_space, start_time, live_bytes, occupied_bytes. `ends` are
    the ends of the values' ranges as the heap counts them.
    """
    starts = derived.liveness.start
    length = max(len(derived.schedule), 1)
    tables = []
    for space in np.unique(sizes.space[placement.kind != THREAD_LOCAL]).tolist():
        here = (sizes.space == space) & (placement.kind != THREAD_LOCAL)
        lives = here & (starts != NONE)
        live_times, live = changes(starts[lives], derived.liveness.end[lives], sizes.size[lives])
        temp = here & (placement.kind == TEMP)
        places = _largest_live(group[temp], starts[temp], ends[temp], sizes.size[temp])
        occupied_times, occupied = changes(*places)
        times = np.unique(np.concatenate([[0], live_times, occupied_times]))
        times = times[times < length]
        fixed = int(placement.set_size[_allocations(sizes, placement, space)].sum())
        tables.append(
            _changed(space, times, _held(live_times, live, times),
                     _held(occupied_times, occupied, times) + fixed)
        )  # fmt: skip
    return pa.concat_tables(tables) if tables else _changed(0, *[np.array([], np.int64)] * 3)


def peak_rows(sizes: Sizes, placement: Placement, occupancy: pa.Table) -> pa.Table:
    """The figures of each memory space.

    Columns: memory_space, argument_bytes, output_bytes, alias_bytes, constant_bytes, peak_bytes,
    peak_time, peak_live_bytes, as in `module_memory`.
    """
    rows = []
    spaces = occupancy["memory_space"].to_numpy()
    for space in np.unique(spaces).tolist():
        made = _allocations(sizes, placement, space)
        size, kind = placement.set_size[made], placement.kind[made]
        donated = (kind == PARAMETER) & placement.lives_out[made]
        step = occupancy.filter(pa.array(spaces == space))
        peak = int(np.argmax(step["occupied_bytes"].to_numpy()))
        rows.append(
            {
                "memory_space": space,
                "argument_bytes": int(size[kind == PARAMETER].sum()),
                "output_bytes": int(size[(kind == OUTPUT) | donated].sum()),
                "alias_bytes": int(size[donated].sum()),
                "constant_bytes": int(size[kind == CONSTANT].sum()),
                "peak_bytes": step["occupied_bytes"][peak].as_py(),
                "peak_time": step["start_time"][peak].as_py(),
                "peak_live_bytes": step["live_bytes"][peak].as_py(),
            }
        )
    return pa.Table.from_pylist(rows)


def _allocations(sizes: Sizes, placement: Placement, space: int) -> Ints:
    """The alias sets that an allocation of this space was made for."""
    own = placement.allocation == np.arange(len(placement.allocation))
    return np.flatnonzero(own & (sizes.space == space))


def _changed(space: int, times: Ints, live: Ints, occupied: Ints) -> pa.Table:
    """The steps at which one of the sums changes."""
    changed: Mask = np.ones(len(times), bool)
    changed[1:] = (np.diff(live) != 0) | (np.diff(occupied) != 0)
    return pa.table(
        {
            "memory_space": pa.array(np.full(int(changed.sum()), space), pa.int32()),
            "start_time": pa.array(times[changed], pa.int32()),
            "live_bytes": pa.array(live[changed], pa.int64()),
            "occupied_bytes": pa.array(occupied[changed], pa.int64()),
        }
    )


def _held(times: Ints, sums: Ints, at: Ints) -> Ints:
    """The sum that holds at each time: that of the last change up to then, 0 before any."""
    found: Ints = np.concatenate([[0], sums])[np.searchsorted(times, at, side="right")]
    return found


def _largest_live(group: Ints, start: Ints, end: Ints, size: Ints) -> tuple[Ints, Ints, Ints]:
    """For each place the pieces of time, both ends inclusive, and the largest size live in each.

    The places' times are lifted apart and cut at each start and end.
    """
    if not len(group):
        return start, end, size
    _, place = np.unique(group, return_inverse=True)
    lift = int(end.max()) + 2
    low, high = place * lift + start, place * lift + end + 1
    bounds = np.unique(np.concatenate([low, high]))
    first, stop = np.searchsorted(bounds, low), np.searchsorted(bounds, high)
    count = stop - first
    owner = np.repeat(np.arange(len(place)), count)
    piece = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    largest = np.zeros(len(bounds), np.int64)
    np.maximum.at(largest, piece, size[owner])
    used = np.flatnonzero(largest)
    return bounds[used] % lift, bounds[used + 1] % lift - 1, largest[used]
