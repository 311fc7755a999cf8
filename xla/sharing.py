"""Whether a result may take the place of an operand that ends where the result begins."""

import re
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa

from .columns.dataflow import CPU, GPU, TPU, Dataflow, Schedule
from .columns.liveness import Liveness
from .columns.program import NONE, Ints, Mask, NumberedProgram, Slots
from .opcodes import ELEMENTWISE
from .runs import joined, starts_of
from .shapes import ArrayShape, has_size, logical_bytes, padded_bytes

# Sharing that the text itself records: `aliasing_operands` of the newest TPU compilers.
#
# The compiler writes down which operands and results of an instruction may share memory. This is
# exact where rules only guess, in VMEM above all.

_LIST = re.compile(r'"indices":\[(?P<indices>[^\]]*)\]')
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class Recorded:
    """What the text records: `is_known` marks the instructions of which it says anything.

    `pairs` are the slots of an operand and of a result that share, as one number each.
    """

    is_known: Mask
    pairs: Ints
    width: int

    def shares(self, operand_slot: Ints, result: Ints) -> Mask:
        """Whether the text records that these operands and results share."""
        found: Mask = np.isin(operand_slot * self.width + result, self.pairs)
        return found


def recorded_sharing(texts: pa.Table, program: NumberedProgram, slots: Slots) -> Recorded:
    """What `HloAttributes.aliasing_operands` records of the instructions that have slots."""
    rows = texts["row"].to_numpy()
    has_slots = slots.count[rows] > 0
    rows = rows[has_slots]
    lists = texts["lists"].combine_chunks().filter(pa.array(has_slots))
    is_known = np.zeros(len(program), bool)
    is_known[rows] = True
    code = lists.indices.to_numpy()
    pairs = [np.array([], np.int64)]
    for number, text in enumerate(lists.dictionary.to_pylist()):
        if not text:
            continue
        saying = rows[code == number]
        leaf, start, operands = _leaves(program, slots, saying)
        for found in _LIST.finditer(text):
            members = [int(index) for index in _NUMBER.findall(found["indices"])]
            pairs += _pairs(members, leaf, start, operands, len(slots))
    return Recorded(is_known, np.concatenate(pairs), len(slots))


