"""Schedules for HLO text that has none: what XLA has not ordered yet can only be estimated.

XLA orders an unscheduled module by the best of several heuristics. Two are tried here: the order
of the text, which is a post order of the graph, and a list schedule that keeps little alive.
"""

import heapq
from dataclasses import replace

import numpy as np

from .dataflow import Sizes, flatten
from .liveness import Derived, live_ranges
from .program import NONE, Ints


def list_scheduled(derived: Derived, sizes: Sizes) -> Derived:
    """The same program in an order that keeps few bytes alive.

    Of the instructions whose operands have been computed, the next is one that frees most bytes
    beyond those that it defines; of several the first in the text. Values that a computation
    gets from its caller, or gives back, are never freed in it.
    """
    program, dataflow = derived.program, derived.dataflow
    order = np.arange(len(program))
    defined = np.zeros(len(program), np.int64)
    np.add.at(defined, dataflow.instruction, sizes.size)
    # Each pair of a value and an instruction of the same computation that reads it, once.
    user, value = _distinct(dataflow.use_instruction, dataflow.use_value)
    computation = program.computation[dataflow.instruction]
    is_freed = ~program.opcode.is_one_of("parameter")[dataflow.instruction]
    roots = np.isin(user, program.root)
    is_freed[value[roots]] = False
    counts = is_freed[value] & (computation[value] == program.computation[user])
    user, value = user[counts], value[counts]
    for number in np.flatnonzero(derived.schedule.is_reached).tolist():
        first, stop = int(program.first[number]), int(program.stop[number])
        chosen = (user >= first) & (user < stop)
        order[first:stop] = _list_order(
            derived, first, stop, defined, sizes.size, user[chosen], value[chosen]
        )
    schedule = flatten(program, order=order, is_shared=True)
    liveness = live_ranges(program, schedule, dataflow, async_starts_late=derived.async_starts_late)
    return replace(derived, schedule=schedule, liveness=liveness)


def _list_order(
    derived: Derived, first: int, stop: int, defined: Ints, size: Ints, user: Ints, value: Ints
) -> list[int]:
    """The rows from `first` to `stop` in the order of a list schedule.

    (user, value) are the values that may be freed, and who reads them. A plain loop, because each
    choice depends on the ones before it; only text without a schedule takes this way.
    """
    program = derived.program
    values_of: dict[int, list[int]] = {}
    readers: dict[int, set[int]] = {}
    for row, number in zip(user.tolist(), value.tolist(), strict=True):
        values_of.setdefault(row, []).append(number)
        readers.setdefault(number, set()).add(row)
    bounds = program.operand_start[first : stop + 1].tolist()
    operands = program.operands[bounds[0] : bounds[-1]].tolist()
    waits_for: dict[int, int] = {}
    followers: dict[int, list[int]] = {}
    for row in range(first, stop):
        own = set(operands[bounds[row - first] - bounds[0] : bounds[row - first + 1] - bounds[0]])
        waits_for[row] = len(own)
        for operand in own:
            followers.setdefault(operand, []).append(row)

    def cost(row: int) -> int:
        """How many bytes more are alive after the instruction has run."""
        freed = sum(int(size[v]) for v in values_of.get(row, ()) if len(readers[v]) == 1)
        return int(defined[row]) - freed

    ready = [(cost(row), row) for row in range(first, stop) if not waits_for[row]]
    heapq.heapify(ready)
    order: list[int] = []
    done: set[int] = set()
    while ready:
        _, row = heapq.heappop(ready)
        if row in done:
            continue
        done.add(row)
        order.append(row)
        for number in values_of.get(row, ()):
            readers[number].discard(row)
            if len(readers[number]) == 1:
                # The last reader frees the value: it may be the better choice now.
                (last,) = readers[number]
                if not waits_for[last]:
                    heapq.heappush(ready, (cost(last), last))
        for follower in followers.get(row, ()):
            waits_for[follower] -= 1
            if not waits_for[follower]:
                heapq.heappush(ready, (cost(follower), follower))
    return order


def _distinct(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The distinct pairs of two columns."""
    width = int(right.max(initial=NONE)) + 1 or 1
    keys = np.unique(left * width + right)
    return keys // width, keys % width
