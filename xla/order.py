"""Other orders of a program's instructions: their peaks in temp, and a bound for all orders.

Each scheduled computation is ordered on its own, the innermost first: an instruction that calls
others has their peak in it. A buffer is live from the first to the last instruction that accesses
it. The values that a loop carries belong to its caller. Arguments, results and constants stay as
they are.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from .computation_order import ComputationOrder, MovableBuffer
from .order_buffers import Buffers, OrderedValue, find_buffers
from .program import NONE, Program

# Programs with more instructions take longer to order than to ingest.
MAX_INSTRUCTIONS = 20_000
# Transfers, and accesses of another memory, keep their mutual order: XLA hides their latency.
_TRANSFERS = ("-start", "-done", "-update")


class Ordering:
    """Orders of a program's instructions, and their peaks in temp.

    Attributes:
        buffers: the buffers that are ordered.
    """

    def __init__(
        self, program: Program, times: Sequence[int], buffers: Buffers, kept: Set[int] = frozenset()
    ) -> None:
        """Order each scheduled computation that the entry computation reaches.

        Args:
            times: by instruction; NONE if it is not scheduled.
            kept: instructions that keep their mutual order.
        """
        self._program, self.buffers = program, buffers
        rows: dict[int, list[int]] = defaultdict(list)
        for row in sorted(range(len(program)), key=times.__getitem__):
            if times[row] != NONE:
                rows[program.computation[row]].append(row)
        self._caller: dict[int, int] = {}
        for row, calls in program.calls.items():
            for _, computation in calls:
                if times[row] != NONE and computation in rows:
                    self._caller.setdefault(computation, row)
        # The length of the path of calls from the entry to each computation.
        self._depth = {program.entry: 0} if program.entry in rows else {}
        for computation in reversed(program.callees_first()):
            if computation in self._caller:
                caller = program.computation[self._caller[computation]]
                if caller in self._depth:
                    self._depth.setdefault(computation, self._depth[caller] + 1)
        touches: dict[int, dict[int, set[int]]] = defaultdict(dict)
        for buffer, accesses in enumerate(buffers.touches):
            home, lifted = self._lift(accesses)
            touches[home][buffer] = set(lifted.values())
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for defining, readers in buffers.shared_sets:
            home, lifted = self._lift([*defining, *readers])
            writes = {lifted[row] for row in defining if row in lifted}
            edges[home] += _write_edges(sorted({*lifted.values()}, key=times.__getitem__), writes)
        control: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, predecessors in program.control_predecessors.items():
            control[program.computation[row]] += [(before, row) for before in predecessors]
        shares: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for share in buffers.shares:
            shares[program.computation[share[0]]].append(share)
        self._computations = {
            computation: ComputationOrder(
                program,
                rows[computation],
                buffers,
                touches[computation],
                shares[computation],
                [*edges[computation], *pairwise(r for r in rows[computation] if r in kept)],
                control[computation],
            )
            for computation in self._depth
        }

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
        """The depth-first peak if only the dump's guests use memory of arguments and results."""
        residents = []
        for resident in self.buffers.residents:
            home, lifted = self._lift(resident.rows)
            if home == self._program.entry:
                residents.append(replace(resident, rows=lifted.values()))
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
        while (computation := self._program.computation[row]) in self._computations:
            orders = self._computations[computation]
            movable += orders.movable_buffers(orders.node[row])
            if computation not in self._caller:
                break
            row = self._caller[computation]
        return movable

    def _peak(self, measure: Callable[[ComputationOrder, list[int]], int]) -> int:
        """A measure of the entry computation, where each call adds the measure of its callee."""
        inner = {number: [0] * len(orders.rows) for number, orders in self._computations.items()}
        peak = 0
        # Callees come before their callers, the entry last.
        for computation in sorted(inner, key=self._depth.__getitem__, reverse=True):
            peak = measure(self._computations[computation], inner[computation])
            if computation in self._caller:
                row = self._caller[computation]
                caller = self._program.computation[row]
                node = self._computations[caller].node[row]
                inner[caller][node] = max(inner[caller][node], peak)
        return peak

    def _lift(self, rows: Iterable[int]) -> tuple[int, dict[int, int]]:
        """The innermost computation that runs all rows, and by row the instruction there that does.

        Rows that the entry computation does not reach are omitted; NONE if no row remains.
        """
        computation = self._program.computation
        lifted = {row: row for row in rows if computation[row] in self._depth}
        while len(homes := {computation[call] for call in lifted.values()}) > 1:
            deepest = max(homes, key=self._depth.__getitem__)
            caller = self._caller[deepest]
            lifted = {
                row: caller if computation[call] == deepest else call
                for row, call in lifted.items()
            }
        return next(iter(homes), NONE), lifted


def _write_edges(accesses: Iterable[int], writes: Set[int]) -> list[tuple[int, int]]:
    """Edges by which a write in place follows all accesses of the value that it overwrites.

    Args:
        accesses: the instructions that write or read the memory, in their current order.
    """
    edges = []
    pending: list[int] = []
    for row in accesses:
        if row in writes:
            edges += [(earlier, row) for earlier in pending]
            pending = []
        pending.append(row)
    return edges


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
