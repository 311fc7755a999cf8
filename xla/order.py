"""Other orders of a program's instructions: their peaks in temp, and a bound for all orders.

Each scheduled computation is ordered on its own, the innermost first: an instruction that calls
others has their peak in it. A buffer is live from the first to the last instruction that accesses
it. The values that a loop carries belong to its caller. Arguments, results and constants stay as
they are.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from .computation_order import ComputationOrder, LocalBuffer, MovableBuffer
from .order_buffers import Buffers, OrderedValue, find_buffers
from .program import NONE, Program

# Programs with more instructions take longer to order than to ingest.
MAX_INSTRUCTIONS = 20_000
# Transfers, and accesses of another memory, keep their mutual order: XLA hides their latency.
_TRANSFERS = ("-start", "-done", "-update")


class Ordering:
    """The orders of a program.

    Attributes:
        buffers: the buffers that are ordered.
    """

    def __init__(
        self, program: Program, times: Sequence[int], buffers: Buffers, kept: Iterable[int] = ()
    ) -> None:
        """Find the callers of the scheduled computations.

        Args:
            times: by instruction; NONE if it is not scheduled.
            kept: instructions that keep their mutual order.
        """
        self._program, self.buffers = program, buffers
        scheduled = [row for row in range(len(program)) if times[row] != NONE]
        self._rows: dict[int, list[int]] = defaultdict(list)
        for row in sorted(scheduled, key=times.__getitem__):
            self._rows[program.computation[row]].append(row)
        self._caller: dict[int, int] = {}
        for row, calls in program.calls.items():
            for _, computation in calls:
                if times[row] != NONE and computation in self._rows:
                    self._caller.setdefault(computation, row)
        self._kept = set(kept)

    @cached_property
    def now_bytes(self) -> int:
        """The peak in temp in the current order."""
        return self._peak(lambda orders, inner: orders.peak(orders.current, inner))

    @cached_property
    def depth_first_bytes(self) -> int:
        """The peak in temp in the order of XLA's depth-first scheduler."""
        return self._peak(lambda orders, inner: orders.peak(orders.depth_first, inner))

    @cached_property
    def crowded_bytes(self) -> int:
        """The depth-first peak if only today's guests borrow memory of arguments and results."""
        residents = []
        for resident in self.buffers.residents:
            home, rows = self._lift(resident.rows)
            if home == self._program.entry:
                residents.append(replace(resident, rows=rows))
        residents.sort(key=lambda resident: (resident.is_guest, -resident.size_bytes))
        entry = self._computations.get(self._program.entry)
        return self._peak(
            lambda orders, inner: orders.peak(
                orders.depth_first, inner, residents if orders is entry else ()
            )
        )

    @cached_property
    def best_bytes(self) -> int:
        """The peak in temp in the best known order of each computation."""
        return self._peak(
            lambda orders, inner: min(orders.peak(order, inner) for order in orders.orders)
        )

    @cached_property
    def bound_bytes(self) -> int:
        """A lower bound of the peak in temp in any order of these instructions."""
        return self._peak(ComputationOrder.bound)

    def movable_buffers(self, row: int) -> list[MovableBuffer]:
        """The buffers live at an instruction in the current order, but not in every allowed one."""
        movable = []
        computation = self._program.computation[row]
        while computation in self._computations:
            orders = self._computations[computation]
            movable += orders.movable_buffers(orders.node[row])
            if computation not in self._caller:
                break
            row = self._caller[computation]
            computation = self._program.computation[row]
        return movable

    def _peak(self, measure: Callable[[ComputationOrder, list[int]], int]) -> int:
        """A measure of the entry computation, with the measure of each callee at its call."""
        inner = {computation: [0] * len(rows) for computation, rows in self._rows.items()}
        peaks: dict[int, int] = {}
        for computation in self._program.callees_first():
            if computation not in inner:
                continue
            orders = self._computations[computation]
            peaks[computation] = measure(orders, inner[computation])
            if computation in self._caller:
                row = self._caller[computation]
                caller = self._program.computation[row]
                node = self._computations[caller].node[row]
                inner[caller][node] = max(inner[caller][node], peaks[computation])
        return peaks.get(self._program.entry, 0)

    @cached_property
    def _computations(self) -> dict[int, ComputationOrder]:
        """The scheduled computations."""
        program = self._program
        buffers: dict[int, list[LocalBuffer]] = defaultdict(list)
        for buffer, rows in enumerate(self.buffers.touches):
            home, lifted = self._lift(rows)
            if home != NONE:
                buffers[home].append(LocalBuffer(buffer, self.buffers.sizes[buffer], lifted))
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for defining, readers in self.buffers.shared_sets:
            home, lifted = self._lift([*defining, *readers])
            if home != NONE:
                edges[home] += self._write_edges(home, lifted, defining)
        control: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, predecessors in program.control_predecessors.items():
            control[program.computation[row]] += [(before, row) for before in predecessors]
        shares: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for share in self.buffers.shares:
            shares[program.computation[share[0]]].append(share)
        return {
            computation: ComputationOrder(
                program,
                rows,
                buffers[computation],
                shares[computation],
                [*edges[computation], *pairwise(row for row in rows if row in self._kept)],
                control[computation],
                self.buffers.defined_bytes,
            )
            for computation, rows in self._rows.items()
        }

    def _write_edges(
        self, home: int, touches: Iterable[int], defining: Iterable[int]
    ) -> list[tuple[int, int]]:
        """Edges by which a write in place follows all accesses of the value that it overwrites."""
        writes = {self._instruction_in(home, row) for row in defining}
        position = {row: index for index, row in enumerate(self._rows[home])}
        accesses: list[int] = []
        edges = []
        for row in sorted(touches, key=position.__getitem__):
            if row in writes:
                edges += [(earlier, row) for earlier in accesses]
                accesses = []
            accesses.append(row)
        return edges

    def _instruction_in(self, home: int, row: int) -> int:
        """The instruction of a computation within which another one runs."""
        while self._program.computation[row] != home:
            row = self._caller[self._program.computation[row]]
        return row

    def _lift(self, rows: Iterable[int]) -> tuple[int, list[int]]:
        """The innermost computation that runs all these instructions, and its own that do.

        Instructions that the entry computation does not reach are left out; NONE without others.
        """
        rows = set(rows)
        computations = {self._program.computation[row] for row in rows}
        if len(computations) == 1:
            (home,) = computations
            return (home, sorted(rows)) if home in self._callers else (NONE, [])
        paths = [path for row in rows if (path := self._path(row))]
        home, depth = NONE, 0
        while paths and all(len(path) > depth for path in paths):
            computations = {path[depth][0] for path in paths}
            if len(computations) > 1:
                break
            (home,) = computations
            depth += 1
        return home, sorted({path[depth - 1][1] for path in paths}) if home != NONE else []

    def _path(self, row: int) -> list[tuple[int, int]]:
        """The computations from the entry to an instruction, with the instruction in each."""
        computation = self._program.computation[row]
        callers = self._callers.get(computation)
        return [] if callers is None else [*callers, (computation, row)]

    @cached_property
    def _callers(self) -> dict[int, list[tuple[int, int]]]:
        """The path from the entry to each scheduled computation that it reaches.

        A path has a pair for each computation: itself, and the call of the next computation.
        """
        paths: dict[int, list[tuple[int, int]]] = {}
        if self._program.entry in self._rows:
            paths[self._program.entry] = []
        for computation in reversed(self._program.callees_first()):
            row = self._caller.get(computation, NONE)
            if row != NONE and computation not in paths:
                caller = self._program.computation[row]
                if caller in paths:
                    paths[computation] = [*paths[caller], (caller, row)]
        return paths


def order_instructions(
    program: Program,
    times: Sequence[int],
    values: Sequence[OrderedValue],
    uses: Sequence[tuple[int, int]],
    memory_space: int,
    platform: str | None,
) -> Ordering:
    """The orders of a program's instructions in a memory space.

    Args:
        times: the schedule time of each instruction; NONE without.
        values: in ascending order of value_id.
        uses: a value_id, and an instruction that reads the value.
    """
    buffers = find_buffers(program, values, uses)
    kept: set[int] = set()
    if platform != "cpu":
        elsewhere = {value.value_id for value in values if value.memory_space != memory_space}
        kept = {row for row, opcode in enumerate(program.opcode) if opcode.endswith(_TRANSFERS)}
        kept |= {value.row for value in values if value.value_id in elsewhere}
        kept |= {row for value_id, row in uses if value_id in elsewhere}
    return Ordering(program, times, buffers, kept)
