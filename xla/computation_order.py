"""Orders of the instructions of one computation, the peak of each, and a bound for all."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from .opcodes import ELEMENTWISE
from .order_buffers import Buffers, Resident
from .post_order import post_order
from .program import NONE, Program

# XLA's scheduler does not count these, which define no buffer of their own.
_NOT_COUNTED = ("parameter", "constant")
# A node is an instruction of the computation: its position in the current order.
Node = int


@dataclass(frozen=True)
class MovableBuffer:
    """A buffer that is live at an instruction in the current order, but not in every allowed one.

    Attributes:
        maker, reader: the instruction that defines it, and the next one that accesses it.
        is_read_late: whether the reader need not wait for the instruction; otherwise the maker
            need not run before it.
    """

    buffer: int
    size_bytes: int
    maker: int
    reader: int
    is_read_late: bool


class ComputationOrder:
    """The instructions of a computation, and the buffers that only it accesses.

    Attributes:
        rows: the instructions in the current order; a node is an index of it.
        node: by row.
    """

    def __init__(
        self,
        program: Program,
        rows: list[int],
        buffers: Buffers,
        touches: Mapping[int, Iterable[int]],
        shares: Iterable[tuple[int, int, int]],
        edges: Iterable[tuple[int, int]],
        control: Iterable[tuple[int, int]],
    ) -> None:
        """Number the nodes.

        Args:
            buffers: those of the program.
            touches: by buffer that only this computation accesses, the instructions that access it
                or call a computation that does.
            shares: those of `buffers` that are in this computation.
            edges: pairs of instructions: one that must run earlier, and one that must run later.
            control: the same for XLA's control dependencies.
        """
        self._program, self._defined_bytes = program, buffers.defined_bytes
        self.rows = rows
        self.node = {row: node for node, row in enumerate(rows)}
        self._buffers = list(touches)
        self._sizes = [buffers.sizes[buffer] for buffer in touches]
        self._touches = [sorted(self.node[row] for row in touched) for touched in touches.values()]
        self._touched: list[list[int]] = [[] for _ in rows]
        for number, nodes in enumerate(self._touches):
            for node in nodes:
                self._touched[node].append(number)
        node_of, distinct = self.node, [dict.fromkeys(program.operands[row]) for row in rows]
        self._operands = [[node_of[o] for o in operands if o in node_of] for operands in distinct]
        # XLA's schedulers follow control dependencies as they follow operands.
        self._searched = [list(operands) for operands in self._operands]
        for first, then in control:
            if first in self.node and then in self.node:
                self._searched[self.node[then]].append(self.node[first])
        before = [set(operands) for operands in self._operands]
        for first, then in (*edges, *control):
            # An edge against the current order is ignored: the dump's schedule violates it.
            if first in self.node and self.node[first] < self.node.get(then, NONE):
                before[self.node[then]].add(self.node[first])
        self._before = [sorted(nodes) for nodes in before]
        self._after: list[list[Node]] = [[] for _ in rows]
        for then, nodes in enumerate(self._before):
            for first in nodes:
                self._after[first].append(then)
        self._set_shares(shares)

    def _set_shares(self, shares: Iterable[tuple[int, int, int]]) -> None:
        """Find the results that share the memory of an operand that ends there, or could.

        They share it as in the dump, and elementwise instructions can also write over an operand
        of the same size.
        """
        number = {buffer: index for index, buffer in enumerate(self._buffers)}
        shared: dict[Node, set[tuple[int, int]]] = defaultdict(set)
        for row, operand, result in shares:
            if operand in number and result in number:
                shared[self.node[row]].add((number[operand], number[result]))
        possible = {(node, *pair) for node, pairs in shared.items() for pair in pairs}
        for node, buffers in enumerate(self._touched):
            is_elementwise = self._program.opcode[self.rows[node]] in ELEMENTWISE
            ended = {operand for operand, _ in shared[node]}
            reused = {result for _, result in shared[node]}
            for result in buffers:
                if self._touches[result][0] != node:
                    continue
                equal = [
                    buffer
                    for buffer in buffers
                    if self._touches[buffer][0] != node
                    and self._sizes[buffer] == self._sizes[result]
                ]
                possible.update((node, operand, result) for operand in equal)
                free = [operand for operand in equal if operand not in ended]
                if is_elementwise and result not in reused and free:
                    shared[node].add((free[0], result))
                    ended.add(free[0])
        self._shared = sorted((node, *pair) for node, pairs in shared.items() for pair in pairs)
        self._possibly_shared = sorted(possible)

    @property
    def current(self) -> list[Node]:
        """The current order."""
        return list(range(len(self.rows)))

    def peak(
        self, order: Sequence[Node], inner: Sequence[int], residents: Sequence[Resident] = ()
    ) -> int:
        """The most bytes in use in an order.

        Args:
            inner: by node, the bytes that the computations it calls need.
            residents: values of arguments and results, guests last; those that find no memory in
                the order are counted.
        """
        count = len(self.rows)
        if not count:
            return 0
        position = _inverse(order)
        first = [min(position[node] for node in nodes) for nodes in self._touches]
        last = [max(position[node] for node in nodes) for nodes in self._touches]
        change = [0] * (count + 1)
        for size, start, end in zip(self._sizes, first, last, strict=True):
            change[start] += size
            change[end + 1] -= size
        used = [
            live + inner[node] for live, node in zip(accumulate(change[:-1]), order, strict=True)
        ]
        for node, operand, result in self._shared:
            time = position[node]
            if last[operand] == time == first[result]:
                used[time] -= min(self._sizes[operand], self._sizes[result])
        for size, start, end in self._displaced(position, residents):
            for time in range(start, end + 1):
                used[time] += size
        return max(used)

    def _displaced(
        self, position: Sequence[int], residents: Sequence[Resident]
    ) -> Iterator[tuple[int, int, int]]:
        """The guests that find no free memory in an order: size, first and last time.

        A guest keeps its allocation if it can; otherwise it takes the smallest that is free.
        """
        claimed: dict[int, list[tuple[int, int]]] = defaultdict(list)
        sizes: dict[int, int] = defaultdict(int)
        for resident in residents:
            times = [position[self.node[row]] for row in resident.rows]
            first, last = 0 if resident.is_argument else min(times), max(times)
            size = resident.size_bytes
            if not resident.is_guest:
                sizes[resident.allocation] = max(sizes[resident.allocation], size)
                claimed[resident.allocation].append((first, last))
                continue
            allocation: int | None = resident.allocation
            # In its own allocation a value may be written over the one that ends there.
            if any(start < last and first < end for start, end in claimed[resident.allocation]):
                by_size = sorted((room, other) for other, room in sizes.items() if room >= size)
                free = (
                    other
                    for _, other in by_size
                    if all(last < start or end < first for start, end in claimed[other])
                )
                allocation = next(free, None)
            if allocation is None:
                yield size, first, last
            else:
                claimed[allocation].append((first, last))

    @cached_property
    def _ancestors(self) -> list[int]:
        """By node, a bit set of itself and all nodes that must run before it."""
        return _reachable(self.current, self._before)

    @cached_property
    def _descendants(self) -> list[int]:
        """By node, a bit set of itself and all nodes that must run after it."""
        return _reachable(reversed(self.current), self._after)

    def bound(self, inner: Sequence[int]) -> int:
        """A lower bound of the peak in any order: the bytes that are live at a node in all orders.

        A buffer is live at a node in all orders if one of its accesses must run before the node
        and one after it. Takes the square of the number of nodes in bits.
        """
        sums = _BitSums()
        for size, touches in zip(self._sizes, self._touches, strict=True):
            before_access = after_access = 0
            for node in touches:
                before_access |= self._ancestors[node]
                after_access |= self._descendants[node]
            sums.add(size, before_access & after_access)
        used = [
            total + called for total, called in zip(sums.totals(len(self.rows)), inner, strict=True)
        ]
        for node, size in self._max_shared().items():
            used[node] -= size
        return max(used, default=0)

    def _max_shared(self) -> dict[Node, int]:
        """The most bytes of operands that results can write over, by node."""
        by_result: dict[tuple[Node, int], int] = defaultdict(int)
        for node, operand, result in self._possibly_shared:
            others = (other for other in self._touches[operand] if other != node)
            if not any(self._descendants[node] >> other & 1 for other in others):
                size = by_result[node, result] + self._sizes[operand]
                by_result[node, result] = min(size, self._sizes[result])
        shared: dict[Node, int] = defaultdict(int)
        for (node, _), size in by_result.items():
            shared[node] += size
        return shared

    def movable_buffers(self, node: Node) -> list[MovableBuffer]:
        """The buffers that are live across a node now, but not in every allowed order.

        The node does not access them.
        """
        before, after = self._ancestors[node], self._descendants[node]
        movable = []
        for number, touches in enumerate(self._touches):
            if not touches[0] < node < touches[-1] or node in touches:
                continue
            is_read_late = any(before >> touch & 1 for touch in touches)
            if not is_read_late or not any(after >> touch & 1 for touch in touches):
                reader = next(touch for touch in touches if touch > node)
                buffer, size = self._buffers[number], self._sizes[number]
                rows = self.rows[touches[0]], self.rows[reader]
                movable.append(MovableBuffer(buffer, size, *rows, is_read_late))
        return movable

    @cached_property
    def orders(self) -> list[list[Node]]:
        """The current order, XLA's depth-first order and two greedy ones, where allowed."""
        others = (
            self.depth_first,
            self._greedy(self._before, self._after),
            self._greedy(self._after, self._before)[::-1],
        )
        return [self.current, *(order for order in others if self._is_allowed(order))]

    def _is_allowed(self, order: Sequence[Node]) -> bool:
        """Whether every node runs after all that must run before it."""
        position = _inverse(order)
        return all(
            position[first] < position[then]
            for then, before in enumerate(self._before)
            for first in before
        )

    @cached_property
    def depth_first(self) -> list[Node]:
        """The order of XLA's DFSMemoryScheduler.

        Of an instruction's operands, those with more other users come first, then the larger ones.
        """
        program, rows, count = self._program, self.rows, len(self.rows)
        users = [0] * count
        for operands in self._operands:
            for operand in operands:
                users[operand] += 1
        root = self.node.get(program.root[program.computation[rows[0]]], count - 1)
        read = {node for nodes in self._searched for node in nodes}
        unread = [node for node in range(count) if node not in read and node != root]
        extra_users, total_bytes = [0] * count, [0] * count
        counted_bytes = 0
        # XLA caps each sum at the bytes counted before, in post order with operands as written.
        for node in post_order([*unread, root], self._searched):
            if program.opcode[rows[node]] in _NOT_COUNTED:
                continue
            size = self._defined_bytes[rows[node]]
            counted_bytes += size
            operands = self._operands[node]
            extra = max(users[node] - 1, 0) + sum(extra_users[other] for other in operands)
            total = size + sum(total_bytes[other] for other in operands)
            extra_users[node], total_bytes[node] = min(extra, count), min(total, counted_bytes)

        def priority(node: Node) -> tuple[int, int, str]:
            return -extra_users[node], -total_bytes[node], program.names[rows[node]]

        by_priority = [sorted(nodes, key=priority) for nodes in self._searched]
        return post_order([*unread, root], by_priority)

    def _greedy(
        self, before: Sequence[Sequence[Node]], after: Sequence[Sequence[Node]]
    ) -> list[Node]:
        """An order by list scheduling: next is the ready node that adds the fewest bytes.

        Of several the node that became ready last.
        """
        pending = [len(nodes) for nodes in before]
        touches_left = [len(nodes) for nodes in self._touches]
        ready_since = [0] * len(pending)
        # By ready node; the heap also has the costs that a node had earlier.
        costs: dict[Node, int] = {}
        heap: list[tuple[int, int, Node]] = []

        def push(node: Node) -> None:
            cost = 0
            for buffer in self._touched[node]:
                if touches_left[buffer] == len(self._touches[buffer]):
                    cost += self._sizes[buffer]
                if touches_left[buffer] == 1:
                    cost -= self._sizes[buffer]
            costs[node] = cost
            heapq.heappush(heap, (cost, -ready_since[node], node))

        for node, count in enumerate(pending):
            if not count:
                push(node)
        order: list[Node] = []
        while heap:
            cost, _, node = heapq.heappop(heap)
            if costs.get(node) != cost:
                continue
            del costs[node]
            order.append(node)
            changed: set[Node] = set()
            for buffer in self._touched[node]:
                touches_left[buffer] -= 1
                if touches_left[buffer] in (1, len(self._touches[buffer]) - 1):
                    changed.update(other for other in self._touches[buffer] if other in costs)
            for then in after[node]:
                pending[then] -= 1
                if not pending[then]:
                    ready_since[then] = len(order)
                    changed.add(then)
            for other in changed:
                push(other)
        return order


