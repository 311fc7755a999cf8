"""The origin of each value: the instruction whose result the value holds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from .dataflow import Dataflow
from .errors import DumpError
from .op_names import Kind, OpNames
from .program import NONE, Ints, Mask, NumberedProgram
from .runs import followed, joined, starts_of
from .shapes import ArrayShape, ShapeTrees, flatten_shapes, logical_bytes

# A program together with what its op_names say: the ground on which origins are looked up.

# These have the name of what they lead to, and compute nothing themselves.
_NEVER_OWN = ("while", "conditional", "call", "tuple", "get-tuple-element", "parameter")
# How JAX names what takes a slice out of a stacked array.
_SLICING = ("dynamic_slice", "squeeze", "dynamic_index_in_dim")
# More than any machine holds, and small enough to be summed.
_MOST = 2**50


@dataclass(frozen=True)
class Named:
    """A program, its values and its names.

    `caller` is the instruction that calls each computation, NONE of the entry.
    """

    program: NumberedProgram
    dataflow: Dataflow
    names: OpNames
    caller: Ints

    @cached_property
    def has_strong_name(self) -> Mask:
        """Which instructions have a name that says what they compute."""
        found: Mask = self.names.kind == Kind.STRONG
        return found

    @cached_property
    def owns(self) -> Mask:
        """Which instructions compute what their name says."""
        return self.has_strong_name & ~self.program.opcode.is_one_of(*_NEVER_OWN)

    @cached_property
    def has_weak_name(self) -> Mask:
        """Which instructions have only a wrapper's or a joined name."""
        found: Mask = np.isin(self.names.kind, (Kind.WEAK, Kind.JOINED))
        return found

    @cached_property
    def takes_a_slice(self) -> Mask:
        """Which instructions are named as JAX names taking a slice out of a stack."""
        texts = (text.partition(";")[0].rpartition("/")[2] for text in self.names.texts)
        slicing = np.array([text.partition("[")[0] in _SLICING for text in texts] + [False], bool)
        found: Mask = slicing[self.names.code]
        return found

    @cached_property
    def is_entry_parameter(self) -> Mask:
        """Which instructions are the program's arguments."""
        program = self.program
        found: Mask = (program.parameter_number != NONE) & (program.computation == program.entry)
        return found

    @cached_property
    def named_argument(self) -> Ints:
        """The argument whose name each instruction carries; NONE of constants and the nameless."""
        of_text = np.full(len(self.names.texts) + 1, NONE)
        arguments = np.flatnonzero(self.is_entry_parameter)[::-1]
        of_text[self.names.code[arguments]] = arguments
        of_text[NONE] = NONE
        carries = self.names.kind == Kind.ARGUMENT
        carries &= ~self.program.opcode.is_one_of("constant")
        found: Ints = np.where(carries, of_text[self.names.code], NONE)
        return found

    @cached_property
    def outer_operand(self) -> Ints:
        """The caller's operand that each parameter of a fused computation stands for, else NONE."""
        program = self.program
        found = np.full(len(program), NONE)
        rows = np.flatnonzero(self.is_fused & (program.parameter_number != NONE))
        found[rows] = program.operand(self.fusion[rows], program.parameter_number[rows])
        return found

    @cached_property
    def fusion(self) -> Ints:
        """The instruction that calls each instruction's computation."""
        found: Ints = self.caller[self.program.computation]
        return found

    @cached_property
    def is_fused(self) -> Mask:
        """Which instructions are part of a fusion."""
        found: Mask = (self.fusion != NONE) & self.program.opcode.is_one_of("fusion")[self.fusion]
        return found

    @cached_property
    def inner_root(self) -> Ints:
        """The root of the computation that each fusion runs, NONE for what is no fusion."""
        found = np.full(len(self.program), NONE)
        fusions = self.program.rows("fusion")
        found[fusions] = self.program.called_root(fusions)
        return found

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of each instruction's elements, of a tuple those of its largest element."""
        trees = self._shapes
        arrays = np.array([bytes_of(array) for array in trees.arrays] + [0], np.int64)
        largest = np.maximum.reduceat(arrays[trees.array], trees.start[:-1])
        found: Ints = largest[self.program.shape.codes]
        return found

    @cached_property
    def elements(self) -> Ints:
        """How many elements the array of each instruction has; 0 of a tuple."""
        wholes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        counts = [elements_of(s) if isinstance(s, ArrayShape) else 0 for s in wholes]
        found: Ints = np.array(counts, np.int64)[self.program.shape.codes]
        return found

    @cached_property
    def _shapes(self) -> ShapeTrees:
        try:
            return flatten_shapes(self.program.shape.texts)
        except ValueError as error:
            raise DumpError(str(error)) from None

    @cached_property
    def is_scalar(self) -> Mask:
        """Which instructions give one number."""
        wholes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        scalar = [isinstance(shape, ArrayShape) and shape.dimensions == () for shape in wholes]
        found: Mask = np.array(scalar, bool)[self.program.shape.codes]
        return found

    @cached_property
    def is_flat(self) -> Mask:
        """Which instructions give an array of one dimension."""
        wholes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        flat = [isinstance(shape, ArrayShape) and len(shape.dimensions) == 1 for shape in wholes]
        found: Mask = np.array(flat, bool)[self.program.shape.codes]
        return found

    def value_of(self, rows: Ints) -> Ints:
        """The value that is the whole of each of these instructions; NONE if it is fused."""
        slots = self.dataflow.slots
        has = slots.count[rows] > 0
        at = np.where(has, slots.start[rows], 0)
        found: Ints = np.where(has, self.dataflow.value[at], NONE)
        return found


def bytes_of(array: ArrayShape) -> int:
    """An array's bytes without padding; 0 if it has no bound."""
    try:
        return min(logical_bytes(array), _MOST)
    except ValueError:
        return 0


def elements_of(array: ArrayShape) -> int:
    """How many elements an array has; 0 if it has no bound."""
    return max(0, min(prod(array.dimensions), _MOST))


# The arrays of a program, and the values that loops and conditionals merge.

# The collectives that hand on what they get, to other devices and in larger arrays.
GATHERS = ("all-gather", "all-gather-start", "all-to-all", "collective-permute",
           "collective-permute-start", "collective-broadcast", "ragged-all-to-all")  # fmt: skip
_HANDS_ON = ("get-tuple-element", "bitcast", "copy", "copy-start", "copy-done",
             "opt-barrier", "optimization-barrier", "domain", "add-dependency")  # fmt: skip
_STARTS = ("all-gather-start", "collective-permute-start")
_SUMS = ("all-reduce-start",)


