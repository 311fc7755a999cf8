"""The order of a program's instructions: what no order can be below, and what another would need.

Each scheduled computation is ordered by itself, the innermost first: an instruction that calls
others has their peak in it. A buffer is what shares one place in temps; it is there from the first
to the last instruction that touches it. What a loop carries is the caller's. Arguments, results
and constants stay what they are.
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns.program import NONE, Ints, Mask, NumberedProgram
from .opcodes import ELEMENTWISE
from .runs import joined

# They define no buffer of their own, and XLA's scheduler does not count them.
_NOT_COUNTED = ("parameter", "constant")
# Transfers and what touches another memory keep their mutual order: XLA hides their latency.
_MOVES = ("-start", "-done", "-update")
# What borrows room and is smaller, as a part of all that lies in arguments and results, keeps it.
_COUNTS = 1e-3
# So many buffers are asked at once which instructions they must be there for.
_AT_ONCE = 1024
# Of more instructions the orders take longer than all else that is asked of a program.
MOST_INSTRUCTIONS = 20_000


@dataclass(frozen=True)
class Resident:
    """What lies in the memory of an argument or a result.

    rows: the instructions that touch it. is_argument: it is there from the start. is_guest: it
    only borrows the room, while neither the argument nor the result is in it.
    """

    allocation: int
    size_bytes: int
    rows: Sequence[int]
    is_argument: bool
    is_guest: bool


@dataclass(frozen=True)
class Buffers:
    """What temps hold, and who touches it.

    size: by buffer; touch_buffer, touch_row: a row for each instruction that defines or reads it.
    shares: instruction, operand's buffer, result's buffer: the two lie in one place today.
    in_place: set, instruction, whether it defines: what shares memory whatever the order, in any
    memory. defined_bytes: by instruction. residents: what lies in arguments and results of which
    something borrows the room.
    """

    size: Ints
    touch_buffer: Ints
    touch_row: Ints
    shares: Sequence[tuple[int, int, int]]
    in_place: Sequence[tuple[int, int, bool]]
    defined_bytes: Ints
    residents: Callable[[], Sequence[Resident]] = tuple


@dataclass(frozen=True)
class Spare:
    """A buffer that is there at a moment and need not be.

    maker and reader: the instruction that makes it, and the next that waits for it. is_read_late:
    the reader need not wait for the moment; else the maker need not have run.
    """

    buffer: int
    size_bytes: int
    maker: int
    reader: int
    is_read_late: bool


class Ordering:
    """The orders of a program.

    schedule_time: by instruction, NONE without; keeps: instructions whose mutual order stays, as
    that of transfers does on TPU and GPU.
    """

    def __init__(
        self,
        program: NumberedProgram,
        schedule_time: Ints,
        buffers: Buffers,
        keeps: Iterable[int] = (),
    ) -> None:
        self._program, self._buffers = program, buffers
        self._computation: list[int] = program.computation.tolist()
        self._entry = program.entry
        scheduled = np.flatnonzero(schedule_time != NONE)
        self._rows: dict[int, list[int]] = defaultdict(list)
        for row in scheduled[np.argsort(schedule_time[scheduled], kind="stable")].tolist():
            self._rows[self._computation[row]].append(row)
        self._caller: dict[int, int] = {}
        self._known_callers: dict[int, list[tuple[int, int]] | None] = {}
        calls = zip(program.call_row.tolist(), program.call_computation.tolist(), strict=True)
        for row, computation in calls:
            if schedule_time[row] != NONE and computation in self._rows:
                self._caller.setdefault(computation, row)
        self._kept = set(keeps)

    @cached_property
    def now_bytes(self) -> int:
        """The peak of temps as ordered."""
        return self._peak(lambda problem, inner: problem.peak(problem.today, inner))

    @cached_property
    def depth_first_bytes(self) -> int:
        """The peak in the order of XLA's depth-first scheduler."""
        return self._peak(lambda problem, inner: problem.peak(problem.depth_first, inner))

    @cached_property
    def crowded_bytes(self) -> int:
        """The same, if nothing but today's guests takes the room of arguments and results."""
        residents = []
        for each in self._buffers.residents():
            home, lifted = self._lifted(list(each.rows))
            if home == self._program.entry:
                residents.append(replace(each, rows=lifted))
        residents.sort(key=lambda each: (each.is_guest, -each.size_bytes))
        entry = self._problems.get(self._program.entry)
        return self._peak(
            lambda problem, inner: problem.peak(
                problem.depth_first, inner, residents if problem is entry else ()
            )
        )

    @cached_property
    def best_bytes(self) -> int:
        """The peak in the best order that was found, each computation's own."""
        return self._peak(
            lambda problem, inner: min(problem.peak(order, inner) for order in problem.orders)
        )

    @cached_property
    def bound_bytes(self) -> int:
        """No order of these instructions needs less. Takes the square of their number."""
        return self._peak(_Problem.bound)

    def spare(self, row: int) -> list[Spare]:
        """What is there at an instruction, and need not be there in every order."""
        found = []
        computation = self._computation[row]
        while computation in self._problems:
            problem = self._problems[computation]
            found += problem.spare(problem.place[row])
            if computation not in self._caller:
                break
            row = self._caller[computation]
            computation = self._computation[row]
        return found

    def _peak(self, of: "Callable[[_Problem, Ints], int]", computation: int | None = None) -> int:
        """The peak of a computation, else of the entry, with those of what it calls."""
        at = self._entry if computation is None else computation
        problem = self._problems.get(at)
        if problem is None:
            return 0
        inner = np.zeros(len(problem.rows), np.int64)
        for called in self._called[at]:
            place = problem.place[self._caller[called]]
            inner[place] = max(inner[place], self._peak(of, called))
        return of(problem, inner)

    @cached_property
    def _called(self) -> dict[int, list[int]]:
        called = defaultdict(list)
        for computation, row in self._caller.items():
            called[self._computation[row]].append(computation)
        return called

    @cached_property
    def _problems(self) -> dict[int, "_Problem"]:
        """A problem for each scheduled computation that the entry comes to."""
        touched: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        by_buffer: dict[int, list[int]] = defaultdict(list)
        touches = (self._buffers.touch_buffer.tolist(), self._buffers.touch_row.tolist())
        for buffer, row in zip(*touches, strict=True):
            by_buffer[buffer].append(row)
        for buffer, rows in by_buffer.items():
            home, lifted = self._lifted(rows)
            if home != NONE:
                touched[home].append((buffer, lifted))
        in_place: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for number, row, defines in self._buffers.in_place:
            in_place[number].append((row, defines))
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for all_of_it in in_place.values():
            if sum(defines for _, defines in all_of_it) > 1:
                home, lifted = self._lifted([row for row, _ in all_of_it])
                if home != NONE:
                    defining = [row for row, defines in all_of_it if defines]
                    edges[home] += self._in_turn(home, lifted, defining)
        control: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, before in self._program.control.tolist():
            control[self._computation[row]].append((before, row))
        shares: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for row, given, taken in self._buffers.shares:
            shares[self._computation[row]].append((row, given, taken))
        return {
            computation: _Problem(
                self._program,
                rows,
                [(buffer, int(self._buffers.size[buffer]), at) for buffer, at in held],
                shares[computation],
                [*edges[computation], *_chain([row for row in rows if row in self._kept])],
                control[computation],
                self._buffers.defined_bytes,
            )
            for computation, rows in self._rows.items()
            for held in [touched[computation]]
        }

    def _in_turn(self, home: int, touches: list[int], defining: list[int]) -> list[tuple[int, int]]:
        """What is written in place is written after all that read what was there before."""
        defines = {self._in(home, row) for row in defining}
        place = {row: number for number, row in enumerate(self._rows[home])}
        before: list[int] = []
        edges = []
        for row in sorted(set(touches), key=place.__getitem__):
            if row in defines and before:
                edges += [(earlier, row) for earlier in before]
                before = []
            before.append(row)
        return edges

    def _in(self, home: int, row: int) -> int:
        """The instruction of a computation within which another one runs."""
        while self._computation[row] != home:
            row = self._caller[self._computation[row]]
        return row

    def _lifted(self, rows: list[int]) -> tuple[int, list[int]]:
        """The innermost computation that has all of these instructions in it, and its own."""
        computations = {self._computation[row] for row in rows}
        if len(computations) == 1:
            (home,) = computations
            return (home, sorted(set(rows))) if self._path(rows[0]) else (NONE, [])
        paths = [self._path(row) for row in dict.fromkeys(rows)]
        paths = [path for path in paths if path]
        if not paths:
            return NONE, []
        home, depth = NONE, 0
        while all(len(path) > depth for path in paths):
            computations = {path[depth][0] for path in paths}
            if len(computations) > 1:
                break
            (home,) = computations
            depth += 1
        if home == NONE:
            return NONE, []
        return home, sorted({path[depth - 1][1] for path in paths})

    def _path(self, row: int) -> list[tuple[int, int]]:
        """From the entry to an instruction: computations, and the instruction in each."""
        callers = self._callers(self._computation[row])
        return [] if callers is None else [*callers, (self._computation[row], row)]

    def _callers(self, computation: int) -> list[tuple[int, int]] | None:
        """From the entry to a computation: computations, and what calls the next in each."""
        if computation not in self._known_callers:
            path: list[tuple[int, int]] = []
            at = computation
            while at in self._rows and len(path) <= len(self._rows) and at != self._entry:
                if at not in self._caller:
                    break
                row = self._caller[at]
                at = self._computation[row]
                path.append((at, row))
            is_reached = at == self._entry and at in self._rows
            self._known_callers[computation] = path[::-1] if is_reached else None
        return self._known_callers[computation]