def _leaves(program: NumberedProgram, slots: Slots, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """The leaf slots of each instruction's operands, then of its result.

    Returns them in one array, where each instruction's start (and the end of the last), and
    how many are operands'.
    """
    counts = program.operand_count[rows]
    at = joined(program.operand_start[rows], counts)
    owner = np.concatenate([np.repeat(np.arange(len(rows)), counts), np.arange(len(rows))])
    shown = np.concatenate([program.operands[at], rows])
    is_result = np.arange(len(owner)) >= len(at)
    order = np.lexsort((np.arange(len(owner)), is_result, owner))
    owner, shown, is_result = owner[order], shown[order], is_result[order]
    leaf = joined(slots.start[shown], slots.count[shown])
    of = np.repeat(owner, slots.count[shown])
    result = np.repeat(is_result, slots.count[shown])
    kept = slots.is_leaf[leaf]
    leaf, of, result = leaf[kept], of[kept], result[kept]
    return (
        leaf,
        starts_of(np.bincount(of, minlength=len(rows))),
        np.bincount(of[~result], minlength=len(rows)),
    )


def _pairs(members: list[int], leaf: Ints, start: Ints, operands: Ints, width: int) -> list[Ints]:
    """The pairs of an operand and a result among the members of one list, for all rows."""
    found = []
    for one in members:
        for other in members:
            fits = (one < operands) & (other >= operands) & (start[:-1] + other < start[1:])
            begin = start[:-1][fits]
            found.append(leaf[begin + one] * width + leaf[begin + other])
    return found


# Which instructions work element by element, and what an operand of a fusion reaches.
#
# An elementwise instruction may write its result over an operand of the same shape: it reads
# each element before it writes that element.


@dataclass
class Elementwise:
    """Answers for one program, each worked out once."""

    program: NumberedProgram

    @cached_property
    def nested(self) -> Mask:
        """Which instructions are elementwise; a nested fusion if it is a loop of only such."""
        program = self.program
        found = program.opcode.is_one_of(*ELEMENTWISE)
        calls = program.call_attribute.is_one_of("calls")
        calls &= program.fusion_kind.is_one_of("kLoop")[program.call_row]
        fusion, fused = program.call_row[calls], program.call_computation[calls]
        parameter = program.opcode.is_one_of("parameter")
        while True:
            # One nesting of fusions a round.
            other = np.zeros(len(program.first), bool)
            other[program.computation[~found & ~parameter]] = True
            further = found.copy()
            further[fusion[~other[fused]]] = True
            if np.array_equal(further, found):
                return found
            found = further

    def reaches_other(self, *through: str) -> Mask:
        """Which instructions have a user, or a user's user and so on, that is not elementwise.

        The opcodes `through` count as elementwise, and so does a nested loop of only such.
        """
        allowed = self.nested | self.program.opcode.is_one_of(*through)
        return self._told(~allowed[self.program.operand_row])

    @cached_property
    def loop_reaches_other(self) -> Mask:
        """As on a CPU for loops: a tuple counts as elementwise, and see `other_reaches_other`."""
        at, parameter = self._nested_operands
        bad = self._is_other_read("tuple", "fusion")
        bad[at] |= self.strictly_reaches_other[parameter]
        return self._told(bad)

    @cached_property
    def strictly_reaches_other(self) -> Mask:
        """As on a CPU for other fusions: tuples do not count as elementwise.

        A dynamic-update-slice reads the operand that it updates element by element. A nested
        fusion reads an operand so if the operand's parameter reaches only such instructions.
        """
        at, parameter = self._nested_operands
        bad = self._is_other_read("fusion")
        while True:
            # One nesting of fusions a round.
            reaches = self._told(bad)
            further = bad.copy()
            further[at] |= reaches[parameter]
            if np.array_equal(further, bad):
                return reaches
            bad = further

    def _is_other_read(self, *through: str) -> Mask:
        """Which of the program's operands an instruction does not read element by element."""
        program = self.program
        allowed = program.opcode.is_one_of(*ELEMENTWISE, *through)[program.operand_row]
        first = np.zeros(len(program.operands), bool)
        first[program.operand_start[:-1][program.operand_count > 0]] = True
        updates = program.opcode.is_one_of("dynamic-update-slice")[program.operand_row]
        found: Mask = ~(allowed | (updates & first))
        return found

    @cached_property
    def _nested_operands(self) -> tuple[Ints, Ints]:
        """The operands of fusions within fusions, and the parameters that stand for these."""
        program = self.program
        nested = program.opcode.is_one_of("fusion") & self._is_fused[program.computation]
        at = np.flatnonzero(nested[program.operand_row])
        row = program.operand_row[at]
        if not len(at):
            return at, at
        number = at - program.operand_start[row]
        return at, program.parameter_of(program.callee(row, "calls"), number, row)

    @cached_property
    def _is_fused(self) -> Mask:
        """Which computations a fusion calls."""
        program = self.program
        found = np.zeros(len(program.first), bool)
        by_fusion = program.opcode.is_one_of("fusion")[program.call_row]
        found[program.call_computation[by_fusion]] = True
        return found

    def _told(self, bad: Mask) -> Mask:
        """Which instructions reach one of these operands in their fused computation."""
        program = self.program
        reaches = np.zeros(len(program), bool)
        within = self._is_fused[program.computation[program.operand_row]]
        tell = np.flatnonzero(bad & within)
        while len(tell):
            told = np.unique(program.operands[tell])
            told = told[~reaches[told]]
            reaches[told] = True
            fresh = np.zeros(len(program), bool)
            fresh[told] = True
            tell = np.flatnonzero(fresh[program.operand_row])
        return reaches


# Whether the result of a GPU's fusion may take the place of an operand.
#
# The rules are those of XLA's FusionCanShareBufferHint: a walk from the fused parameter to this
# very result.


@dataclass
class GpuFusions:
    """Answers for the fusions of one program."""

    program: NumberedProgram
    slots: Slots
    elementwise: Elementwise

    def can_share(self, user: Ints, parameters: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """Whether each fusion's result may lie where the operand behind a parameter lies."""
        slots = self.slots
        arrays = slots.trees.arrays
        can = np.zeros(len(user), bool)
        for at, parameter in enumerate(parameters.tolist()):
            one, other = arrays[slots.array[operand_slot[at]]], arrays[slots.array[result[at]]]
            if slots.array[operand_slot[at]] == NONE or slots.array[result[at]] == NONE:
                continue
            if not _same_elements(one, other):
                continue
            index = slots.trees.index_texts[slots.trees.index[slots.node[result[at]]]]
            path = tuple(int(part) for part in index.strip("{}").split(",") if part)
            can[at] = self._walk(parameter, path, kind=self.program.fusion_kind.at(int(user[at])))
        return can

    def _walk(self, parameter: int, path: tuple[int, ...], *, kind: str) -> bool:
        """Whether a parameter reaches one output of its fusion, and element by element only.

        A kInput fusion works out its first reduction before it writes anything.
        """
        program = self.program
        computation = int(program.computation[parameter])
        hero = self._first_reduce[computation] if kind == "kInput" else NONE
        output = int(program.root[computation])
        if program.opcode.at(output) == "sort":
            place = path[0] if path else 0
            return self._operand(output, place) == parameter
        for number in path:
            output = self._operand(output, number)
        root = output
        if program.opcode.at(output) == "bitcast":
            root = self._operand(output, 0)
        is_update = program.opcode.at(root) == "dynamic-update-slice"
        found = False
        waiting, seen = [parameter], {parameter}
        while waiting:
            row = waiting.pop()
            if row == output:
                found = True
                if len([user for user in self._users(row) if user != hero]) > 1:
                    return False
                continue
            for user in self._users(row):
                opcode = program.opcode.at(user)
                if user == hero:
                    continue
                if is_update and user == root:
                    if self._operand(user, 0) != row:
                        return False
                elif opcode == "copy" or not (self.elementwise.nested[user] or opcode == "bitcast"):
                    return False
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
        return found

    @cached_property
    def _first_reduce(self) -> Ints:
        """The first reduction of each computation; NONE if it has none."""
        found = np.full(len(self.program.first), NONE)
        rows = self.program.rows("reduce")[::-1]
        found[self.program.computation[rows]] = rows
        return found

    def _operand(self, row: int, number: int) -> int:
        return int(self.program.operand(np.array([row]), number)[0])

    def _users(self, row: int) -> list[int]:
        order, start = self._by_operand
        found: list[int] = self.program.operand_row[order[start[row] : start[row + 1]]].tolist()
        return found

    @cached_property
    def _by_operand(self) -> tuple[Ints, Ints]:
        """The operands sorted by what they name, and where each name starts."""
        order = np.argsort(self.program.operands, kind="stable")
        start = np.concatenate(
            [[0], np.cumsum(np.bincount(self.program.operands, minlength=len(self.program)))]
        )
        return order, start


def _same_elements(one: ArrayShape, other: ArrayShape) -> bool:
    """Whether two arrays have as many elements of as many bytes."""
    if prod(one.dimensions) != prod(other.dimensions):
        return False
    if has_size(one) and has_size(other):
        return logical_bytes(one) == logical_bytes(other)
    return one.element_type == other.element_type


# Whether a result may take the place of an operand that ends where the result begins.
#
# The rules are XLA's HloDataflowAnalysis::CanShareOperandBufferWithUser with the hints of each
# platform's compiler. They decide estimates only: a dump's offsets say what XLA did.

# The operand whose place the result takes, if the instruction reads that operand only once.
_TAKES_OPERAND = {
    "dynamic-update-slice": 0,
    "scatter": 0,
    "set-dimension-size": 0,
    "triangular-solve": 1,
}
_PRODUCTS = ("dot", "convolution")
_LOOP, _INPUT, _OUTPUT = "kLoop", "kInput", "kOutput"


@dataclass
class Sharing:
    """Answers for pairs of an operand and a result of the same instruction."""

    program: NumberedProgram
    schedule: Schedule
    dataflow: Dataflow
    liveness: Liveness
    platform: str
    recorded: Recorded

    def can_share(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """Whether each result may lie where operand `number` of its instruction lies.

        `user` are the instructions, `operand_slot` and `result` the slots of the operand's
        and the result's sub-shapes.
        """
        program, slots = self.program, self.dataflow.slots
        operand = slots.instruction[operand_slot]
        never = program.opcode.is_one_of("constant")[operand]
        never |= program.opcode.is_one_of("copy")[user]
        equal = slots.array[operand_slot] == slots.array[result]
        equal &= slots.array[result] != NONE
        can: Mask = self._is_in_place(operand_slot, result) & equal
        is_fusion = program.opcode.is_one_of("fusion")[user]
        can |= equal & ~is_fusion & self._default(user, number, operand_slot, result)
        if self.platform == TPU:
            can |= equal & self._all_reduce(user, number, result)
        fusions = np.flatnonzero(is_fusion & ~can & ~never)
        by_platform = {CPU: self._cpu_fusion, GPU: self._gpu_fusion, TPU: self._tpu_fusion}
        can[fusions] = by_platform[self.platform](
            user[fusions], number[fusions], operand_slot[fusions], result[fusions]
        )
        can &= ~never
        if self.platform == TPU:
            known = self.recorded.is_known[user]
            can[known] = self.recorded.shares(operand_slot[known], result[known])
        return can

    @cached_property
    def until(self) -> Ints:
        """How long each instruction holds its values: a root until its computation ends."""
        is_root = np.zeros(len(self.program), bool)
        is_root[self.program.root] = True
        ends: Ints = self.schedule.span_end[self.program.computation]
        return np.where(is_root, ends, self.schedule.time)

    @cached_property
    def is_within_result(self) -> Mask:
        """Which values lie inside the result of the ConcatBitcast that reads them last."""
        found = np.zeros(len(self.dataflow), bool)
        flow = self.dataflow
        calls = self.program.custom_call_target.is_one_of("ConcatBitcast")
        reads = calls[flow.use_instruction]
        found[flow.use_value[reads]] = True
        return found

    def _is_in_place(self, operand_slot: Ints, result: Ints) -> Mask:
        width = len(self.dataflow.slots)
        operands, results = self.dataflow.in_place_operand, self.dataflow.in_place_result
        found: Mask = np.isin(operand_slot * width + result, operands * width + results)
        return found

    def _default(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """The rules of all platforms for what is no fusion and has equal shapes."""
        opcode, slots = self.program.opcode, self.dataflow.slots
        can: Mask = opcode.is_one_of(*ELEMENTWISE, "while", "conditional")[user]
        once = self._reads_once(user, slots.instruction[operand_slot])
        for name, takes in _TAKES_OPERAND.items():
            can |= opcode.is_one_of(name)[user] & (number == takes) & once
        sorts = opcode.is_one_of("sort")[user]
        used_once = self._use_count[slots.instruction[operand_slot]] == 1
        can |= sorts & used_once & self._same_place(number, result)
        return can

    def _all_reduce(self, user: Ints, number: Ints, result: Ints) -> Mask:
        """A TPU's all-reduce works where its operand lies; XLA's default has no such rule."""
        reduces: Mask = self.program.opcode.is_one_of("all-reduce")[user]
        return reduces & self._same_place(number, result)

    def _same_place(self, number: Ints, result: Ints) -> Mask:
        """Whether operand i meets result `{i}`, or the only operand the whole result."""
        slots = self.dataflow.slots
        row = slots.instruction[result]
        whole = slots.whole(row)
        same: Mask = (number == 0) & (result == whole)
        elements = slots.element_count(whole)
        inner = np.flatnonzero(elements > number)
        same[inner] = slots.element(whole[inner], number[inner]) == result[inner]
        return same

    @cached_property
    def _use_count(self) -> Ints:
        """How many operands name each instruction."""
        return np.bincount(self.program.operands, minlength=len(self.program))

    def _parameters(self, user: Ints, number: Ints) -> Ints:
        """The parameter of the fused computation that stands for an operand of the fusion."""
        if not len(user):
            return user
        fused = self.program.callee(user, "calls")
        return self.program.parameter_of(fused, number, user)

    def _cpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """A result of the same shape and layout takes the place of an operand by the kind.

        kLoop and kInput: the parameter reaches only elementwise instructions and tuples.
        kOutput with an add at its root: one summand is a product, and the root's other summand
        is the parameter's only use. Other fusions: the parameter reaches only elementwise
        instructions, and no tuple. Found by asking XLA about fusions made for the purpose.
        """
        slots, program = self.dataflow.slots, self.program
        parameter = self._parameters(user, number)
        equal = slots.array[operand_slot] == slots.array[result]
        equal &= operand_slot == slots.whole(slots.instruction[operand_slot])
        kind = program.fusion_kind
        loops = kind.is_one_of(_LOOP, _INPUT)[user]
        can: Mask = np.where(
            loops,
            ~self.elementwise.loop_reaches_other[parameter],
            ~self.elementwise.strictly_reaches_other[parameter],
        )
        root = program.called_root(user)
        sums = kind.is_one_of(_OUTPUT)[user] & program.opcode.is_one_of("add")[root]
        for at in np.flatnonzero(sums & equal).tolist():
            can[at] = self._is_other_summand(int(parameter[at]), int(root[at]))
        can &= equal
        return can

    def _is_other_summand(self, parameter: int, root: int) -> bool:
        """Whether a sum of a product and the parameter is the parameter's only use."""
        start, stop = self.program.operand_start[root], self.program.operand_start[root + 1]
        summands = self.program.operands[start:stop].tolist()
        products = self.program.opcode.is_one_of(*_PRODUCTS)[summands]
        if not products.any() or self._use_count[parameter] != 1:
            return False
        return bool(summands[1 - int(np.argmax(products))] == parameter)

    def _tpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """As on a CPU, through bitcasts and reductions too, but not where a convolution reads."""
        kinds: Mask = self.program.fusion_kind.is_one_of(_LOOP, _OUTPUT)[user]
        reaches = self._tpu_reaches_other[self._parameters(user, number)]
        can: Mask = kinds & self._same_data(operand_slot, result) & ~reaches
        return can

    @cached_property
    def _tpu_reaches_other(self) -> Mask:
        return self.elementwise.reaches_other("tuple", "bitcast", "reduce")

    def _gpu_fusion(self, user: Ints, number: Ints, operand_slot: Ints, result: Ints) -> Mask:
        """See `GpuFusions`."""
        return self._gpu_fusions.can_share(
            user, self._parameters(user, number), operand_slot, result
        )

    @cached_property
    def _gpu_fusions(self) -> GpuFusions:
        return GpuFusions(self.program, self.dataflow.slots, self.elementwise)

    @cached_property
    def elementwise(self) -> Elementwise:
        """Which instructions work element by element."""
        return Elementwise(self.program)

    def _reads_once(self, user: Ints, operand: Ints) -> Mask:
        """Whether each instruction names the operand only once."""
        counts = self.program.operand_count[user]
        at = joined(self.program.operand_start[user], counts)
        owner = np.repeat(np.arange(len(user)), counts)
        same = self.program.operands[at] == operand[owner]
        once: Mask = np.bincount(owner[same], minlength=len(user)) == 1
        return once

    def _same_data(self, operand_slot: Ints, result: Ints) -> Mask:
        """Whether element type, elements and bytes agree, whatever the dimensions are."""
        arrays = self.dataflow.slots.trees.arrays
        codes: dict[tuple[object, ...], int] = {}
        code = np.array(
            [
                codes.setdefault(
                    (shape.element_type, prod(shape.dimensions), padded_bytes(shape)), len(codes)
                )
                for shape in arrays
            ],
            np.int64,
        )
        a, b = self.dataflow.slots.array[operand_slot], self.dataflow.slots.array[result]
        same: Mask = (a != NONE) & (b != NONE)
        same &= code[a] == code[b]
        return same