class Values:
    """The arrays among the values, each with its instruction and its element.

    `at` are the values; `row`, `element` and the masks are by value, and stand for tuples too.
    """

    def __init__(self, named: Named) -> None:
        program, flow = named.program, named.dataflow
        slots = flow.slots
        self.named = named
        self.row = flow.instruction
        self.within = flow.defined_at - slots.start[self.row]
        self.is_array = slots.array[flow.defined_at] != NONE
        element, second = _element_numbers(slots.trees.index_texts)
        code = slots.trees.index[slots.node[flow.defined_at]]
        starts = program.opcode.is_one_of(*_STARTS)[self.row]
        # Of a start, `{0}` are the operands and `{1}` the results.
        self.element = np.where(starts, second[code], element[code])
        self.is_single = slots.count[self.row] == 1
        is_start = np.array([text.endswith("-start") for text in program.opcode.texts] + [False])
        is_start = is_start[program.opcode.codes] & ~program.opcode.is_one_of(*_SUMS)
        # Of a start, `{2}` and all after it are contexts: they say how far the start has come.
        self.is_context = is_start[self.row] & (element[code] > 1)

    def of(self, *opcodes: str) -> Ints:
        """The arrays that instructions with one of these opcodes define."""
        found = self.named.program.opcode.is_one_of(*opcodes)[self.row]
        return np.flatnonzero(found & self.is_array)

    def operand(self, values: Ints, number: Ints | int) -> Ints:
        """The values that operands of the values' instructions are; NONE where there is none."""
        program = self.named.program
        row = self.row[values]
        has = program.operand_count[row] > number
        at = program.operand_start[row] + np.where(has, number, 0)
        found = np.full(len(values), NONE)
        found[has] = self.named.value_of(program.operands[at[has]])
        return found

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of each array's elements; 0 of a tuple."""
        return self._by_array([bytes_of(array) for array in self._arrays])

    @cached_property
    def elements(self) -> Ints:
        """How many elements each array has; 0 of a tuple."""
        return self._by_array([elements_of(array) for array in self._arrays])

    @cached_property
    def space(self) -> Ints:
        """The memory space of each array; 0 of a tuple."""
        return self._by_array([array.memory_space for array in self._arrays])

    @cached_property
    def is_float(self) -> Mask:
        """Which arrays hold floating-point numbers."""
        return (
            self._by_array([array.element_type.startswith(("f", "bf")) for array in self._arrays])
            > 0
        )

    def plain_shape(self, at: Ints) -> Ints:
        """A number for the element type and dimensions at each of these slots; 0 of a tuple."""
        codes: dict[tuple[str, tuple[int, ...]], int] = {}
        shapes = ((array.element_type, array.dimensions) for array in self._arrays)
        numbers = [codes.setdefault(shape, len(codes) + 1) for shape in shapes]
        found: Ints = np.array([*numbers, 0], np.int64)[self.named.dataflow.slots.array[at]]
        return found

    @property
    def _arrays(self) -> list[ArrayShape]:
        return self.named.dataflow.slots.trees.arrays

    def _by_array(self, of_arrays: list[int]) -> Ints:
        slots = self.named.dataflow.slots
        found: Ints = np.array([*of_arrays, 0], np.int64)[
            slots.array[self.named.dataflow.defined_at]
        ]
        return found


def _element_numbers(indices: list[str]) -> tuple[Ints, Ints]:
    """Of each shape index the first and the second number, 0 where there is none."""
    numbers = [[int(n) for n in text.strip("{}").split(",") if n] for text in indices]
    padded = [[*found, 0, 0][:2] for found in numbers] or [[0, 0]]
    first, second = np.array(padded, np.int64).T
    return first, second


class Loops:
    """The values that loops and conditionals merge, and what goes into each."""

    def __init__(self, values: Values) -> None:
        self._values = values
        named = values.named
        program, flow = named.program, named.dataflow
        slots = flow.slots
        phi = np.flatnonzero(flow.is_phi & values.is_array)
        row = values.row[phi]
        is_parameter = program.opcode.is_one_of("parameter")[row]
        loop = np.where(is_parameter, named.fusion[row], row)
        of_loop = program.opcode.is_one_of("while")[loop]
        self.phis = phi[of_loop]
        loop, within = loop[of_loop], values.within[self.phis]
        body = program.root[program.callee(loop, "body")]
        self.entering = flow.value[slots.start[program.operand(loop, 0)] + within]
        self.computed = flow.value[slots.start[body] + within]
        self.is_loop_phi = np.zeros(len(flow), bool)
        self.is_loop_phi[self.phis] = True
        self.chosen = phi[~of_loop]

    @cached_property
    def enters(self) -> Mask:
        """Which instructions give what a loop's body gets, carried or the same every time."""
        named = self._values.named
        program = named.program
        step = np.arange(len(program))
        moves = program.rows(*_HANDS_ON)
        step[moves] = program.operand(moves, 0)
        begin = followed(step)
        by_loop = (named.fusion != NONE) & program.opcode.is_one_of("while")[named.fusion]
        found: Mask = (by_loop & (program.parameter_number != NONE))[begin]
        return found

    def branches(self, phis: Ints, moved_from: Ints) -> Iterator[tuple[Ints, Mask, Ints]]:
        """Of each of these merged values the branches' results, one branch after the other.

        Yields the values, whether the branch computes its result itself, and the results.
        `moved_from` says what each value is a copy of.
        """
        program, flow = self._values.named.program, self._values.named.dataflow
        row, within = self._values.row[phis], self._values.within[phis]
        calls = np.argsort(program.call_row, kind="stable")
        first, stop = (np.searchsorted(program.call_row[calls], row, s) for s in ("left", "right"))
        count = stop - first
        for number in range(int(count.max(initial=0))):
            has = count > number
            branch = program.call_computation[calls[first[has] + number]]
            result = flow.value[flow.slots.start[program.root[branch]] + within[has]]
            yield phis[has], self._is_inside(moved_from[result], branch), result

    def _is_inside(self, values: Ints, computations: Ints) -> Mask:
        """Whether each value is computed in a computation, or in what that calls."""
        named = self._values.named
        row = self._values.row[values]
        found = np.zeros(len(values), bool)
        while (row != NONE).any():
            computation = np.where(row != NONE, named.program.computation[row], NONE)
            found |= computation == computations
            row = np.where(row != NONE, named.caller[computation], NONE)
        return found


# What the elements of fusions hold: the instruction inside that computes each.

# These keep the elements, whatever their order and type.
KEEPS_ELEMENTS = ("convert", "bitcast", "copy", "reshape", "transpose")
# These keep some of the elements, or repeat them.
TAKES_ELEMENTS = (*KEEPS_ELEMENTS, "slice", "pad", "broadcast", "dynamic-slice")


