"""Where XLA's CPU compiler puts values, as far as the peak needs it: which share an address.

The rules are those of XLA's buffer assignment and heap simulator. They follow the plain rules
of liveness in `plain_rules.py`. Sizes are given; offsets within an allocation are not worked out.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from .plain_rules import (
    Liveness,
    Range,
    Values,
    entered,
    find_values,
    flatten,
    in_place_pairs,
    liveness,
)
from .plain_text import (
    Instruction,
    Module,
    Position,
    attribute_names,
    is_array,
    read_module,
    sub_shapes,
)

_ELEMENTWISE_TEXT = """
    abs acos acosh add and asin asinh atan2 atanh bitcast-convert cbrt ceil clamp compare
    complex convert copy cosine cosh count-leading-zeros divide erf exponential
    exponential-minus-one floor imag is-finite log log-plus-one logistic map maximum minimum
    mulhi multiply negate not or popcnt power real reduce-precision remainder
    round-nearest-afz round-nearest-even rsqrt select shift-left shift-right-arithmetic
    shift-right-logical sign sine sinh sqrt stochastic-convert subtract tan tanh xor
"""
ELEMENTWISE = frozenset(_ELEMENTWISE_TEXT.split())


# Whether a result may take its operand's place.


def fused_root(module: Module, fusion: Instruction) -> Instruction:
    return module.computations[attribute_names(fusion, "calls")[0]].root


def stays_elementwise(module: Module, fusion: Instruction, number: int, tuples: bool) -> bool:
    """Whether all that an operand reaches inside a fusion works element by element."""
    inside = module.computations[attribute_names(fusion, "calls")[0]]
    todo, seen = [inside.parameter(number).name], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for x in inside.instructions:
            for at, operand in enumerate(x.operands):
                if operand != name:
                    continue
                if not (is_elementwise(module, x, at) or (tuples and x.opcode == "tuple")):
                    return False
                todo.append(x.name)
    return True


def is_elementwise(module: Module, x: Instruction, number: int) -> bool:
    """Whether an instruction reads one operand element by element."""
    if x.opcode == "fusion":
        return stays_elementwise(module, x, number, tuples=False)
    if x.opcode == "dynamic-update-slice":
        return number == 0
    return x.opcode in ELEMENTWISE


def fusion_can_share(module: Module, fusion: Instruction, number: int) -> bool:
    """The rule for fusions; it looks at the operand, and not at which result is meant."""
    kind = re.search(r"\bkind=(\w+)", fusion.attributes)
    assert kind is not None
    if kind[1] in ("kLoop", "kInput"):
        return stays_elementwise(module, fusion, number, tuples=True)
    root = fused_root(module, fusion)
    if kind[1] == "kOutput" and root.opcode == "add":
        # Room for a product is that of the other summand, if nothing else reads it.
        opcodes = [module.instructions[name].opcode for name in root.operands]
        products = [at for at, opcode in enumerate(opcodes) if opcode in ("dot", "convolution")]
        inside = module.computations[root.computation]
        parameter = inside.parameter(number).name
        reads = [
            (x.name, at)
            for x in inside.instructions
            for at, operand in enumerate(x.operands)
            if operand == parameter
        ]
        return bool(products) and reads == [(root.name, 1 - products[0])]
    # kCustom, and kOutput otherwise. A result in a tuple never shares here.
    return stays_elementwise(module, fusion, number, tuples=False)


def can_share(module: Module, user: Position, operand: Position) -> bool:
    """Whether a value may begin where what an operand holds ends at the same time."""
    x, given = module.instructions[user[0]], module.instructions[operand[0]]
    numbers = [at for at, name in enumerate(x.operands) if name == given.name]
    if not numbers or x.opcode == "copy" or given.opcode == "constant":
        return False
    if sub_shapes(given.shape)[operand[1]] != sub_shapes(x.shape)[user[1]]:
        return False
    for number, into, out in in_place_pairs(module, x):
        if number in numbers and into == operand[1] and out == user[1]:
            return True
    if x.opcode == "fusion":
        return operand[1] == () and fusion_can_share(module, x, numbers[0])
    if x.opcode in ("while", "conditional"):
        return True
    if x.opcode in ("dynamic-update-slice", "scatter", "set-dimension-size"):
        return numbers == [0]
    if x.opcode == "triangular-solve":
        return numbers == [1]
    if x.opcode == "sort":
        users = [y for y in module.instructions.values() if given.name in y.operands]
        alone = len(x.operands) == 1 or (len(numbers) == 1 and user[1] == (numbers[0],))
        return len(users) == 1 and alone
    return is_elementwise(module, x, numbers[0])


# Allocations.


@dataclass
class Allocation:
    """A block of memory of its own: an argument, a result, a constant or a table of a tuple."""

    kind: str
    size: int
    space: int
    values: list[Position] = field(default_factory=list)
    # Whether other values may lie here as well.
    open: bool = False


@dataclass
class Placement:
    """The allocations, and for each temporary value the first value at its address."""

    allocations: list[Allocation]
    homes: dict[Position, Position]


def post_order(module: Module) -> dict[str, int]:
    """Callers before what they call; within a computation, operands before their users."""
    computations: list[str] = []

    def visit(name: str) -> None:
        for x in module.computations[name].instructions:
            for callee in entered(x):
                visit(callee)
        if name not in computations:
            computations.append(name)

    visit(module.entry)
    order: dict[str, int] = {}

    def go(name: str) -> None:
        if name not in order:
            for operand in module.instructions[name].operands:
                go(operand)
            order[name] = len(order)

    for name in reversed(computations):
        inside = module.computations[name].instructions
        read = {operand for x in inside for operand in x.operands}
        for x in [x for x in inside if x.name not in read] + inside:
            go(x.name)
    return order


def last_positions(module: Module, answer: Liveness) -> dict[Position, Position]:
    """The position at which each value is held last; the first of several."""
    schedule = flatten(module)
    times = schedule.times()

    def held_until(position: Position) -> int:
        x = module.instructions[position[0]]
        return schedule.spans[x.computation][1] if x.is_root else times[x.name]

    result = {}
    for value, positions in answer.positions.items():
        if value[0] in times:
            others = sorted(p for p in positions if p[0] in times and p != value)
            result[value] = max([value, *others], key=held_until)
    return result


class Placing:
    """One run of buffer assignment."""

    def __init__(self, text: str, sizes: dict[Position, int]) -> None:
        self.module: Module = read_module(text)
        self.answer: Liveness = liveness(text)
        self.values: Values = find_values(self.module)
        self.ranges: dict[Position, Range] = self.answer.live_ranges
        self.sizes = sizes
        self.order = post_order(self.module)
        self.last = last_positions(self.module, self.answer)
        self.allocations: list[Allocation] = []
        self.home: dict[Position, Allocation] = {}
        # Donated arguments and results, the largest first.
        self.reusable: list[Allocation] = []
        root = self.module.computations[self.module.entry].root.name
        self.live_out = {v for v, p in self.answer.positions.items() if root in dict(p)}

    def place(self) -> Placement:
        """Assign each set of values that must share memory, then the temporary ones in time."""
        sets = [s for s in self.answer.alias_sets if all(self.is_placed(v[0]) for v in s)]
        sets.sort(key=lambda s: (-self.size(s), not s & self.live_out, self.first(s)))
        temporary = [members for members in sets if not self.assign(members)]
        return Placement(self.allocations, self.share_in_time(temporary))

    def is_placed(self, name: str) -> bool:
        """What runs has a place, and so have the constants of the regions that it calls."""
        return name in self.order or self.module.instructions[name].opcode == "constant"

    def size(self, members: set[Position]) -> int:
        return max(self.sizes.get(value, 0) for value in members)

    def space(self, value: Position) -> int:
        """The memory space that the layout names; tables of tuples lie in the main one."""
        shape = sub_shapes(self.module.instructions[value[0]].shape)[value[1]]
        found = re.search(r"S\((\d+)\)", shape) if isinstance(shape, str) else None
        return int(found[1]) if found else 0

    def first(self, members: set[Position]) -> int:
        return min(self.order.get(name, -1) for name, _ in members)

    def add(self, kind: str, members: set[Position], is_open: bool = False) -> bool:
        space = self.space(next(iter(members)))
        made = Allocation(kind, self.size(members), space, list(members), is_open)
        self.allocations.append(made)
        self.home |= dict.fromkeys(members, made)
        return True

    def assign(self, members: set[Position]) -> bool:
        """Give a set an allocation; say no if it is temporary."""
        instructions = {value: self.module.instructions[value[0]] for value in members}
        lives_out = bool(members & self.live_out)
        if any(x.opcode == "constant" for x in instructions.values()):
            return self.add("constant", members)
        aliased = {(number, index) for _, number, index in self.module.input_output_alias}
        for (_, index), x in instructions.items():
            if x.opcode == "parameter" and x.computation == self.module.entry:
                donated = (int(x.inside), index) in aliased
                self.add("argument", members, donated)
                if donated:
                    self.reusable.append(self.allocations[-1])
                return True
        if not all(is_array(sub_shapes(x.shape)[v[1]]) for v, x in instructions.items()):
            return self.add("table that lives out" if lives_out else "table", members)
        for value in sorted(members, key=lambda v: (self.order[v[0]], v[1])):
            for operand in instructions[value].operands if value[1] == () else []:
                near = self.home.get(self.values.held.get((operand, ()), ("", ())))
                if near is not None and self.fits(near, members):
                    return self.join(near, members)
        for allocation in reversed(self.reusable):
            if self.fits(allocation, members):
                return self.join(allocation, members)
        if lives_out:
            self.add("result", members, is_open=True)
            self.reusable.append(self.allocations[-1])
        return lives_out

    def join(self, allocation: Allocation, members: set[Position]) -> bool:
        allocation.values += members
        self.home |= dict.fromkeys(members, allocation)
        return True

    def fits(self, allocation: Allocation, members: set[Position]) -> bool:
        """Whether a set can lie in an allocation beside what is there."""
        size = self.size(members)
        if not allocation.open or size > allocation.size:
            return False
        if self.space(next(iter(members))) != allocation.space:
            return False
        if members & self.live_out and size != allocation.size:
            return False
        for old in allocation.values:
            for new in members:
                if self.interfere(old, new):
                    return False
                x = self.module.instructions[new[0]]
                holders = {name for name, _ in self.answer.positions[old]}
                if x.opcode == "copy" and holders & set(x.operands):
                    return False
        return True

    def interfere(self, a: Position, b: Position) -> bool:
        """Whether two values are live together, or touch and may not share."""
        if a not in self.ranges or b not in self.ranges:
            return False
        (start, end), (other_start, other_end) = self.ranges[a], self.ranges[b]
        if start > other_end or other_start > end:
            return False
        if end == other_start:
            return not can_share(self.module, b, self.last[a])
        if other_end == start:
            return not can_share(self.module, a, self.last[b])
        return True

    def share_in_time(self, sets: list[set[Position]]) -> dict[Position, Position]:
        """Go through the temporary values in the order in which they begin, then end.

        Only sets of one value share, both as operand and as result.
        """
        members = {v: s for s in sets for v in s if v in self.ranges}
        homes: dict[Position, Position] = {}
        first: dict[int, Position] = {}
        taken: set[Position] = set()
        for value in sorted(members, key=lambda v: (self.ranges[v], self.order[v[0]], v[1])):
            group = id(members[value])
            operand = self.operand_to_take(value, members, taken)
            if group in first:
                homes[value] = homes[first[group]]
            elif operand is not None:
                taken.add(operand)
                homes[value] = homes[operand]
            else:
                homes[value] = first[group] = value
        return homes

    def operand_to_take(self, value, members, taken):
        """The first operand that ends now and whose place the value may take."""
        if len(members[value]) > 1:
            return None
        for name in self.module.instructions[value[0]].operands:
            held = self.values.held.get((name, ()))
            if held is None or held in taken or len(members.get(held, ())) != 1:
                continue
            if self.space(held) != self.space(value):
                continue
            ends_now = self.ranges[held][1] == self.ranges[value][0]
            if ends_now and can_share(self.module, value, held):
                return held
        return None


def peak(text: str, sizes: dict[Position, int]) -> tuple[int, int]:
    """Of the main memory: bytes of arguments, results, constants; the most live, them included."""
    placing = Placing(text, sizes)
    placement = placing.place()
    there = [a for a in placement.allocations if a.space == 0]
    fixed = sum(a.size for a in there if a.kind != "table")
    homes = {value: home for value, home in placement.homes.items() if not placing.space(value)}
    for allocation in there:
        if allocation.kind == "table":
            tables = [value for value in allocation.values if value in placing.ranges]
            homes |= dict.fromkeys(tables, allocation.values[0])
    live: dict[int, Counter[Position]] = defaultdict(Counter)
    for value, home in homes.items():
        start, end = placing.ranges[value]
        for time in range(start, end + 1):
            live[time][home] = max(live[time][home], sizes.get(value, 0))
    return fixed, fixed + max((sum(groups.values()) for groups in live.values()), default=0)
