"""A schedule for HLO text that has none: an order of instructions that keeps few bytes live.

XLA schedules an unscheduled module by the best of several heuristics. Two are tried here: the
order of the text, which is a post order of the graph, and this list schedule.
"""

import heapq
from collections import defaultdict

from .analysis import Analysis
from .liveness import reorder
from .sizes import ValueSizes, value_sizes


def list_schedule(analysis: Analysis, platform: str) -> Analysis:
    """Reorder a program so that few bytes are live on a platform.

    Of the instructions whose operands have been computed, the next is the one that frees most bytes
    beyond those that it defines; of several the first in the text. Values that a computation
    gets from its caller, or returns, are never freed in it.
    """
    scheduler = _Scheduler(analysis, value_sizes(analysis.flow, platform))
    order: list[int] = []
    for computation in range(len(analysis.program.computation_names)):
        rows = analysis.program.rows_of(computation)
        is_reached = analysis.schedule.is_reached(computation)
        order += scheduler.schedule(computation) if is_reached else rows
    return reorder(analysis, order)


class _Scheduler:
    """A list scheduler for each computation of a program.

    Attributes:
        defined_bytes: by row, the bytes of the values that it defines.
        read_values: by row, the values that it reads and that may be freed in its computation.
        readers: by value, the instructions that still have to read it.
    """

    def __init__(self, analysis: Analysis, sizes: ValueSizes) -> None:
        program, flow = analysis.program, analysis.flow
        self._program, self._size_bytes = program, sizes.size_bytes
        self.defined_bytes = [0] * len(program)
        for row, size in zip(flow.row, sizes.size_bytes, strict=True):
            self.defined_bytes[row] += size
        roots = set(program.root)
        kept = {value for value, row in enumerate(flow.row) if program.opcode[row] == "parameter"}
        uses = dict.fromkeys(zip(flow.use_row, flow.use_value, strict=True))
        kept.update(value for row, value in uses if row in roots)
        self.read_values: defaultdict[int, list[int]] = defaultdict(list)
        self.readers: defaultdict[int, set[int]] = defaultdict(set)
        for row, value in uses:
            is_local = program.computation[row] == program.computation[flow.row[value]]
            if is_local and value not in kept:
                self.read_values[row].append(value)
                self.readers[value].add(row)

    def schedule(self, computation: int) -> list[int]:
        """The rows of a computation in an order that keeps few bytes live."""
        rows = self._program.rows_of(computation)
        n_missing = {row: len(set(self._program.operands[row])) for row in rows}
        users: defaultdict[int, list[int]] = defaultdict(list)
        for row in rows:
            for operand in set(self._program.operands[row]):
                users[operand].append(row)
        ready = [(self._growth(row), row) for row in rows if not n_missing[row]]
        heapq.heapify(ready)
        # Keys keep the order; an instruction whose growth has fallen is in the heap twice.
        order: dict[int, None] = {}
        while ready:
            _, row = heapq.heappop(ready)
            if row in order:
                continue
            order[row] = None
            for value in self.read_values.get(row, ()):
                readers = self.readers[value]
                readers.discard(row)
                if len(readers) == 1:
                    # The last reader frees the value.
                    (last_reader,) = readers
                    if not n_missing[last_reader]:
                        heapq.heappush(ready, (self._growth(last_reader), last_reader))
            for user in users.get(row, ()):
                n_missing[user] -= 1
                if not n_missing[user]:
                    heapq.heappush(ready, (self._growth(user), user))
        return list(order)

    def _growth(self, row: int) -> int:
        """The live bytes that an instruction adds; negative if it frees more than it defines."""
        freed = sum(
            self._size_bytes[value]
            for value in self.read_values.get(row, ())
            if len(self.readers[value]) == 1
        )
        return self.defined_bytes[row] - freed