@dataclass(frozen=True)
class Fusions:
    """Where the instructions inside of fusions lead.

    Each answer is an instruction for each instruction: the one that is reached when only
    certain instructions are passed through, from the parameters of a nested fusion on to its
    caller's operands. A parameter of an outermost fusion ends each way.
    """

    named: Named

    @cached_property
    def _steps(self) -> Ints:
        """The steps without a choice: parameters, fusions and elements within fusions."""
        named, program = self.named, self.named.program
        step = np.arange(len(program))
        nested = np.flatnonzero(named.is_fused & (named.outer_operand != NONE))
        nested = nested[named.is_fused[named.outer_operand[nested]]]
        step[nested] = named.outer_operand[nested]
        elements = program.rows("get-tuple-element")
        elements = elements[named.is_fused[elements]]
        operand = program.operand(elements, 0)
        tuples = np.where(
            program.opcode.is_one_of("fusion")[operand], named.inner_root[operand], operand
        )
        is_tuple = program.opcode.is_one_of("tuple")[tuples]
        elements, tuples = elements[is_tuple], tuples[is_tuple]
        step[elements] = program.operand(tuples, program.tuple_index[elements])
        return step

    def _through(self, opcodes: tuple[str, ...], allowed: Mask) -> Ints:
        """What is reached from each instruction through these opcodes, where allowed."""
        return followed(self._step_through(opcodes, allowed))

    def _step_through(
        self, opcodes: tuple[str, ...], allowed: Mask, *, fusions: bool = False
    ) -> Ints:
        """One step: as `_steps`, and through these opcodes and fusions, where allowed.

        `fusions` allows all fusions.
        """
        named, program = self.named, self.named.program
        step = self._steps.copy()
        rows = np.flatnonzero(named.is_fused & allowed & program.opcode.is_one_of(*opcodes))
        step[rows] = program.operand(rows, 0)
        nested = program.rows("fusion")
        nested = nested[named.is_fused[nested]]
        nested = nested if fusions else nested[allowed[nested]]
        nested = nested[~program.opcode.is_one_of("tuple")[named.inner_root[nested]]]
        step[nested] = named.inner_root[nested]
        return step

    @cached_property
    def same_elements(self) -> Ints:
        """Through nameless instructions that keep the elements."""
        return self._through(KEEPS_ELEMENTS, ~self.named.has_strong_name)

    @cached_property
    def moved(self) -> Ints:
        """Through bitcasts and copies of any name, and others that keep elements if nameless.

        Bitcasts and copies have the name of what reads them.
        """
        moves = self.named.program.opcode.is_one_of("bitcast", "copy")
        return self._through(KEEPS_ELEMENTS, moves | ~self.named.has_strong_name)

    @cached_property
    def computing(self) -> Ints:
        """The first instruction with a name: behind bitcasts, copies and the roots of fusions.

        If none behind has a name, the last one of these before that has; a bitcast, a copy or
        a fusion may have the name of what is beside it.
        """
        named = self.named
        moves = named.program.opcode.is_one_of("bitcast", "copy")
        step = self._step_through(KEEPS_ELEMENTS, moves | ~named.has_strong_name, fusions=True)
        found = np.where(named.owns, np.arange(len(step)), NONE)
        end = step
        for _ in range(len(step).bit_length()):
            later = found[end]
            found = np.where(later != NONE, later, found)
            further = end[end]
            if np.array_equal(further, end):
                break
            end = further
        return np.where(found == NONE, end, found)

    @cached_property
    def some_elements(self) -> Ints:
        """Through nameless instructions that keep, take or repeat elements."""
        return self._through(TAKES_ELEMENTS, ~self.named.has_strong_name)

    @cached_property
    def sliced_from(self) -> Ints:
        """Through bitcasts and copies, and what keeps the elements: nameless, or named a slice."""
        named = self.named
        # XLA drops the dimension of a single slice by a bitcast, or by a reduce.
        reduces = named.program.opcode.is_one_of("reduce")
        allowed = (~named.has_strong_name & ~reduces) | named.takes_a_slice
        allowed |= named.program.opcode.is_one_of("bitcast", "copy")
        return self._through((*KEEPS_ELEMENTS, "reduce"), allowed)

    @cached_property
    def written(self) -> Ints:
        """Through bitcasts, copies and converts of any name: to a dynamic-update-slice, if any."""
        everything = np.ones(len(self.named.program), bool)
        return self._through(("bitcast", "copy", "convert"), everything)

    @cached_property
    def written_into(self) -> Ints:
        """Back through what a dynamic-update-slice writes into, to the buffer's beginning."""
        named, program = self.named, self.named.program
        step = self.same_elements.copy()
        rows = np.flatnonzero(
            named.is_fused & program.opcode.is_one_of("dynamic-update-slice", "copy", "bitcast")
        )
        step[rows] = program.operand(rows, 0)
        return followed(step)

    @cached_property
    def relayout_of(self) -> Ints:
        """Through what only rearranges, converts, cuts or pads, of any name."""
        everything = np.ones(len(self.named.program), bool)
        return self._through((*KEEPS_ELEMENTS, "slice", "pad", "dynamic-slice"), everything)

    def nearest(self, roots: Ints) -> Ints:
        """The nearest instruction that computes what its name says, back from each root.

        Nearest by the number of steps within the fusion, of equally near ones through the
        larger operands first. NONE where there is none. Constants and broadcasts of one number
        compute nothing.
        """
        is_constant = self.named.program.opcode.is_one_of("constant")
        found = self._nearest(roots, self.named.owns & ~is_constant & ~self.is_fill)
        hit = found != NONE
        found[hit] = self.computing[found[hit]]
        return found

    def weak(self, roots: Ints) -> Ints:
        """The nearest instruction with a wrapper's or a joined name, as in `nearest`."""
        idle = self.named.program.opcode.is_one_of("constant", "parameter")
        return self._nearest(roots, self.named.has_weak_name & ~idle)

    def _nearest(self, roots: Ints, counts: Mask) -> Ints:
        """The nearest instruction that counts, back from each root; NONE where there is none."""
        program = self.named.program
        found = np.full(len(roots), NONE)
        query = np.arange(len(roots))
        rows = roots
        seen = np.array([], np.int64)
        inside = self._through((), ~counts)
        while len(query):
            rows = inside[rows]
            hit = counts[rows]
            # The first of a level is the nearest: the level is in the order of the search.
            first, at = np.unique(query[hit], return_index=True)
            found[first] = rows[hit][at]
            left = found[query] == NONE
            query, rows = self._operands(query[left], rows[left])
            key = query * len(program) + rows
            _, at = np.unique(key, return_index=True)
            at = np.sort(at)
            at = at[~np.isin(key[at], seen)]
            seen = np.concatenate([seen, key[at]])
            query, rows = query[at], rows[at]
        return found

    def _operands(self, query: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """The fused operands of a level's instructions, the larger ones first."""
        named, program = self.named, self.named.program
        # A nested fusion stands for its root.
        nested = program.opcode.is_one_of("fusion")[rows] & named.is_fused[rows]
        rows = np.where(nested, named.inner_root[rows], rows)
        counts = program.operand_count[rows]
        at = joined(program.operand_start[rows], counts)
        place = np.repeat(np.arange(len(rows)), counts)
        operands = program.operands[at]
        order = np.lexsort((-named.bytes[operands], place))
        order = order[named.is_fused[operands[order]]]
        return query[place[order]], operands[order]

    @cached_property
    def repeated(self) -> Ints:
        """Through what keeps or repeats all elements, of any name."""
        everything = np.ones(len(self.named.program), bool)
        return self._through((*KEEPS_ELEMENTS, "broadcast"), everything)

    @cached_property
    def is_fill(self) -> Mask:
        """Which fused instructions repeat one number that is a constant in the fusion."""
        constant = self.named.program.opcode.is_one_of("constant") & self.named.is_scalar
        found: Mask = self.named.is_fused & constant[self.repeated]
        return found

    def from_outside(self, reached: Ints, rows: Ints) -> Ints:
        """The value outside of the fusion that is reached from each of these instructions.

        `reached` is one of the answers above. NONE if an instruction inside is reached.
        """
        named = self.named
        outer = named.outer_operand[reached[rows]]
        found = np.full(len(rows), NONE)
        found[outer != NONE] = named.value_of(outer[outer != NONE])
        return found

    def root_of(self, values: Values, made: Ints) -> Ints:
        """The instruction at the root of the fusion that gives each of these values."""
        program = self.named.program
        root = self.named.inner_root[values.row[made]]
        is_tuple = program.opcode.is_one_of("tuple")[root]
        root[is_tuple] = program.operand(root[is_tuple], values.element[made[is_tuple]])
        return root


# Who reads a buffer first: the instruction with a name, in fusions too.


def first_readers(values: Values, fusions: Fusions, asked: Ints) -> Ints:
    """The first instruction with a strong name that reads each of these values, or NONE.

    Copies of a value count as the value.
    """
    named = values.named
    flow = named.dataflow
    use = np.flatnonzero(np.isin(flow.use_value, asked))
    use = use[np.lexsort((flow.use_operand[use], flow.use_instruction[use], flow.use_value[use]))]
    reader = inner_readers(named, flow.use_instruction[use], flow.use_operand[use])
    # What moves a buffer has the name of the reader behind.
    moves = named.program.opcode.is_one_of("bitcast", "copy", "copy-start")
    reader = np.where(named.owns[reader] & ~moves[flow.use_instruction[use]], reader, NONE)
    first = np.full(len(flow), NONE)
    good = np.flatnonzero(reader != NONE)[::-1]
    first[flow.use_value[use[good]]] = reader[good]
    copies = values.of("copy", "copy-start", "convert", "reshape", "transpose")
    source = values.operand(copies, 0)
    copies, source = copies[source != NONE], source[source != NONE]
    while True:
        further = np.flatnonzero((first[source] == NONE) & (first[copies] != NONE))
        if not len(further):
            break
        first[source[further[::-1]]] = first[copies[further[::-1]]]
    found: Ints = first[asked]
    return found


def inner_readers(named: Named, users: Ints, operands: Ints) -> Ints:
    """Which instruction reads an operand: the user, or the first with a name in a fusion.

    `users` are instructions, `operands` the numbers of their operands. Within a fusion, the
    readers of the parameter that the operand comes in as, through nameless ones.
    """
    program = named.program
    found = users.copy()
    fused = np.flatnonzero(program.opcode.is_one_of("fusion")[users])
    if not len(fused):
        return found
    callee = program.callee(users[fused], "calls")
    parameter = program.parameter_of(callee, operands[fused], users[fused])
    pairs, back = np.unique(parameter, return_inverse=True)
    start, readers = _readers(named)
    nearest = np.full(len(pairs), NONE)
    query, rows = np.arange(len(pairs)), pairs
    while len(query):
        counts = start[rows + 1] - start[rows]
        query = np.repeat(query, counts)
        rows = readers[joined(start[rows], counts)]
        hit = named.owns[rows]
        first, at = np.unique(query[hit], return_index=True)
        nearest[first] = rows[hit][at]
        left = nearest[query] == NONE
        both = np.unique(query[left] * len(program) + rows[left])
        query, rows = np.divmod(both, len(program))
    hit = nearest[back]
    found[fused] = np.where(hit != NONE, hit, users[fused])
    return found


def _readers(named: Named) -> tuple[Ints, Ints]:
    """Of each fused instruction the fused ones that read it, by text order: starts, readers."""
    program = named.program
    at = np.flatnonzero(named.is_fused[program.operand_row])
    operand, reader = program.operands[at], program.operand_row[at]
    order = np.lexsort((reader, operand))
    start = np.searchsorted(operand[order], np.arange(len(program) + 1))
    return start, reader[order]


# Fills: buffers that hold one number everywhere, until something is written into them.

_REPEATS = (*KEEPS_ELEMENTS, "broadcast", "copy-start")


def fills(values: Values, fusions: Fusions) -> tuple[Mask, Ints]:
    """Which values are one constant number everywhere, or memory that nothing has written yet.

    And what each fill repeats: the value one step back, itself at the end.
    """
    named = values.named
    program = named.program
    ends = program.opcode.is_one_of("constant") & named.is_scalar
    is_allocation = np.array(
        [text == "AllocateBuffer" for text in program.custom_call_target.texts] + [False], bool
    )
    ends |= is_allocation[program.custom_call_target.codes]
    is_fill = ends[values.row] & values.is_array
    source = np.arange(len(is_fill))
    repeats = values.of(*_REPEATS)
    # The context of a copy holds nothing of what is copied.
    repeats = repeats[~values.is_context[repeats]]
    entering = values.operand(repeats, 0)
    source[repeats] = np.where(entering != NONE, entering, repeats)
    made = values.of("fusion")
    inner = fusions.repeated[fusions.root_of(values, made)]
    is_fill[made] = fusions.is_fill[inner]
    entering = fusions.from_outside(fusions.repeated, fusions.root_of(values, made))
    source[made] = np.where(entering != NONE, entering, made)
    found: Mask = is_fill[followed(source)]
    return found, source


# Concatenations that XLA makes and takes apart again: combined collectives, halos.

# An operand with at least this share of a concatenation's bytes is what the concatenation is.
_NEARLY_ALL = 7 / 8
_HANDS_PARTS_ON = ("copy", "copy-start", "all-reduce", "all-reduce-start")


class Concatenations:
    """What the parts of nameless concatenations are."""

    def __init__(self, values: Values, fusions: Fusions) -> None:
        self._values, self._fusions = values, fusions
        named = values.named
        program = named.program
        source = np.arange(len(values.row))
        moves = values.of(*_HANDS_PARTS_ON)
        moves = moves[~named.has_strong_name[values.row[moves]]]
        moves = moves[program.operand_count[values.row[moves]] == 1]
        before = values.operand(moves, 0)
        source[moves] = np.where(before != NONE, before, moves)
        self._begin = followed(source)
        made = values.of("fusion")
        row = values.row.copy()
        row[made] = fusions.same_elements[fusions.root_of(values, made)]
        self._row = row

    def piece(self, slices: Ints, values: Ints) -> Ints:
        """The value that each slice takes out of a concatenation of flat arrays, or NONE.

        `slices` are slice instructions, `values` what each of them takes a part of.
        """
        named = self._values.named
        program = named.program
        whole = np.where(values != NONE, self._row[self._begin[values]], 0)
        is_cut = (values != NONE) & program.opcode.is_one_of("concatenate")[whole]
        is_cut &= named.is_flat[whole] & (program.slice_start[slices] != NONE)
        cut = np.flatnonzero(is_cut & ~named.has_strong_name[whole])
        counts = program.operand_count[whole[cut]]
        operand = program.operands[joined(program.operand_start[whole[cut]], counts)]
        owner = np.repeat(cut, counts)
        stop = np.cumsum(named.elements[operand])
        first = np.repeat((stop - named.elements[operand])[np.cumsum(counts) - counts], counts)
        stop -= first
        low = program.slice_start[slices[owner]]
        high = low + named.elements[slices[owner]]
        within = (stop - named.elements[operand] <= low) & (high <= stop)
        found = np.full(len(slices), NONE)
        found[owner[within]] = self._value(operand[within])
        return found

    def nearly_all(self, rows: Ints) -> tuple[Mask, Ints]:
        """Which of these concatenations are nearly all one operand, and that operand's value."""
        named = self._values.named
        program = named.program
        largest = np.full(len(rows), NONE)
        counts = program.operand_count[rows]
        operand = program.operands[joined(program.operand_start[rows], counts)]
        place = np.repeat(np.arange(len(rows)), counts)
        large = named.bytes[operand] >= _NEARLY_ALL * named.bytes[rows[place]]
        large &= program.opcode.is_one_of("concatenate")[rows[place]]
        largest[place[large]] = operand[large]
        value = np.full(len(rows), NONE)
        value[largest != NONE] = named.value_of(largest[largest != NONE])
        return value != NONE, value

    def _value(self, rows: Ints) -> Ints:
        """The value that an operand is, outside of the fusion if it is in one; or NONE."""
        named = self._values.named
        outer = named.outer_operand[self._fusions.same_elements[rows]]
        row = np.where(named.is_fused[rows], outer, rows)
        found = np.full(len(rows), NONE)
        found[row != NONE] = named.value_of(row[row != NONE])
        return found


# Where buffers begin: what writes in place, and what the buffer held before all writes.

_UPDATE = "dynamic-update-slice"


class Writes:
    """The values that a dynamic-update-slice writes, plainly or in a fusion.

    Of each of `values`: `row`, the dynamic-update-slice; `update`, the instruction that it
    writes; `target`, the value that it writes into, NONE if that is made in the fusion.
    """

    def __init__(self, values: Values, loops: Loops, fusions: Fusions, is_fill: Mask) -> None:
        self._values, self._loops, self._fusions = values, loops, fusions
        self._is_fill = is_fill
        program = values.named.program
        plain, made = values.of(_UPDATE), values.of("fusion")
        root = fusions.written[fusions.root_of(values, made)]
        writes = program.opcode.is_one_of(_UPDATE)[root]
        made, root = made[writes], root[writes]
        into = program.operand(root, 0)
        self.values = np.concatenate([plain, made])
        self.row = np.concatenate([values.row[plain], root])
        self.update = program.operand(self.row, 1)
        outer = fusions.from_outside(fusions.written_into, into)
        self.target = np.concatenate([values.operand(plain, 0), outer])
        first = fusions.written_into[into]
        source = fusions.from_outside(fusions.repeated, first)
        filled = fusions.is_fill[first] | (is_fill[source] & (source != NONE))
        self._filled_inside = np.concatenate([np.zeros(len(plain), bool), filled])

    @cached_property
    def begin(self) -> Ints:
        """Of each of `values`: what its buffer held at first; NONE if that is in the fusion.

        Through copies, writes and nameless changes of layout or type, and of loops through
        what enters.
        """
        found: Ints = np.where(self.target == NONE, NONE, self._beginning[self.target])
        return found

    @cached_property
    def begins_filled(self) -> Mask:
        """Of each of `values`: whether its buffer held one number everywhere at first."""
        inside = np.zeros(len(self._is_fill), bool)
        inside[self.values[self._filled_inside]] = True
        # A way back ends at a write whose fusion makes the fill.
        found: Mask = self._filled_inside | (
            (self.begin != NONE) & (self._is_fill | inside)[self.begin]
        )
        return found

    @cached_property
    def _beginning(self) -> Ints:
        """Where each value's buffer begins, itself if nothing is known."""
        values = self._values
        source = self._relaid.copy()
        self._redirect(source, self._loops.phis, self._loops.entering)
        nameless = ~values.named.has_strong_name[values.row]
        pieces = self._pieces[nameless[self._pieces]]
        self._redirect(source, pieces, values.operand(pieces, 0))
        self._redirect(source, self.values, self.target)
        return followed(source)

    @cached_property
    def _relaid(self) -> Ints:
        """One step through copies and nameless changes of layout or type."""
        values = self._values
        source = self._copies.copy()
        nameless = ~values.named.has_strong_name[values.row]
        kept = values.of("convert", "reshape", "transpose")
        self._redirect(source, kept[nameless[kept]], values.operand(kept[nameless[kept]], 0))
        made = values.of("fusion")
        made = made[nameless[made]]
        inner = self._fusions.root_of(values, made)
        self._redirect(source, made, self._fusions.from_outside(self._fusions.same_elements, inner))
        return source

    @cached_property
    def _pieces(self) -> Ints:
        """Slices, and the arrays that XLA puts together again from slices."""
        values = self._values
        target = values.named.program.custom_call_target
        joins = target.is_one_of("ConcatBitcast")[values.row] & values.is_array
        return np.concatenate([values.of("slice"), np.flatnonzero(joins)])

    @cached_property
    def relaid_from(self) -> Ints:
        """What each value is, but for copies and nameless changes of layout or type."""
        return followed(self._relaid)

    @cached_property
    def relayout_of(self) -> Ints:
        """What each value is, cut, padded, converted or laid out another way.

        A scan cuts its stacked inputs apart, one layer at a time.
        """
        values = self._values
        source = self._moves.copy()
        found = values.of(*KEEPS_ELEMENTS, "slice", "pad", "dynamic-slice")
        self._redirect(source, found, values.operand(found, 0))
        made = values.of("fusion")
        inner = self._fusions.root_of(values, made)
        self._redirect(source, made, self._fusions.from_outside(self._fusions.relayout_of, inner))
        return followed(source)

    @cached_property
    def _copies(self) -> Ints:
        source = np.arange(len(self._is_fill))
        copies = self._values.of("copy", "copy-start")
        self._redirect(source, copies, self._values.operand(copies, 0))
        return source

    @cached_property
    def _moves(self) -> Ints:
        """One step through copies, and from loops to what enters them."""
        source = self._copies.copy()
        self._redirect(source, self._loops.phis, self._loops.entering)
        return source

    @staticmethod
    def _redirect(source: Ints, values: Ints, to: Ints) -> None:
        """Point values to others, where there are others."""
        source[values] = np.where(to != NONE, to, source[values])


# Where to look for a value's origin: at most a few other values, in an order.

# How an origin was found. The first that applies on the way is reported, `own` least of all.
RULES = (
    "argument",
    "own",
    "moved",
    "loop",
    "fused",
    "becomes",
    "read",
    "operand",
    "weak",
)
ARGUMENT, OWN, MOVED, LOOP, FUSED, BECOMES, READ, OPERAND, WEAK = range(len(RULES))


@dataclass
class Ways:
    """Of each value: the values that may tell its origin, and what it says itself.

    A value either ends the search, or has ways: values to follow, the first one first. A way
    fails if it ends without an origin, if it leads back, or if it ends at a fill and `no_fill`
    says so. After the last way `owner` stands in, with `owner_rule`, if there is one. `rule` is
    reported for what a way finds. `is_loop` marks what loops carry. Of a value without ways,
    `owner` is the origin; a fill without ways ends the search open.
    """

    count: int
    rule: Ints = field(init=False)
    owner: Ints = field(init=False)
    owner_rule: Ints = field(init=False)
    is_fill: Mask = field(init=False)
    is_loop: Mask = field(init=False)
    _values: list[Ints] = field(default_factory=list)
    _targets: list[Ints] = field(default_factory=list)
    _no_fill: list[Mask] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rule = np.full(self.count, OWN, np.int8)
        self.owner = np.full(self.count, NONE)
        self.owner_rule = np.full(self.count, OWN, np.int8)
        self.is_fill = np.zeros(self.count, bool)
        self.is_loop = np.zeros(self.count, bool)

    def own(self, values: Ints, rows: Ints, rule: Ints | int) -> None:
        """Let instructions be what values fall back on."""
        self.owner[values] = rows
        self.owner_rule[values] = rule

    def follow(self, values: Ints, targets: Ints, *, no_fill: bool = False) -> None:
        """Add a way to each of these values, after the ways that it has."""
        there = targets != NONE
        values, targets = values[there], targets[there]
        self._values.append(values)
        self._targets.append(targets)
        self._no_fill.append(np.full(len(values), no_fill))

    def listed(self) -> tuple[Ints, Ints, Mask]:
        """All ways by value and order: where each value's ways start, targets, no_fill."""
        values = np.concatenate([*self._values, np.array([], np.int64)])
        order = np.argsort(values, kind="stable")
        counts = np.bincount(values, minlength=self.count)
        targets = np.concatenate([*self._targets, np.array([], np.int64)])[order]
        no_fill = np.concatenate([*self._no_fill, np.array([], bool)])[order]
        return starts_of(counts), targets, no_fill


# The ways of each value to its origin, opcode by opcode.
#
# An opcode without a rule here follows the last rule: its name owns, else its largest operand is
# asked.

# Without a name of their own these only rearrange, cut or repeat their operand.
_REARRANGES = ("convert", "transpose", "reshape", "slice", "reverse", "pad", "broadcast",
               "reduce-precision", "dynamic-slice")  # fmt: skip
_REDUCES = ("all-reduce", "all-reduce-start", "reduce-scatter")


class Steps:
    """Collects the ways of all values.

    Each rule takes its values out of those that are left, so that the first rule that applies
    to a value is the only one.
    """

    def __init__(self, named: Named) -> None:
        self.named = named
        self.values = Values(named)
        self.loops = Loops(self.values)
        self.fusions = Fusions(named)
        self.is_fill, self.repeats = fills(self.values, self.fusions)
        self.concatenations = Concatenations(self.values, self.fusions)
        self.writes = Writes(self.values, self.loops, self.fusions, self.is_fill)
        self.ways = Ways(len(named.dataflow))
        self._left = self.values.is_array.copy()
        self._take(np.flatnonzero(self.values.is_context))
        self._open_fills()
        self._arguments()
        self._merged()
        self._copies()
        self._updates()
        self._slices()
        self._gathers()
        self._reduces()
        self._fusions()
        self._others()

    def _take(self, values: Ints) -> Ints:
        """Those of the values that no rule has taken, taken from now on."""
        values = values[self._left[values]]
        self._left[values] = False
        return values

    def _of(self, *opcodes: str) -> Ints:
        return self._take(self.values.of(*opcodes))

    def _fall_back_on_names(self, values: Ints) -> None:
        """Let the values' own instructions stand in: by what they compute, else by any name."""
        row = self.values.row[values]
        argument = self.named.named_argument[row]
        weak = self.named.has_weak_name[row]
        strong = self.named.owns[row]
        owner = np.where(strong | weak, row, argument)
        rule = np.where(strong, OWN, np.where(argument != NONE, MOVED, WEAK))
        self.ways.own(values, owner, rule)

    def _open_fills(self) -> None:
        found = self._take(np.flatnonzero(self.is_fill))
        self.ways.is_fill[found] = True

    def _arguments(self) -> None:
        found = self._take(np.flatnonzero(self.named.is_entry_parameter[self.values.row]))
        self.ways.own(found, self.values.row[found], ARGUMENT)

    def _merged(self) -> None:
        """What a loop computes in its body, else what enters; of a conditional the branches."""
        loops = self.loops
        phis = self._take(loops.phis)
        at = np.isin(loops.phis, phis)
        self._fall_back_on_names(phis)
        self.ways.follow(phis, loops.computed[at], no_fill=True)
        self.ways.follow(phis, loops.entering[at])
        self.ways.rule[phis] = LOOP
        self.ways.is_loop[phis] = True
        chosen = self._take(loops.chosen)
        self._fall_back_on_names(chosen)
        self.ways.rule[chosen] = LOOP
        results = list(loops.branches(chosen, self.writes.relaid_from))
        for computing in (True, False):
            for phi, computes, value in results:
                asked = computes == computing
                self.ways.follow(phi[asked], value[asked], no_fill=True)
        # If all branches give a fill, the first one's.
        if results:
            self.ways.follow(results[0][0], results[0][2])

    def _copies(self) -> None:
        """A copy's own name is its reader's: it counts only if nothing else does."""
        copies = self._of("copy")
        starts = self._of("copy-start")
        copies = np.concatenate([copies, starts])
        self.ways.follow(copies, self.values.operand(copies, 0))
        self.ways.rule[copies] = MOVED
        self._fall_back_on_names(copies)

    def _updates(self) -> None:
        """A cache that is updated in place is the argument; a stack is what is put into it."""
        writes = self.writes
        found = self._take(writes.values)
        at = np.isin(writes.values, found)
        target, begin, update = writes.target[at], writes.begin[at], writes.update[at]
        carried = (target != NONE) & self.loops.is_loop_phi[writes.relaid_from[target]]
        rule = np.where(carried, LOOP, MOVED)
        first_row = self.values.row[begin]
        is_argument = (begin != NONE) & self.named.is_entry_parameter[first_row]
        self._fall_back_on_names(found)
        self.ways.own(found[is_argument], first_row[is_argument], rule[is_argument])
        stacked = ~is_argument & (writes.begins_filled[at] | carried)
        self._held(found[stacked], self.fusions.moved[update[stacked]], rule[stacked])
        rest = ~is_argument & ~stacked
        inner = np.where(rest, writes.row[at], 0)
        fused = rest & self.named.owns[inner] & self.named.is_fused[inner]
        row = self.values.row[found]
        is_its_own = self.named.owns[row] & self.values.is_single[found]
        self.ways.own(found[fused], inner[fused], np.where(is_its_own, OWN, FUSED)[fused])
        rest &= ~fused & ~self.named.owns[row]
        self.ways.follow(found[rest], target[rest])
        self.ways.rule[found[rest]] = MOVED

    def _slices(self) -> None:
        """A scan takes its inputs apart: the slice is of what was stacked."""
        values, program = self.values, self.named.program
        plain = values.of("dynamic-slice")
        made = values.of("fusion")
        inner = self.fusions.root_of(values, made)
        scanned = self._scanned(inner)
        row = program.operand(values.row[plain], 0)
        of_loop = self.loops.enters[row] & ~self._is_constant(self.named.value_of(row))
        for found, source in (
            (made[scanned != NONE], scanned[scanned != NONE]),
            (plain[of_loop], self.named.value_of(row[of_loop])),
        ):
            left = self._left[found]
            taken = self._take(found)
            self._fall_back_on_names(taken)
            self.ways.follow(taken, source[left])
            self.ways.rule[taken] = LOOP

    def _scanned(self, inner: Ints) -> Ints:
        """The value outside of a loop's fusion that each fused instruction takes a slice of.

        NONE for what is no slice of what the loop's body gets.
        """
        program, fusions = self.named.program, self.fusions
        root = fusions.sliced_from[inner]
        slices = np.flatnonzero(program.opcode.is_one_of("dynamic-slice")[root])
        outer = self.named.outer_operand[fusions.sliced_from[program.operand(root[slices], 0)]]
        enters = (outer != NONE) & self.loops.enters[outer]
        slices, whole = slices[enters], self.named.value_of(outer[enters])
        tells = ~self._is_constant(whole)
        found = np.full(len(inner), NONE)
        found[slices[tells]] = whole[tells]
        return found

    def _is_constant(self, values: Ints) -> Mask:
        """Which values are constants: the name of a slice says more than a constant's."""
        row = self.values.row[values]
        found: Mask = self.named.program.opcode.is_one_of("constant")[row] & (values != NONE)
        return found

    def _gathers(self) -> None:
        """A gathered parameter is the parameter; another gathered array is its reader's."""
        found = self._of(*GATHERS)
        source = self.values.operand(found, self.values.element[found])
        begin = np.where(source != NONE, self.writes.relayout_of[source], NONE)
        row = self.values.row[begin]
        is_argument = (begin != NONE) & self.named.is_entry_parameter[row]
        self._fall_back_on_names(found)
        self.ways.own(found[is_argument], row[is_argument], ARGUMENT)
        nameless = ~is_argument & ~self.named.owns[self.values.row[found]]
        self.ways.follow(found[nameless], source[nameless])
        self.ways.rule[found[nameless]] = MOVED

    def _reduces(self) -> None:
        """One name cannot say what several reduced arrays are."""
        found = self._of(*_REDUCES)
        row = self.values.row[found]
        self._fall_back_on_names(found)
        asks = ~self.named.owns[row] | (self.named.program.operand_count[row] > 1)
        asking = found[asks]
        self.ways.follow(asking, self.values.operand(asking, self.values.element[asking]))
        self.ways.rule[asking] = MOVED

    def _fusions(self) -> None:
        """The first instruction with a name, back from the root that gives the element."""
        named, fusions = self.named, self.fusions
        found = self._of("fusion")
        row = self.values.row[found]
        single = self.values.is_single[found] & named.owns[row]
        self._fall_back_on_names(found)
        root = fusions.root_of(self.values, found)
        first = fusions.computing[root]
        known = named.owns[first]
        self.ways.own(found[known], first[known], np.where(single[known], OWN, FUSED))
        found, root, single = found[~known], root[~known], single[~known]
        found, root = found[~single], root[~single]
        self._held(found, root, np.full(len(found), FUSED))
        passed = fusions.from_outside(fusions.some_elements, root)
        unknown = (self.ways.owner[found] == NONE) | (self.ways.owner_rule[found] == WEAK)
        unknown &= passed == NONE
        nameless = unknown & (self.ways.owner[found] == NONE)
        self.ways.own(found[nameless], fusions.weak(root[nameless]), WEAK)
        self._ask_operands(found[unknown])

    def _held(self, values: Ints, inner: Ints, rule: Ints) -> None:
        """Let values be what fused or other instructions hold.

        `inner` is an instruction for each: if it is fused, the nearest name inside owns, unless
        the instruction only moves an operand of the fusion; else its value is followed.
        """
        named, fusions = self.named, self.fusions
        values_of = np.where(named.is_fused[inner], NONE, named.value_of(inner))
        passed = fusions.from_outside(fusions.some_elements, inner)
        piece = self.concatenations.piece(fusions.same_elements[inner], passed)
        passed = np.where(piece != NONE, piece, passed)
        first = fusions.computing[inner]
        known = named.is_fused[inner] & named.owns[first]
        sliced = self._scanned(inner)
        known &= sliced == NONE
        passed = np.where(known, NONE, np.where(sliced != NONE, sliced, passed))
        follows = np.where(values_of != NONE, values_of, passed)
        self.ways.own(values[known], first[known], rule[known])
        self.ways.follow(values, follows)
        self.ways.rule[values] = rule
        unknown = named.is_fused[inner] & ~known & (passed == NONE)
        nearest = fusions.nearest(inner[unknown])
        hit = nearest != NONE
        self.ways.own(values[unknown][hit], nearest[hit], rule[unknown][hit])

    def _others(self) -> None:
        """A name owns; without one, what rearranges is its operand, and others guess."""
        named, values = self.named, self.values
        found = self._take(np.flatnonzero(self._left))
        row = values.row[found]
        self._fall_back_on_names(found)
        asks = ~named.owns[row] & (named.named_argument[row] == NONE)
        found, row = found[asks], row[asks]
        rearranges = named.program.opcode.is_one_of(*_REARRANGES)[row]
        # XLA puts the pieces of one array together again.
        rearranges |= named.program.custom_call_target.is_one_of("ConcatBitcast")[row]
        is_whole, whole = self.concatenations.nearly_all(row)
        rearranges |= is_whole
        moved, source = found[rearranges], np.where(is_whole, whole, values.operand(found, 0))
        source = source[rearranges]
        piece = self.concatenations.piece(row[rearranges], source)
        self.ways.follow(moved, np.where(piece != NONE, piece, source))
        self.ways.rule[moved] = MOVED
        self._ask_operands(found[~rearranges & (named.program.parameter_number[row] == NONE)])

    def _ask_operands(self, found: Ints) -> None:
        """Guess: follow the operands, the largest first, that are no fills."""
        program = self.named.program
        row = self.values.row[found]
        counts = program.operand_count[row]
        value = np.repeat(found, counts)
        operand = program.operands[joined(program.operand_start[row], counts)]
        source = self.named.value_of(operand)
        good = (source != NONE) & ~self.is_fill[source] & self.values.is_array[source]
        value, operand, source = value[good], operand[good], source[good]
        order = np.lexsort((-self.named.bytes[operand], value))
        self.ways.follow(value[order], source[order], no_fill=True)
        self.ways.rule[found] = OPERAND


# Follows the ways of all values at once to the origins.


@dataclass(frozen=True)
class Found:
    """Of each value: the instruction that is its origin, or NONE, and the rule.

    `fill` is the value at which the search ended if that is a fill, else NONE.
    """

    origin: Ints
    rule: Ints
    fill: Ints


def search(ways: Ways) -> Found:
    """Follow every value's first way; where it fails, the next one.

    Of the values on a way that fails, the last one that has another way takes it, until no way
    fails or none is left: values nearer to the end know better. Of values that lead to each
    other in a circle, the loops take their next way: what enters.
    """
    start, targets, no_fill = ways.listed()
    numbers = np.arange(ways.count)
    way, last = start[:-1].copy(), start[1:]
    while True:
        ended = way == last
        at = np.minimum(way, max(len(targets) - 1, 0))
        follows = np.where(ended, numbers, targets[at] if len(targets) else numbers)
        end, circles = _followed(follows, ended)
        is_fill = ended[end] & ways.is_fill[end]
        fails = ~is_fill & (circles | (ways.owner[end] == NONE))
        # Who may still choose: with a way or an owner left, or who must not end at a fill.
        picks = no_fill[at] if len(targets) else np.zeros(ways.count, bool)
        other = ~ended & ((way + 1 < last) | (ways.owner != NONE))
        more = other | (~ended & picks)
        chooses = other & fails & ~circles
        picky = more & is_fill & picks
        turning = _last_of(follows, chooses | picky, (fails & ~circles) | is_fill)
        rank = np.where(more, np.where(ways.is_loop, 0, 1), 2)
        turning = np.union1d(turning, _leaving(follows, circles, rank))
        if not len(turning):
            break
        way[turning] += 1
    origin = np.where(is_fill | circles, NONE, ways.owner[end])
    return Found(origin, _rules(ways, follows, end, ended), np.where(is_fill, end, NONE))


def _followed(follows: Ints, ended: Mask) -> tuple[Ints, Mask]:
    """Where each value's way ends, and which values lead into a circle instead."""
    end = follows
    for _ in range(max(1, len(follows).bit_length())):
        further = end[end]
        if np.array_equal(further, end):
            break
        end = further
    return end, ~ended[end]


def _last_of(follows: Ints, chosen: Mask, starting: Mask) -> Ints:
    """The last chosen value on the way of each value that counts, each once."""
    if not (chosen & starting).any():
        return np.array([], np.int64)
    last = np.where(chosen, np.arange(len(follows)), NONE)
    step = follows
    for _ in range(len(follows).bit_length()):
        later = last[step]
        last = np.where(later != NONE, later, last)
        step = step[step]
    return np.unique(last[starting & (last != NONE)])


def _leaving(follows: Ints, circles: Mask, rank: Ints) -> Ints:
    """Of the values that lie on each circle those of the lowest rank."""
    at, step = np.flatnonzero(circles), follows
    lowest = rank.copy()
    for _ in range(len(follows).bit_length() if len(at) else 0):
        # In the end only what lies on a circle is left, and all of a circle knows its lowest.
        at = np.unique(step[at])
        lowest = np.minimum(lowest, lowest[step])
        step = step[step]
    found: Ints = at[rank[at] == lowest[at]]
    return found


def _rules(ways: Ways, follows: Ints, end: Ints, ended: Mask) -> Ints:
    """The rule of the first value on each way that is not `own`; else that of the end.

    A guess stays a guess, wherever on the way it was made.
    """
    rule = np.where(ended, OWN, ways.rule)
    guessed = ~ended & (ways.rule == OPERAND)
    step = follows
    for _ in range(len(follows).bit_length()):
        rule = np.where(rule == OWN, rule[step], rule)
        guessed |= guessed[step]
        step = step[step]
    rule = np.where(rule == OWN, ways.owner_rule[end], rule)
    rule = np.where(guessed, OPERAND, rule)
    return np.where(ways.owner_rule[end] == WEAK, WEAK, rule)


# The origin of each value: the instruction whose result the value holds.

_MOVES = ("copy", "copy-start")


@dataclass(frozen=True)
class Origins:
    """Of each value: `row`, the instruction that is its origin, and `rule`, a number of RULES.

    Both are NONE where nothing says what the value is.
    """

    row: Ints
    rule: Ints


def find_origins(named: Named, alias_set: Ints) -> Origins:
    """Work out the origin of every array; a tuple's table has none.

    `alias_set` is the smallest number of the values that must share memory with each value.
    """
    steps = Steps(named)
    found = search(steps.ways)
    row, rule = found.origin.copy(), found.rule.astype(np.int64)
    becomes = _becomes(alias_set, row)
    _fill_in(steps, row, rule, becomes)
    # What leads to a fill is what its own buffer becomes, else what the fill is.
    ends = np.flatnonzero((found.fill != NONE) & ~steps.is_fill)
    own = becomes[ends]
    row[ends] = np.where(own != NONE, own, row[found.fill[ends]])
    late = np.where(own != NONE, BECOMES, rule[found.fill[ends]])
    is_weak = (own == NONE) & (rule[found.fill[ends]] == WEAK)
    rule[ends] = np.where((rule[ends] == OWN) | is_weak, late, rule[ends])
    return Origins(row, np.where(row == NONE, NONE, rule))


def _fill_in(steps: Steps, row: Ints, rule: Ints, becomes: Ints) -> None:
    """The fills: what the buffer becomes, else what the name says, else what reads the fill."""
    named, values, fusions = steps.named, steps.values, steps.fusions
    fills = np.flatnonzero(steps.is_fill)
    made = values.row[fills]
    name, how = _fill_names(steps, fills)
    moves = named.program.opcode.is_one_of(*_MOVES)[made]
    for answer, reported in (
        (becomes[fills], BECOMES),
        (np.where(moves, NONE, name[fills]), how[fills]),
        (_behind(steps, name)[fills], MOVED),
        (np.where(named.owns[made], made, NONE), OWN),
    ):
        _answer(row, rule, fills, answer, reported)
    if (row[fills] == NONE).any():
        _answer(row, rule, fills, first_readers(values, fusions, fills), READ)
    _answer(row, rule, fills, np.where(named.has_weak_name[made], made, NONE), WEAK)


def _fill_names(steps: Steps, fills: Ints) -> tuple[Ints, Ints]:
    """What the name of each fill says, in a fusion first what is inside; and the rule.

    A copy has the name of what reads it, and a constant that of any of its readers.
    """
    named, values = steps.named, steps.values
    row = values.row[fills]
    fused = named.inner_root[row] != NONE
    inner = row.copy()
    inner[fused] = steps.fusions.computing[steps.fusions.root_of(values, fills[fused])]
    is_constant = named.program.opcode.is_one_of("constant")
    inner = np.where(named.owns[inner] & ~(is_constant[inner] & fused), inner, row)
    nameless = ~named.owns[inner] | named.program.opcode.is_one_of(*_MOVES)[row]
    name = np.full(len(values.row), NONE)
    name[fills] = np.where(nameless, NONE, inner)
    how = np.full(len(values.row), OWN)
    how[fills[(inner != row) & ~(named.owns[row] & values.is_single[fills])]] = FUSED
    return name, how


def _behind(steps: Steps, name: Ints) -> Ints:
    """The first name on the way from each fill to what it repeats, the constant not counted."""
    is_constant = steps.named.program.opcode.is_one_of("constant")[steps.values.row]
    found, step = np.where(is_constant, NONE, name), steps.repeats
    for _ in range(len(step).bit_length()):
        found = np.where(found == NONE, found[step], found)
        step = step[step]
    return found


def _answer(row: Ints, rule: Ints, values: Ints, answer: Ints, reported: Ints | int) -> None:
    """Take an answer for the values that have none yet."""
    takes = (row[values] == NONE) & (answer != NONE)
    row[values[takes]] = answer[takes]
    rule[values[takes]] = reported if isinstance(reported, int) else reported[takes]


def _becomes(alias_set: Ints, row: Ints) -> Ints:
    """The first origin that is known within each value's alias set."""
    known = np.flatnonzero(row != NONE)[::-1]
    first = np.full(len(row), NONE)
    first[alias_set[known]] = row[known]
    found: Ints = first[alias_set]
    return found
