"""XLA's liveness rules, written out one by one: slow, and meant to be read.

A module's scheduled HLO text says which values there are, where each is held, who uses it, which
values share memory, and from when to when each lives. The engine of `memhouse` computes all this
on columns; this file computes it on dictionaries and sets, and tests compare both.
"""

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field

from .plain_text import (
    Computation,
    Index,
    Instruction,
    Module,
    NoRuleError,
    Position,
    attribute_names,
    branches,
    called,
    is_array,
    pairs_of,
    read_module,
    sub_shapes,
)

Range = tuple[int, int]

# Flattening.


@dataclass
class Schedule:
    """The order in which all instructions run, called computations put in their place."""

    sequence: list[str] = field(default_factory=list)
    # From a computation to its first time and to the time after its last.
    spans: dict[str, Range] = field(default_factory=dict)
    # From a computation to the async-start in whose context it runs.
    contexts: dict[str, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return len(self.sequence)

    def times(self) -> dict[str, int]:
        """The time of each instruction."""
        return {name: time for time, name in enumerate(self.sequence)}


def flatten(module: Module) -> Schedule:
    """Put what is called before its caller, from the entry computation on."""
    schedule = Schedule()

    def go(name: str, context: str | None) -> None:
        if name in schedule.spans:
            return
        if context is not None:
            schedule.contexts[name] = context
        start = len(schedule.sequence)
        for x in module.computations[name].instructions:
            for callee in entered(x):
                go(callee, x.name if x.opcode == "async-start" else context)
            schedule.sequence.append(x.name)
        schedule.spans[name] = (start, len(schedule.sequence))

    go(module.entry, None)
    return schedule


def entered(x: Instruction) -> list[str]:
    """The computations that are flattened before their caller, in order."""
    if x.opcode == "while":
        return attribute_names(x, "condition") + attribute_names(x, "body")
    if x.opcode == "conditional":
        return branches(x)
    if x.opcode == "call":
        return attribute_names(x, "to_apply") or attribute_names(x, "calls")
    if x.opcode == "async-start":
        if not x.operands or x.attributes.find("calls=") < 0:
            raise NoRuleError(f"{x.name} is bound later")
        return attribute_names(x, "calls")
    return []


# Values.

PASSED_ON = ("bitcast", "opt-barrier", "add-dependency", "domain", "all-reduce-done")
STARTS_WITH_OPERANDS = ("all-gather-start", "collective-permute-start")
DONES = ("all-gather-done", "collective-permute-done")


def holding_computations(module: Module) -> list[Computation]:
    """The computations whose instructions hold values: all but those of fusions."""
    fused = {c for x in module.instructions.values() if x.opcode == "fusion" for c in called(x)}
    return [c for c in module.computations.values() if c.name not in fused]


def has_value(x: Instruction, index: Index) -> bool:
    """A collective-permute-start of several operands has nothing at {0}."""
    several = x.opcode == "collective-permute-start" and len(x.operands) > 1
    return not (several and index == (0,) and isinstance(x.shape[0], tuple))


def forwarded(module: Module, x: Instruction, index: Index) -> Position | None:
    """The position whose value this one holds as well; none if it has a value of its own."""
    if x.opcode == "get-tuple-element":
        number = re.search(r"\bindex=(\d+)", x.attributes)
        assert number is not None
        return x.operands[0], (int(number[1]), *index)
    if x.opcode in PASSED_ON:
        return x.operands[0], index
    if x.opcode == "tuple":
        return (x.operands[index[0]], index[1:]) if index else None
    if x.opcode == "copy":
        return (x.operands[0], index) if index else None
    if x.opcode == "call":
        return module.computations[entered(x)[0]].root.name, index
    if x.opcode == "copy-start":
        return (x.operands[0], index[1:]) if index[:1] == (1,) else None
    if x.opcode == "copy-done":
        return x.operands[0], (0, *index)
    if x.opcode == "async-start":
        if index[:1] == (0,) and len(index) > 1:
            return x.operands[index[1]], index[2:]
        if index[:1] == (1,) and is_array(sub_shapes(x.shape)[index]):
            return async_result(module, x, index[1:], before_done=True)
        return None
    if x.opcode == "async-update":
        return (x.operands[0], index) if is_array(sub_shapes(x.shape)[index]) else None
    if x.opcode == "async-done":
        if not is_array(sub_shapes(x.shape)[index]):
            return None
        return async_result(module, async_start(module, x), index, before_done=False)
    if x.opcode in STARTS_WITH_OPERANDS:
        several = isinstance(x.shape[0], tuple)
        if index[:1] == (0,) and not several:
            return x.operands[0], index[1:]
        if index[:1] == (0,) and len(index) > 1:
            return x.operands[index[1]], index[2:]
        return None
    if x.opcode in DONES:
        return (x.operands[0], (1, *index)) if is_array(sub_shapes(x.shape)[index]) else None
    if x.opcode == "send":
        return (x.operands[0], index[1:]) if index[:1] == (0,) else None
    if x.opcode == "recv-done":
        return (x.operands[0], index) if index[:1] == (0,) else None
    if x.opcode == "parameter":
        return forwarded_by_caller(module, x, index)
    return None


def async_start(module: Module, x: Instruction) -> Instruction:
    """The start of what an async-update or an async-done goes on with."""
    while x.opcode != "async-start":
        x = module.instructions[x.operands[0]]
    return x


def async_result(module: Module, start: Instruction, index: Index, before_done: bool) -> Position:
    """The root of the async computation; until it is done, what the root writes into."""
    root = module.computations[entered(start)[0]].root
    is_open = before_done and root.opcode != "fusion"
    for number, into, out in in_place_pairs(module, root):
        written = module.instructions[root.operands[number]]
        if is_open and out == index and written.opcode == "parameter":
            return start.operands[int(written.inside)], into
    return root.name, index


def forwarded_by_caller(module: Module, x: Instruction, index: Index) -> Position | None:
    """What a parameter of a branch, a call or an async computation holds: the operand."""
    for caller in module.callers[x.computation]:
        if len(module.callers[x.computation]) > 1 and x.computation in entered(caller):
            raise NoRuleError(f"{x.computation} is called twice")
        if caller.opcode == "conditional":
            return caller.operands[branches(caller).index(x.computation) + 1], index
        if caller.opcode in ("call", "async-start"):
            return caller.operands[int(x.inside)], index
    return None


def phi_inputs(module: Module, x: Instruction, index: Index) -> list[Position]:
    """The positions whose values meet here; empty if none meet."""
    loop = x if x.opcode == "while" else None
    if x.opcode == "parameter":
        callers = module.callers[x.computation]
        loop = next((caller for caller in callers if caller.opcode == "while"), None)
    if loop is not None:
        body = module.computations[attribute_names(loop, "body")[0]]
        return [(loop.operands[0], index), (body.root.name, index)]
    if x.opcode == "conditional":
        return [(module.computations[name].root.name, index) for name in branches(x)]
    return []


@dataclass
class Values:
    """What each position holds, and which of the values are phis."""

    held: dict[Position, Position]
    phis: set[Position]

    def all(self) -> set[Position]:
        """Every value."""
        return set(self.held.values())

    def positions(self) -> dict[Position, set[Position]]:
        """Where each value is held."""
        result: dict[Position, set[Position]] = defaultdict(set)
        for position, value in self.held.items():
            result[value].add(position)
        return result


def find_values(module: Module) -> Values:
    """Give each position its value; a phi of one value alone is that value."""
    source: dict[Position, Position] = {}
    inputs: dict[Position, list[Position]] = {}
    every: list[Position] = []
    for computation in holding_computations(module):
        for x in computation.instructions:
            for index in sub_shapes(x.shape):
                if not has_value(x, index):
                    continue
                every.append((x.name, index))
                if (origin := forwarded(module, x, index)) is not None:
                    source[x.name, index] = origin
                elif meeting := phi_inputs(module, x, index):
                    inputs[x.name, index] = meeting

    def resolve(position: Position) -> Position:
        while position in source:
            position = source[position]
        return position

    # An inner loop stands before an outer one; of a loop XLA makes the body's phis last but one.
    place = {name: number for number, name in enumerate(module.instructions)}

    def made(phi: Position) -> tuple[int, int]:
        x = module.instructions[phi[0]]
        if x.opcode != "parameter":
            return place[x.name], 2
        loop = next(caller for caller in module.callers[x.computation] if caller.opcode == "while")
        return place[loop.name], int(x.computation == attribute_names(loop, "body")[0])

    merged = {phi: [resolve(position) for position in meeting] for phi, meeting in inputs.items()}
    replaced = replace_phis({phi: merged[phi] for phi in sorted(merged, key=made)})
    source |= replaced
    held = {position: resolve(position) for position in every}
    return Values(held, set(inputs) - set(replaced))


def replace_phis(inputs: dict[Position, list[Position]]) -> dict[Position, Position]:
    """What each phi that merges one value is replaced by.

    As XLA does it: whoever used the replaced phi is not known as a user of what replaces it.
    """
    users: dict[Position, list[Position]] = defaultdict(list)
    for phi, merged in inputs.items():
        for value in merged:
            users[value].append(phi)
    replaced: dict[Position, Position] = {}

    def replace(phi: Position, value: Position) -> None:
        while value in replaced:
            value = replaced[value]
        if phi not in replaced and phi != value:
            for user in set(users[phi]) & set(inputs):
                inputs[user] = [value if other == phi else other for other in inputs[user]]
            for other in inputs[phi]:
                users[other] = [value if user == phi else user for user in users[other]]
            replaced[phi] = value

    before = -1
    while before < len(replaced):
        before, checked = len(replaced), set()
        for phi in inputs:
            if phi in replaced:
                continue
            inputs[phi] = [value for value in inputs[phi] if value != phi]
            users[phi] = [user for user in users[phi] if user != phi]
            if len(set(inputs[phi])) == 1:
                replace(phi, inputs[phi][0])
            elif phi not in checked:
                visited, values = sources(phi, inputs)
                checked |= set(visited)
                if len(values) == 1:
                    for node in visited & inputs.keys():
                        replace(node, *values)
    return replaced


def sources(phi, inputs):
    """The nodes that reach a phi, breadth first, up to the second that is no phi; these values."""
    visited, values, waiting = set(), set(), [phi]
    while waiting and len(values) < 2:
        node = waiting.pop(0)
        if node not in visited:
            visited.add(node)
            if node in inputs:
                waiting += inputs[node]
            else:
                values.add(node)
    return visited, values


def find_uses(module: Module, values: Values) -> dict[Position, set[tuple[str, int, Index]]]:
    """Who reads each value: the instruction, the operand's number, the index in the operand."""
    uses: dict[Position, set[tuple[str, int, Index]]] = defaultdict(set)
    for computation in holding_computations(module):
        for x in computation.instructions:
            given_back = held_at(x, values) if x.is_root else set()
            for number, operand in enumerate(x.operands):
                for index in sub_shapes(module.instructions[operand].shape):
                    value = values.held.get((operand, index))
                    if value is not None and (reads(x, index) or value in given_back):
                        uses[value].add((x.name, number, index))
    return uses


def reads(x: Instruction, index: Index) -> bool:
    """Whether an instruction looks at what lies at an index of its operand."""
    if x.opcode in ("tuple", "domain"):
        return False
    return not index or x.opcode not in ("get-tuple-element", "copy")


def held_at(x: Instruction, values: Values) -> set[Position]:
    """The values that an instruction holds; a root counts as a use of each of them."""
    return {values.held[x.name, i] for i in sub_shapes(x.shape) if (x.name, i) in values.held}


# Aliasing.


def in_place_pairs(module: Module, x: Instruction) -> list[tuple[int, Index, Index]]:
    """(operand number, index in it, index of the result) that must share memory."""
    if x.opcode in ("dynamic-update-slice", "set-dimension-size"):
        return [(0, (), ())]
    if x.opcode == "scatter":
        count = (len(x.operands) - 1) // 2
        return [(i, (), (i,)) for i in range(count)] if count > 1 else [(0, (), ())]
    if x.opcode == "all-reduce-start":
        count = len(x.operands)
        return [(i, (), (i,)) for i in range(count)] if count > 1 else [(0, (), ())]
    if x.opcode in ("collective-permute", "collective-permute-start") and len(x.operands) == 4:
        into = (1,) if x.opcode == "collective-permute-start" else ()
        below = sub_shapes(module.instructions[x.operands[1]].shape)
        return [(1, index, into + index) for index in below]
    if x.opcode == "ragged-all-to-all":
        return [(1, (), ())]
    told = pairs_of("output_to_operand_aliasing", x.attributes)
    pairs = [(number, into, out) for out, number, into in told]
    if x.opcode == "fusion":
        return fusion_pairs(module, x) + pairs
    return pairs if x.opcode in ("custom-call", "async-start") else []


def fusion_pairs(module: Module, x: Instruction) -> list[tuple[int, Index, Index]]:
    """Follow each result back through an in-place operation to a parameter of the fusion."""
    root = module.computations[attribute_names(x, "calls")[0]].root
    pairs = []
    for leaf, shape in sub_shapes(x.shape).items():
        if not is_array(shape):
            continue
        source, at = to_origin(module, root, leaf)
        for number, into, out in in_place_pairs(module, source):
            if out != at:
                continue
            operand = module.instructions[source.operands[number]]
            found, index = to_origin(module, operand, into)
            if found.opcode == "fusion":
                for inner, deeper, result in in_place_pairs(module, found):
                    if result == index:
                        operand = module.instructions[found.operands[inner]]
                        found, index = to_origin(module, operand, deeper)
                        break
            if found.opcode == "parameter":
                pairs.append((int(found.inside), index, leaf))
    return pairs


def to_origin(module: Module, x: Instruction, index: Index) -> tuple[Instruction, Index]:
    """Go back through tuples, then through get-tuple-elements, then through bitcasts."""
    x, index = through_tuples(module, x, index)
    while x.opcode == "bitcast" and not index:
        x = module.instructions[x.operands[0]]
    return x, index


def through_tuples(module: Module, x: Instruction, index: Index) -> tuple[Instruction, Index]:
    """Go back through tuples, then through get-tuple-elements."""
    while x.opcode == "tuple" and index:
        x, index = module.instructions[x.operands[index[0]]], index[1:]
    while x.opcode == "get-tuple-element":
        operand, index = forwarded(module, x, index) or ("", ())
        x = module.instructions[operand]
    return x, index


def alias_edges(module: Module, values: Values) -> list[tuple[Position, Position]]:
    """Pairs of positions whose values must share memory."""
    edges: list[tuple[Position, Position]] = []
    for computation in holding_computations(module):
        for x in computation.instructions:
            if x.opcode == "while":
                condition = module.computations[attribute_names(x, "condition")[0]]
                body = module.computations[attribute_names(x, "body")[0]]
                parts = [x.operands[0], body.root.name]
                parts += [c.parameter(0).name for c in (body, condition)]
                for index in sub_shapes(x.shape):
                    edges += [((x.name, index), (part, index)) for part in parts]
            elif x.opcode == "conditional":
                roots = [module.computations[name].root.name for name in branches(x)]
                for index in sub_shapes(x.shape):
                    edges += [((x.name, index), (root, index)) for root in roots]
            else:
                for number, into, out in in_place_pairs(module, x):
                    edges.append(((x.operands[number], into), (x.name, out)))
    entry = module.computations[module.entry]
    for out, number, into in module.input_output_alias:
        edges.append(((entry.parameter(number).name, into), (entry.root.name, out)))
    return [(a, b) for a, b in edges if a in values.held and b in values.held]


def alias_sets(module: Module, values: Values) -> list[set[Position]]:
    """The values, put together where they must share memory."""
    home = {value: {value} for value in values.all()}
    for a, b in alias_edges(module, values):
        one, other = home[values.held[a]], home[values.held[b]]
        if one is not other:
            one |= other
            for value in other:
                home[value] = one
    return list({id(members): members for members in home.values()}.values())


# Live ranges.


def async_done(module: Module, start: str) -> str:
    """The async-done of an async-start."""
    for x in module.instructions.values():
        if x.opcode == "async-done" and async_start(module, x).name == start:
            return x.name
    raise NoRuleError(f"{start} is never done")


def raw_ranges(
    module: Module, schedule: Schedule, values: Values, async_results_start_late: bool = False
) -> dict[Position, Range]:
    """From when to when each value lives, as if nothing shared memory."""
    times = schedule.times()
    uses, positions = find_uses(module, values), values.positions()
    aliased = {(number, index) for _, number, index in module.input_output_alias}
    ranges = {}
    for value in values.all():
        x = module.instructions[value[0]]
        if x.name not in times:
            continue
        first, after = schedule.spans[x.computation]
        start = first if x.opcode == "parameter" else times[x.name]
        ends = [after if x.is_root else times[x.name]]
        if x.computation in schedule.contexts:
            caller = schedule.contexts[x.computation]
            ends.append(times[async_done(module, caller)])
            if async_results_start_late:
                start = times[caller]
        for user, _, _ in uses[value]:
            ends += use_time(module, times, user)
        for name, _ in positions[value]:
            if name in times:
                held_by = module.instructions[name]
                root_time = schedule.spans[held_by.computation][1]
                ends.append(root_time if held_by.is_root else times[name])
        is_argument = x.opcode == "parameter" and x.computation == module.entry
        if is_argument and (int(x.inside), value[1]) not in aliased:
            ends = [schedule.end]
        ranges[value] = (start, max(ends))
    return ranges


def use_time(module: Module, times: dict[str, int], user: str) -> list[int]:
    """When a use counts: a loop's when its body begins, a call's not at all."""
    x = module.instructions[user]
    if x.opcode == "call" or user not in times:
        return []
    if x.opcode == "while":
        body = module.computations[attribute_names(x, "body")[0]]
        return [times[body.parameter(0).name]]
    return [times[user]]


def normalised(
    ranges: dict[Position, Range], sets: list[set[Position]], order: dict[str, int]
) -> dict[Position, Range]:
    """Cut ranges that share memory so that each ends where the next begins."""
    result = dict(ranges)
    for members in sets:
        # XLA takes equal ranges by the values' numbers, which the text does not give.
        ordered = sorted(members & ranges.keys(), key=lambda v: (ranges[v], order[v[0]], v[1]))
        for a, c in itertools.pairwise(ordered):
            (start, end), (next_start, next_end) = result[a], result[c]
            if end >= next_start:
                result[c] = (next_start, max(end, next_end))
                result[a] = (start, next_start)
    return result


# All of it.


@dataclass
class Liveness:
    """What the rules say of one module."""

    schedule: list[str]
    values: set[Position]
    phis: set[Position]
    positions: dict[Position, set[Position]]
    uses: dict[Position, set[tuple[str, int, Index]]]
    alias_sets: list[set[Position]]
    live_ranges: dict[Position, Range]


def liveness(text: str, async_results_start_late: bool = False) -> Liveness:
    """Work out everything from scheduled HLO text."""
    module = read_module(text)
    schedule = flatten(module)
    values = find_values(module)
    sets = alias_sets(module, values)
    ranges = raw_ranges(module, schedule, values, async_results_start_late)
    return Liveness(
        schedule.sequence,
        values.all(),
        values.phis,
        dict(values.positions()),
        dict(find_uses(module, values)),
        sets,
        normalised(ranges, sets, {name: at for at, name in enumerate(module.instructions)}),
    )