def _reached(place: int, edges: list[list[int]]) -> set[int]:
    """Where the edges lead from here."""
    found, waiting = {place}, [place]
    while waiting:
        new = [each for each in edges[waiting.pop()] if each not in found]
        found.update(new)
        waiting += new
    return found


def _is_free(taken: list[tuple[int, int]], first: int, last: int) -> bool:
    return all(last < start or end < first for start, end in taken)


def _chain(rows: list[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(rows))


class _Problem:
    """One computation: its instructions by their place today, and the buffers that are its own."""

    def __init__(
        self,
        program: NumberedProgram,
        rows: list[int],
        buffers: list[tuple[int, int, list[int]]],
        shares: list[tuple[int, int, int]],
        edges: list[tuple[int, int]],
        control: list[tuple[int, int]],
        defined_bytes: Ints,
    ) -> None:
        """edges: pairs of instructions, of which the first comes first; control: those that XLA
        says itself.
        """
        self._program, self._defined_bytes = program, defined_bytes
        self.rows = rows
        self.today = np.arange(len(rows))
        self.place = {row: number for number, row in enumerate(rows)}
        self.size = np.array([size for _, size, _ in buffers], np.int64)
        self.buffer = [buffer for buffer, _, _ in buffers]
        self.touches = [sorted(self.place[row] for row in at) for _, _, at in buffers]
        self.operands: list[list[int]] = []
        for row in rows:
            start, stop = program.operand_start[row : row + 2]
            found = dict.fromkeys(program.operands[start:stop].tolist())
            self.operands.append([self.place[other] for other in found if other in self.place])
        before = [set(operands) for operands in self.operands]
        # XLA's schedulers follow these as they follow operands.
        self.followed = [list(operands) for operands in self.operands]
        for earlier, later in control:
            if earlier in self.place and later in self.place:
                self.followed[self.place[later]].append(self.place[earlier])
        for earlier, later in (*edges, *control):
            first, then = self.place.get(earlier, NONE), self.place.get(later, NONE)
            if NONE < first < then:
                before[then].add(first)
        self.before = [sorted(each) for each in before]
        self.after: list[list[int]] = [[] for _ in rows]
        for then, each in enumerate(self.before):
            for first in each:
                self.after[first].append(then)
        self.held: list[list[int]] = [[] for _ in rows]
        for number, at in enumerate(self.touches):
            for place in at:
                self.held[place].append(number)
        self._set_shares(program, shares)

    def _set_shares(self, program: NumberedProgram, shares: list[tuple[int, int, int]]) -> None:
        """Which results take the place of an operand that ends there, and which may."""
        number = {buffer: at for at, buffer in enumerate(self.buffer)}
        found = {
            (self.place[row], number[given], number[taken])
            for row, given, taken in shares
            if given in number and taken in number
        }
        elementwise = program.opcode.is_one_of(*ELEMENTWISE)
        first = [at[0] if at else NONE for at in self.touches]
        may = set(found)
        for place, held in enumerate(self.held):
            made = [each for each in held if first[each] == place]
            taken = {(one, other) for at, one, other in found if at == place}
            gone = {one for one, _ in taken}
            for result in made:
                equal = [
                    each
                    for each in held
                    if each != result
                    and first[each] != place
                    and self.size[each] == self.size[result]
                ]
                may.update((place, each, result) for each in equal)
                if elementwise[self.rows[place]] and result not in {b for _, b in taken}:
                    free = [each for each in equal if each not in gone]
                    if free:
                        found.add((place, free[0], result))
                        gone.add(free[0])
        self._shares = np.array(sorted(found), np.int64).reshape(-1, 3)
        self._may_share = sorted(may)

    def is_allowed(self, order: Ints) -> bool:
        """Whether nothing runs before what it must follow."""
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        then = np.repeat(np.arange(len(order)), [len(each) for each in self.before])
        first = np.array([each for before in self.before for each in before], np.int64)
        return bool((position[first] < position[then]).all())

    def peak(self, order: Ints, inner: Ints, residents: Sequence[Resident] = ()) -> int:
        """The most bytes in an order; inner: what the instructions call needs, by place today.

        residents: of arguments and results, guests last; those that find no room there any more
        are counted.
        """
        count = len(self.rows)
        if not count:
            return 0
        position = np.empty(count, np.int64)
        position[order] = np.arange(count)
        used = inner[order].copy()
        if len(self.size):
            at = position[np.array([each for touches in self.touches for each in touches], int)]
            starts = np.cumsum([0, *(len(each) for each in self.touches[:-1])])
            first, last = np.minimum.reduceat(at, starts), np.maximum.reduceat(at, starts)
            change = np.zeros(count + 1, np.int64)
            np.add.at(change, first, self.size)
            np.subtract.at(change, last + 1, self.size)
            used += np.cumsum(change[:-1])
            place, given, taken = self._shares.T
            here = position[place]
            meets = (last[given] == here) & (first[taken] == here)
            both = np.minimum(self.size[given], self.size[taken])
            np.subtract.at(used, here[meets], both[meets])
        for more, since, until in self._turned_out(position, residents):
            used[since : until + 1] += more
        return int(used.max())

    def _turned_out(
        self, position: Ints, residents: Sequence[Resident]
    ) -> Iterator[tuple[int, int, int]]:
        """The guests for whom no room is free in an order: their bytes, from when to when.

        They keep their rooms if they can, else they take the smallest that is free.
        """
        taken: dict[int, list[tuple[int, int]]] = defaultdict(list)
        rooms: dict[int, int] = defaultdict(int)
        for each in residents:
            places = [int(position[self.place[row]]) for row in each.rows]
            first, last = 0 if each.is_argument else min(places), max(places)
            if not each.is_guest:
                rooms[each.allocation] = max(rooms[each.allocation], each.size_bytes)
                taken[each.allocation].append((first, last))
                continue
            # In its own room it may be what the next one is written over.
            is_free = all(last <= start or end <= first for start, end in taken[each.allocation])
            others = sorted((size, room) for room, size in rooms.items() if size >= each.size_bytes)
            free = (room for _, room in others if _is_free(taken[room], first, last))
            room = each.allocation if is_free else next(free, None)
            if room is None:
                yield each.size_bytes, first, last
            else:
                taken[room].append((first, last))

    # What must be there whatever the order.

    @cached_property
    def _earlier(self) -> list[int]:
        """Of each instruction, itself and what must run before, as bits."""
        found: list[int] = []
        for place, before in enumerate(self.before):
            bits = 1 << place
            for each in before:
                bits |= found[each]
            found.append(bits)
        return found

    @cached_property
    def _later(self) -> list[int]:
        """Of each instruction, itself and what must run after it, as bits."""
        found = [0] * len(self.rows)
        for place in range(len(self.rows) - 1, -1, -1):
            bits = 1 << place
            for each in self.after[place]:
                bits |= found[each]
            found[place] = bits
        return found

    def bound(self, inner: Ints) -> int:
        """No order needs less: what each instruction must find there, or make."""
        count = len(self.rows)
        if not count:
            return 0
        used = inner.astype(np.float64)
        width = (count + 7) // 8
        for start in range(0, len(self.touches), _AT_ONCE):
            chunk = self.touches[start : start + _AT_ONCE]
            bits = b"".join(self._must(touches).to_bytes(width, "little") for touches in chunk)
            table = np.frombuffer(bits, np.uint8).reshape(len(chunk), width)
            there = np.unpackbits(table, axis=1, bitorder="little")[:, :count]
            used += self.size[start : start + len(chunk)].astype(np.float64) @ there
        for place, less in self._least_shared().items():
            used[place] -= less
        return int(used.max())

    def _must(self, touches: list[int]) -> int:
        """The instructions that find a buffer there in every order, as bits."""
        earlier = later = 0
        for each in touches:
            earlier |= self._earlier[each]
            later |= self._later[each]
        return earlier & later

    def _least_shared(self) -> dict[int, int]:
        """What results may take of the place of operands, by instruction."""
        of_result: dict[tuple[int, int], int] = {}
        for place, given, taken in self._may_share:
            if not any(self._later[place] >> at & 1 for at in self.touches[given] if at != place):
                size = int(self.size[given]) + of_result.get((place, taken), 0)
                of_result[place, taken] = min(size, int(self.size[taken]))
        less: dict[int, int] = defaultdict(int)
        for (place, _), size in of_result.items():
            less[place] += size
        return less

    def spare(self, place: int) -> list[Spare]:
        """What is there at an instruction today, and need not be."""
        earlier, later = _reached(place, self.before), _reached(place, self.after)
        found = []
        for number, touches in enumerate(self.touches):
            if not touches or not touches[0] <= place <= touches[-1] or place in touches:
                continue
            is_made = any(at in earlier for at in touches)
            is_wanted = any(at in later for at in touches)
            if not (is_made and is_wanted):
                reader = next(at for at in touches if at > place)
                found.append(
                    Spare(
                        self.buffer[number],
                        int(self.size[number]),
                        self.rows[touches[0]],
                        self.rows[reader],
                        is_made,
                    )
                )
        return found

    # Other orders.

    @cached_property
    def orders(self) -> list[Ints]:
        """All that are tried."""
        found = [self.depth_first, self.greedy(), self.greedy_backwards()]
        return [self.today, *(order for order in found if self.is_allowed(order))]

    @cached_property
    def depth_first(self) -> Ints:
        """XLA's DFSMemoryScheduler: operands that others read too first, then the larger ones."""
        program, rows, count = self._program, self.rows, len(self.rows)
        users: list[list[int]] = [[] for _ in rows]
        for place, operands in enumerate(self.operands):
            for each in operands:
                users[each].append(place)
        root = int(program.root[program.computation[rows[0]]])
        last = self.place.get(root, count - 1)
        is_no_end = {last, *itertools.chain.from_iterable(self.followed)}
        ends = [place for place in range(count) if place not in is_no_end]
        is_left_out = program.opcode.is_one_of(*_NOT_COUNTED)
        extra, total = [0] * count, [0] * count
        so_far = 0
        # Sums are capped at what was counted until then, in the order of operands as written.
        for place in self._visited([*ends, last], self.followed):
            if is_left_out[rows[place]]:
                continue
            own = int(self._defined_bytes[rows[place]])
            so_far += own
            operands = self.operands[place]
            extra[place] = max(len(users[place]) - 1, 0) + sum(extra[each] for each in operands)
            total[place] = own + sum(total[each] for each in operands)
            extra[place], total[place] = min(extra[place], count), min(total[place], so_far)
        names = program.names.take(np.array(rows)).to_pylist()

        def first(place: int) -> tuple[int, int, str]:
            return -extra[place], -total[place], names[place]

        in_turn = [sorted(followed, key=first) for followed in self.followed]
        return np.array(self._visited([*ends, last], in_turn), np.int64)

    def _visited(self, ends: list[int], operands: list[list[int]]) -> list[int]:
        """Each instruction after its operands, which are visited in turn."""
        order: list[int] = []
        done = [False] * len(self.rows)
        for end in ends:
            waiting = [(end, False)]
            while waiting:
                place, is_open = waiting.pop()
                if done[place]:
                    continue
                if is_open:
                    done[place] = True
                    order.append(place)
                    continue
                waiting.append((place, True))
                waiting += [(each, False) for each in reversed(operands[place]) if not done[each]]
        return order

    def greedy(self) -> Ints:
        """Always what frees most, or else adds least."""
        return np.array(self._greedy(self.before, self.after), np.int64)

    def greedy_backwards(self) -> Ints:
        """The same from the last instruction to the first."""
        return np.array(self._greedy(self.after, self.before)[::-1], np.int64)

    def _greedy(self, before: list[list[int]], after: list[list[int]]) -> list[int]:
        waits = [len(each) for each in before]
        left = [len(each) for each in self.touches]
        size = self.size.tolist()
        is_there = [False] * len(size)
        is_ready = [False] * len(waits)
        since = [0] * len(waits)
        ready: list[tuple[int, int, int]] = []

        def push(place: int) -> None:
            cost = sum(
                (0 if is_there[each] else size[each]) - (size[each] if left[each] == 1 else 0)
                for each in self.held[place]
            )
            costs[place] = cost
            heapq.heappush(ready, (cost, -since[place], place))

        costs: dict[int, int] = {}
        for place, count in enumerate(waits):
            if not count:
                is_ready[place] = True
                push(place)
        order: list[int] = []
        while ready:
            cost, _, place = heapq.heappop(ready)
            if not is_ready[place] or costs[place] != cost:
                continue
            is_ready[place] = False
            order.append(place)
            changed: set[int] = set()
            for each in self.held[place]:
                left[each] -= 1
                if not is_there[each] or left[each] == 1:
                    is_there[each] = True
                    changed.update(at for at in self.touches[each] if is_ready[at])
            for then in after[place]:
                waits[then] -= 1
                if not waits[then]:
                    is_ready[then], since[then] = True, len(order)
                    changed.add(then)
            for each in sorted(changed):
                push(each)
        return order


# The orders of a program as its rows have it.


class Laid(NamedTuple):
    """The values of a memory space that have a live range: where they are, and if in a temp."""

    value_id: Ints
    allocation: Ints
    offset: Ints
    size: Ints
    is_temp: Mask


def ordering_of(
    program: NumberedProgram,
    schedule_time: pa.Array,
    values: pa.Table,
    uses: pa.Table,
    laid: Laid,
    memory_space: int,
    *,
    platform: str | None,
) -> tuple[Ordering, list[list[int]]]:
    """The orders of a program's instructions, and the values that each buffer holds.

    schedule_time: by instruction; values, uses: rows of the warehouse's tables, by value_id.
    """
    value, row, space = (_ints(values[n]) for n in ("value_id", "instruction_id", "memory_space"))
    defined = np.zeros(len(program), np.int64)
    np.add.at(defined, row, _ints(values["size_bytes"], 0))
    alias_set = _ints(values["alias_set"])
    # What shares no memory is a set of its own, below all others.
    set_of = np.unique(
        np.where(alias_set < 0, -1 - np.arange(len(values)), alias_set), return_inverse=True
    )[1]
    used, user = _ints(uses["value_id"]), _ints(uses["instruction_id"])
    at = np.searchsorted(value, used)
    is_known = value[np.minimum(at, len(value) - 1)] == used if len(value) else at < 0
    at, user = at[is_known], user[is_known]
    place = np.searchsorted(value, laid.value_id)
    number, size = _temp_sets(set_of, place, laid)
    sets, rows = np.concatenate([set_of, set_of[at]]), np.concatenate([row, user])
    defines = np.arange(len(sets)) < len(set_of)
    is_shared = np.bincount(sets[defines])[sets] > 1 if len(sets) else defines
    touched = number[sets] != NONE
    touches = np.unique(np.stack([number[sets[touched]], rows[touched]], 1), axis=0)
    elsewhere = space != memory_space
    kept: set[int] = set()
    if platform != "cpu":
        moves = [text for text in program.opcode.texts if text.endswith(_MOVES)]
        kept = set(np.flatnonzero(program.opcode.is_one_of(*moves)).tolist())
        kept |= {*row[elsewhere].tolist(), *user[elsewhere[at]].tolist()}
    buffers = Buffers(
        size,
        touches[:, 0],
        touches[:, 1],
        _shared_places(number[set_of], row, at, user, place, laid),
        list(zip(*(each[is_shared].tolist() for each in (sets, rows, defines)), strict=True)),
        defined,
        partial(_residents, program, set_of, row, at, user, place, laid),
    )
    held: list[list[int]] = [[] for _ in size]
    for buffer, own in zip(number[set_of].tolist(), value.tolist(), strict=True):
        if buffer != NONE:
            held[buffer].append(own)
    return Ordering(program, _ints(schedule_time), buffers, kept), held


def _ints(column: pa.Array, missing: int = NONE) -> Ints:
    found: Ints = pc.fill_null(column, missing).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _temp_sets(set_of: Ints, place: Ints, laid: Laid) -> tuple[Ints, Ints]:
    """The number of each set that lies in temps alone, NONE of others; and the sizes by number."""
    count = int(set_of.max(initial=-1)) + 1
    sizes, is_fixed = np.full(count, NONE), np.zeros(count, bool)
    np.maximum.at(sizes, set_of[place[laid.is_temp]], laid.size[laid.is_temp])
    is_fixed[set_of[place[~laid.is_temp]]] = True
    is_kept = (sizes != NONE) & ~is_fixed
    return np.where(is_kept, np.cumsum(is_kept) - 1, NONE), sizes[is_kept]


def _residents(
    program: NumberedProgram, set_of: Ints, row: Ints, at: Ints, user: Ints, place: Ints, laid: Laid
) -> list[Resident]:
    """What lies in the arguments and results that something may borrow the room of."""
    entry = program.entry
    start, stop = program.parameter_start[entry : entry + 2]
    given, root = set(program.parameters[start:stop].tolist()), int(program.root[entry])
    fixed = np.flatnonzero(~laid.is_temp)
    touches = {value: [int(row[value])] for value in place[fixed].tolist()}
    for value, reader in zip(at.tolist(), user.tolist(), strict=True):
        if value in touches:
            touches[value].append(reader)
    within: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    columns = (place[fixed], laid.allocation[fixed], laid.size[fixed])
    for value, allocation, size in zip(*(each.tolist() for each in columns), strict=True):
        within[allocation, int(set_of[value])].append((value, size))
    hosts, guests, rooms = [], [], set[int]()
    for (allocation, _), values in within.items():
        rows = [each for value, _ in values for each in touches[value]]
        if root not in rows and given.isdisjoint(rows):
            guests.append(Resident(allocation, max(size for _, size in values), rows, False, True))
            rooms.add(allocation)
            continue
        for value, size in values:
            is_argument = int(row[value]) in given
            hosts.append(Resident(allocation, size, touches[value], is_argument, False))
        # What the caller keeps cannot be written over.
        if root in rows:
            rooms.add(allocation)
    least = _COUNTS * int(laid.size[fixed].sum())
    large = [each for each in guests if each.size_bytes > least]
    return [*(each for each in hosts if each.allocation in rooms), *large]


def _shared_places(
    number: Ints, row: Ints, at: Ints, user: Ints, place: Ints, laid: Laid
) -> list[tuple[int, int, int]]:
    """Where a result lies in the place of an operand today: instruction, operand's, result's.

    number: each value's buffer, of `row`; at, user: the values that are used, and where; place: the
    laid values.
    """
    where = np.full(len(number), NONE)
    where[place] = np.arange(len(place))
    is_in = (number != NONE) & (where != NONE)
    results = np.flatnonzero(is_in)
    results = results[np.argsort(row[results], kind="stable")]
    reads = is_in[at]
    operand, user = at[reads], user[reads]
    first = np.searchsorted(row[results], user)
    count = np.searchsorted(row[results], user, side="right") - first
    result = results[joined(first, count)]
    operand, user = np.repeat(operand, count), np.repeat(user, count)
    one, other = where[operand], where[result]
    low = np.maximum(laid.offset[one], laid.offset[other])
    high = np.minimum(laid.offset[one] + laid.size[one], laid.offset[other] + laid.size[other])
    meets = (laid.allocation[one] == laid.allocation[other]) & (low < high)
    meets &= number[operand] != number[result]
    found = np.stack([user, number[operand], number[result]], 1)[meets]
    return [(a, b, c) for a, b, c in np.unique(found, axis=0).tolist()]