class _BitSums:
    """A sum for each node, where a number is added for all nodes of a bit set in one step.

    Bit k of all sums is one integer with a bit for each node, so that an addition is that of a
    ripple-carry adder on long integers.
    """

    def __init__(self) -> None:
        self._planes: list[int] = []

    def add(self, number: int, nodes: int) -> None:
        """Add a number to the sums of a bit set of nodes."""
        self._planes += [0] * (number.bit_length() - len(self._planes))
        for bit in range(number.bit_length()):
            carry, level = nodes if number >> bit & 1 else 0, bit
            while carry:
                if level == len(self._planes):
                    self._planes.append(0)
                plane = self._planes[level]
                self._planes[level], carry = plane ^ carry, plane & carry
                level += 1

    def totals(self, count: int) -> list[int]:
        """The sums of the first `count` nodes."""
        totals = [0] * count
        for bit, plane in enumerate(self._planes):
            for node, digit in enumerate(reversed(f"{plane:b}")):
                if digit == "1":
                    totals[node] += 1 << bit
        return totals


def _inverse(order: Sequence[Node]) -> list[int]:
    """The position of each node in an order."""
    position = [0] * len(order)
    for index, node in enumerate(order):
        position[node] = index
    return position


def _reachable(order: Iterable[Node], edges: Sequence[Sequence[Node]]) -> list[int]:
    """By node, a bit set of itself and all nodes that the edges reach from it.

    Args:
        order: all nodes, each after those that its edges lead to.
    """
    reachable = [0] * len(edges)
    for node in order:
        reachable[node] = 1 << node
        for other in edges[node]:
            reachable[node] |= reachable[other]
    return reachable
