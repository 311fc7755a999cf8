"""The origin of each value: the instruction that owns it, because the value holds its result.

The owner is not always the instruction that makes the value. A copy makes a value, but the owner
is what computed the copied array.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from .columns.dataflow import Dataflow
from .columns.program import NONE, Ints, Mask, NumberedProgram
from .errors import DumpError
from .op_names import Kind, OpNames
from .runs import followed, joined, starts_of
from .shapes import ArrayShape, ShapeTrees, flatten_shapes, logical_bytes

# Names: which instructions say what they compute.

# These carry the name of their neighbours and compute nothing themselves.
_NEVER_OWN = ("while", "conditional", "call", "tuple", "get-tuple-element", "parameter")
# The primitives with which JAX takes a slice out of a stacked array.
_SLICING = ("dynamic_slice", "squeeze", "dynamic_index_in_dim")
# More bytes than any machine has, yet sums of such numbers fit 64 bits.
_MOST = 2**50


@dataclass(frozen=True)
class Named:
    """Programs with their values and op_names: the input of the owner rules.

    `caller` is the instruction that calls each computation, NONE for an entry.
    """

    program: NumberedProgram
    dataflow: Dataflow
    names: OpNames
    caller: Ints

    @cached_property
    def has_strong_name(self) -> Mask:
        """Which instructions have a name that says what they compute."""
        is_strong: Mask = self.names.kind == Kind.STRONG
        return is_strong

    @cached_property
    def owns(self) -> Mask:
        """Which instructions compute what their name says, so that they can own values."""
        return self.has_strong_name & ~self.program.opcode.is_one_of(*_NEVER_OWN)

    @cached_property
    def has_weak_name(self) -> Mask:
        """Which instructions have only a wrapper's or a joined name."""
        is_weak: Mask = np.isin(self.names.kind, (Kind.WEAK, Kind.JOINED))
        return is_weak

    @cached_property
    def takes_a_slice(self) -> Mask:
        """Instructions whose op_name ends in a slicing primitive of JAX."""
        primitives = (text.partition(";")[0].rpartition("/")[2] for text in self.names.texts)
        is_slicing = np.array(
            [text.partition("[")[0] in _SLICING for text in primitives] + [False], bool
        )
        takes_slice: Mask = is_slicing[self.names.code]
        return takes_slice

    @cached_property
    def is_entry_parameter(self) -> Mask:
        """Which instructions are the program's arguments."""
        is_argument: Mask = (self.program.parameter_number != NONE) & self.program.is_entry
        return is_argument

    @cached_property
    def named_argument(self) -> Ints:
        """The argument whose name each instruction carries; NONE for constants and the nameless."""
        argument_of_name = np.full(len(self.names.texts) + 1, NONE)
        arguments = np.flatnonzero(self.is_entry_parameter)[::-1]
        argument_of_name[self.names.code[arguments]] = arguments
        argument_of_name[NONE] = NONE
        has_its_name = self.names.kind == Kind.ARGUMENT
        has_its_name &= ~self.program.opcode.is_one_of("constant")
        argument: Ints = np.where(has_its_name, argument_of_name[self.names.code], NONE)
        return argument

    @cached_property
    def outer_operand(self) -> Ints:
        """The fusion's operand that each parameter of its computation stands for, else NONE."""
        program = self.program
        operand = np.full(len(program), NONE)
        parameters = np.flatnonzero(self.is_fused & (program.parameter_number != NONE))
        operand[parameters] = program.operand(
            self.caller_instruction[parameters], program.parameter_number[parameters]
        )
        return operand

    @cached_property
    def caller_instruction(self) -> Ints:
        """The instruction that calls each instruction's computation."""
        instruction: Ints = self.caller[self.program.computation]
        return instruction

    @cached_property
    def is_fused(self) -> Mask:
        """Which instructions are part of a fusion."""
        caller = self.caller_instruction
        is_fused: Mask = (caller != NONE) & self.program.opcode.is_one_of("fusion")[caller]
        return is_fused

    @cached_property
    def inner_root(self) -> Ints:
        """The root of each fusion's computation; NONE for other instructions."""
        root = np.full(len(self.program), NONE)
        fusions = self.program.rows("fusion")
        root[fusions] = self.program.called_root(fusions)
        return root

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of each instruction's array; for a tuple, of its largest array."""
        trees = self._shapes
        array_bytes = np.array([bytes_of(array) for array in trees.arrays] + [0], np.int64)
        largest_array = np.maximum.reduceat(array_bytes[trees.array], trees.start[:-1])
        by_instruction: Ints = largest_array[self.program.shape.codes]
        return by_instruction

    @cached_property
    def elements(self) -> Ints:
        """How many elements the array of each instruction has; 0 for a tuple."""
        shapes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        counts = [elements_of(shape) if isinstance(shape, ArrayShape) else 0 for shape in shapes]
        by_instruction: Ints = np.array(counts, np.int64)[self.program.shape.codes]
        return by_instruction

    @cached_property
    def _shapes(self) -> ShapeTrees:
        try:
            return flatten_shapes(self.program.shape.texts)
        except ValueError as error:
            raise DumpError(str(error)) from None

    @cached_property
    def is_scalar(self) -> Mask:
        """Which instructions give a scalar."""
        shapes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        is_scalar = [isinstance(shape, ArrayShape) and shape.dimensions == () for shape in shapes]
        by_instruction: Mask = np.array(is_scalar, bool)[self.program.shape.codes]
        return by_instruction

    @cached_property
    def is_flat(self) -> Mask:
        """Which instructions give an array of one dimension."""
        shapes = (self._shapes.shapes[node] for node in self._shapes.start[:-1])
        is_flat = [isinstance(shape, ArrayShape) and len(shape.dimensions) == 1 for shape in shapes]
        by_instruction: Mask = np.array(is_flat, bool)[self.program.shape.codes]
        return by_instruction

    def value_of(self, rows: Ints) -> Ints:
        """The value of each instruction's whole result; NONE inside of fusions: no values there."""
        slots = self.dataflow.slots
        has_slots = slots.count[rows] > 0
        slot = np.where(has_slots, slots.start[rows], 0)
        value: Ints = np.where(has_slots, self.dataflow.value[slot], NONE)
        return value


def bytes_of(array: ArrayShape) -> int:
    """An array's bytes without padding; 0 if it has no bound."""
    try:
        return min(logical_bytes(array), _MOST)
    except ValueError:
        return 0


def elements_of(array: ArrayShape) -> int:
    """How many elements an array has; 0 if it has no bound."""
    return max(0, min(prod(array.dimensions), _MOST))


# Values: the arrays of a program, and the phis of loops and conditionals.

COPIES = ("copy", "copy-start")
# The collectives that compute nothing: they give arrays of other devices, alone or joined.
_GATHERS = ("all-gather", "all-to-all", "collective-permute", "collective-broadcast",
            "ragged-all-to-all")  # fmt: skip
# The shape of these is `(operands, results, contexts…)`, that of all-reduce-start the results.
_GATHER_STARTS = tuple(f"{opcode}-start" for opcode in _GATHERS)
GATHERS = (*_GATHERS, *_GATHER_STARTS)
# The result is the first operand, an element of it, or a copy of it.
_FORWARDS_OR_COPIES = (*COPIES, "copy-done", "get-tuple-element", "bitcast", "opt-barrier",
                       "optimization-barrier", "domain", "add-dependency")  # fmt: skip
_REDUCE_STARTS = ("all-reduce-start",)


class Values:
    """Each value's instruction, its place in the instruction's shape, and what the value is.

    By value: `row`, the instruction that makes the value; `slot_in_shape`, counted from the
    instruction's first slot; `element`, the number of the instruction's result, and of the
    operand that belongs to it; `is_array`, false for a tuple's table; `is_single`, whether the
    instruction has no other slot; `is_context`, whether an asynchronous operation keeps its
    state there.
    """

    def __init__(self, named: Named) -> None:
        program, flow = named.program, named.dataflow
        slots = flow.slots
        self.named = named
        self.row = flow.instruction
        self.slot_in_shape = flow.defined_at - slots.start[self.row]
        self.is_array = slots.array[flow.defined_at] != NONE
        first, second = _element_numbers(slots.trees.index_texts)
        code = slots.trees.index[slots.node[flow.defined_at]]
        is_gather_start = program.opcode.is_one_of(*_GATHER_STARTS)[self.row]
        # Element 0 of such a start holds the operands, element 1 the results.
        self.element = np.where(is_gather_start, second[code], first[code])
        self.is_single = slots.count[self.row] == 1
        is_start = np.array([text.endswith("-start") for text in program.opcode.texts] + [False])
        is_start = is_start[program.opcode.codes] & ~program.opcode.is_one_of(*_REDUCE_STARTS)
        # Elements 2 and up of an asynchronous start are context buffers.
        self.is_context = is_start[self.row] & (first[code] > 1)

    def of(self, *opcodes: str) -> Ints:
        """The arrays that instructions with one of these opcodes define."""
        has_opcode = self.named.program.opcode.is_one_of(*opcodes)[self.row]
        return np.flatnonzero(has_opcode & self.is_array)

    def operand(self, values: Ints, number: Ints | int) -> Ints:
        """The value of operand `number` of each value's instruction; NONE if there is none."""
        program = self.named.program
        row = self.row[values]
        has_operand = program.operand_count[row] > number
        place = program.operand_start[row] + np.where(has_operand, number, 0)
        operand = np.full(len(values), NONE)
        operand[has_operand] = self.named.value_of(program.operands[place[has_operand]])
        return operand

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of each array's elements, without padding; 0 for a tuple."""
        return self._by_array([bytes_of(array) for array in self._arrays])

    @cached_property
    def elements(self) -> Ints:
        """How many elements each array has; 0 for a tuple."""
        return self._by_array([elements_of(array) for array in self._arrays])

    @cached_property
    def space(self) -> Ints:
        """The memory space of each array; 0 for a tuple."""
        return self._by_array([array.memory_space for array in self._arrays])

    @cached_property
    def is_float(self) -> Mask:
        """Which arrays hold floating-point numbers."""
        is_float = [int(array.element_type.startswith(("f", "bf"))) for array in self._arrays]
        return self._by_array(is_float) > 0

    def plain_shape(self, slots: Ints) -> Ints:
        """A number for the element type and dimensions at each of these slots; 0 for a tuple."""
        codes: dict[tuple[str, tuple[int, ...]], int] = {}
        shapes = ((array.element_type, array.dimensions) for array in self._arrays)
        numbers = [codes.setdefault(shape, len(codes) + 1) for shape in shapes]
        by_slot: Ints = np.array([*numbers, 0], np.int64)[self.named.dataflow.slots.array[slots]]
        return by_slot

    @property
    def _arrays(self) -> list[ArrayShape]:
        return self.named.dataflow.slots.trees.arrays

    def _by_array(self, of_arrays: list[int]) -> Ints:
        slots = self.named.dataflow.slots
        array = slots.array[self.named.dataflow.defined_at]
        by_value: Ints = np.array([*of_arrays, 0], np.int64)[array]
        return by_value


def _element_numbers(indices: list[str]) -> tuple[Ints, Ints]:
    """The first and the second number of each shape index, 0 where there is none."""
    numbers = [[int(n) for n in text.strip("{}").split(",") if n] for text in indices]
    padded = [[*index, 0, 0][:2] for index in numbers] or [[0, 0]]
    first, second = np.array(padded, np.int64).T
    return first, second


class Phis:
    """The arrays that loops and conditionals merge, and what goes into each.

    Of each loop phi: `entering`, the value before the first iteration; `computed`, the
    value that the body gives. `loop_phis` are their numbers, `is_loop_phi` marks them by value.
    `conditional_phis` are the other phis; `branches` has their inputs.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        named = values.named
        program, flow = named.program, named.dataflow
        slots = flow.slots
        phis = np.flatnonzero(flow.is_phi & values.is_array)
        row = values.row[phis]
        is_parameter = program.opcode.is_one_of("parameter")[row]
        loop = np.where(is_parameter, named.caller_instruction[row], row)
        is_of_loop = program.opcode.is_one_of("while")[loop]
        self.loop_phis = phis[is_of_loop]
        loop, slot = loop[is_of_loop], values.slot_in_shape[self.loop_phis]
        body = program.root[program.callee(loop, "body")]
        self.entering = flow.value[slots.start[program.operand(loop, 0)] + slot]
        self.computed = flow.value[slots.start[body] + slot]
        self.is_loop_phi = np.zeros(len(flow), bool)
        self.is_loop_phi[self.loop_phis] = True
        self.conditional_phis = phis[~is_of_loop]

    @cached_property
    def is_loop_input(self) -> Mask:
        """Which instructions are an input of a loop's body, or only forward or copy one."""
        named = self._values.named
        program = named.program
        step = np.arange(len(program))
        forwarding = program.rows(*_FORWARDS_OR_COPIES)
        step[forwarding] = program.operand(forwarding, 0)
        source = followed(step)
        caller = named.caller_instruction
        is_in_loop = (caller != NONE) & program.opcode.is_one_of("while")[caller]
        is_input: Mask = (is_in_loop & (program.parameter_number != NONE))[source]
        return is_input

    def branches(self, phis: Ints, moved_from: Ints) -> Iterator[tuple[Ints, Mask, Ints]]:
        """The results that conditionals merge into these phis, one branch after the other.

        Yields for each branch number: the phis of conditionals that have such a branch, whether
        the branch computes its result itself, and the results. `moved_from` says which value
        each value is a copy of.
        """
        program, flow = self._values.named.program, self._values.named.dataflow
        row, slot = self._values.row[phis], self._values.slot_in_shape[phis]
        calls = np.argsort(program.call_row, kind="stable")
        first, stop = (np.searchsorted(program.call_row[calls], row, s) for s in ("left", "right"))
        count = stop - first
        for number in range(int(count.max(initial=0))):
            has_branch = count > number
            branch = program.call_computation[calls[first[has_branch] + number]]
            result = flow.value[flow.slots.start[program.root[branch]] + slot[has_branch]]
            yield phis[has_branch], self._is_inside(moved_from[result], branch), result

    def _is_inside(self, values: Ints, computations: Ints) -> Mask:
        """Whether each value is made in the computation beside it, or in one that this calls."""
        named = self._values.named
        row = self._values.row[values]
        is_inside = np.zeros(len(values), bool)
        while (row != NONE).any():
            computation = np.where(row != NONE, named.program.computation[row], NONE)
            is_inside |= computation == computations
            row = np.where(row != NONE, named.caller[computation], NONE)
        return is_inside


# Fusions: which instruction inside computes each result.

CONVERTS_OR_RESHAPES = ("convert", "reshape", "transpose")
# The result has all elements of the operand, in any order and type.
KEEPS_ELEMENTS = (*CONVERTS_OR_RESHAPES, "bitcast", "copy")
# The result has some of the operand's elements, or all, or repeats them.
TAKES_ELEMENTS = (*KEEPS_ELEMENTS, "slice", "pad", "broadcast", "dynamic-slice")


@dataclass(frozen=True)
class Fusions:
    """Maps from each instruction inside of a fusion back to one that it comes from.

    Each map goes from an instruction to its operand while the instruction is of certain
    opcodes, and says where that ends. A parameter of a nested fusion leads to the fusion's
    operand; a parameter of an outermost fusion ends the way.
    """

    named: Named

    @cached_property
    def _steps(self) -> Ints:
        """The steps that all maps share: from nested parameters, and from elements of tuples."""
        named, program = self.named, self.named.program
        step = np.arange(len(program))
        parameters = np.flatnonzero(named.is_fused & (named.outer_operand != NONE))
        parameters = parameters[named.is_fused[named.outer_operand[parameters]]]
        step[parameters] = named.outer_operand[parameters]
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
        """Where each instruction leads through these opcodes, where allowed."""
        return followed(self._step_through(opcodes, allowed))

    def _step_through(
        self, opcodes: tuple[str, ...], allowed: Mask, *, fusions: bool = False
    ) -> Ints:
        """One step: as `_steps`, and through these opcodes and nested fusions, where allowed.

        With `fusions`, through all nested fusions.
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

        Bitcasts and copies carry the name of the instruction that reads them.
        """
        is_move = self.named.program.opcode.is_one_of("bitcast", "copy")
        return self._through(KEEPS_ELEMENTS, is_move | ~self.named.has_strong_name)

    @cached_property
    def computing(self) -> Ints:
        """The first named instruction behind bitcasts, copies and roots.

        If there is none, the last bitcast, copy or fusion passed that has a name. Their own
        names come last, because they may be those of a neighbour.
        """
        named = self.named
        is_move = named.program.opcode.is_one_of("bitcast", "copy")
        step = self._step_through(KEEPS_ELEMENTS, is_move | ~named.has_strong_name, fusions=True)
        last_named = np.where(named.owns, np.arange(len(step)), NONE)
        end = step
        for _ in range(len(step).bit_length()):
            named_behind = last_named[end]
            last_named = np.where(named_behind != NONE, named_behind, last_named)
            further = end[end]
            if np.array_equal(further, end):
                break
            end = further
        return np.where(last_named == NONE, end, last_named)

    @cached_property
    def some_elements(self) -> Ints:
        """Through nameless instructions that keep, take or repeat elements."""
        return self._through(TAKES_ELEMENTS, ~self.named.has_strong_name)

    @cached_property
    def sliced_from(self) -> Ints:
        """Through bitcasts and copies, and what keeps elements and is nameless or named a slice."""
        named = self.named
        # XLA drops the dimension of a single slice by a bitcast, or by a reduce.
        is_reduce = named.program.opcode.is_one_of("reduce")
        allowed = (~named.has_strong_name & ~is_reduce) | named.takes_a_slice
        allowed |= named.program.opcode.is_one_of("bitcast", "copy")
        return self._through((*KEEPS_ELEMENTS, "reduce"), allowed)

    @cached_property
    def written(self) -> Ints:
        """Through bitcasts, copies and converts of any name, which may follow an update."""
        everything = np.ones(len(self.named.program), bool)
        return self._through(("bitcast", "copy", "convert"), everything)

    @cached_property
    def written_into(self) -> Ints:
        """From a dynamic-update-slice to what its buffer held before all updates."""
        named, program = self.named, self.named.program
        step = self.same_elements.copy()
        rows = np.flatnonzero(
            named.is_fused & program.opcode.is_one_of("dynamic-update-slice", "copy", "bitcast")
        )
        step[rows] = program.operand(rows, 0)
        return followed(step)

    @cached_property
    def relayout_of(self) -> Ints:
        """Through all that rearranges, converts, cuts or pads, of any name."""
        everything = np.ones(len(self.named.program), bool)
        return self._through((*KEEPS_ELEMENTS, "slice", "pad", "dynamic-slice"), everything)

    def nearest(self, roots: Ints) -> Ints:
        """The nearest instruction behind each root that computes what its name says, or NONE.

        The distance is the number of steps within the fusion; of equally near ones, the larger
        operands come first. Constants and broadcasts of one number do not count, because they
        compute nothing.
        """
        is_constant = self.named.program.opcode.is_one_of("constant")
        nearest = self._nearest(roots, self.named.owns & ~is_constant & ~self.is_fill)
        exists = nearest != NONE
        nearest[exists] = self.computing[nearest[exists]]
        return nearest

    def weak(self, roots: Ints) -> Ints:
        """The nearest instruction with a wrapper's or a joined name, as in `nearest`."""
        is_input = self.named.program.opcode.is_one_of("constant", "parameter")
        return self._nearest(roots, self.named.has_weak_name & ~is_input)

    def _nearest(self, roots: Ints, is_target: Mask) -> Ints:
        """The nearest instruction behind each root that is a target, or NONE."""
        program = self.named.program
        nearest = np.full(len(roots), NONE)
        query = np.arange(len(roots))
        rows = roots
        seen = np.array([], np.int64)
        inside = self._through((), ~is_target)
        while len(query):
            rows = inside[rows]
            is_reached = is_target[rows]
            # A level has all instructions of one distance, in the order of the search.
            first, at = np.unique(query[is_reached], return_index=True)
            nearest[first] = rows[is_reached][at]
            is_open = nearest[query] == NONE
            query, rows = self._operands(query[is_open], rows[is_open])
            key = query * len(program) + rows
            _, at = np.unique(key, return_index=True)
            at = np.sort(at)
            at = at[~np.isin(key[at], seen)]
            seen = np.concatenate([seen, key[at]])
            query, rows = query[at], rows[at]
        return nearest

    def _operands(self, query: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """The fused operands of these instructions, with the query of each; larger ones first."""
        named, program = self.named, self.named.program
        # A nested fusion stands for its root.
        nested = program.opcode.is_one_of("fusion")[rows] & named.is_fused[rows]
        rows = np.where(nested, named.inner_root[rows], rows)
        counts = program.operand_count[rows]
        at = joined(program.operand_start[rows], counts)
        reader = np.repeat(np.arange(len(rows)), counts)
        operands = program.operands[at]
        order = np.lexsort((-named.bytes[operands], reader))
        order = order[named.is_fused[operands[order]]]
        return query[reader[order]], operands[order]

    @cached_property
    def repeated(self) -> Ints:
        """Through all that keeps or repeats elements, of any name."""
        everything = np.ones(len(self.named.program), bool)
        return self._through((*KEEPS_ELEMENTS, "broadcast"), everything)

    @cached_property
    def is_fill(self) -> Mask:
        """Which fused instructions repeat a scalar constant of the fusion."""
        is_scalar_constant = self.named.program.opcode.is_one_of("constant") & self.named.is_scalar
        is_fill: Mask = self.named.is_fused & is_scalar_constant[self.repeated]
        return is_fill

    def outer_value(self, reached: Ints, rows: Ints) -> Ints:
        """The value outside of the fusion that each of these instructions comes from.

        `reached` is one of the maps above, such as `same_elements`. NONE if that ends at an
        instruction inside of the fusion.
        """
        named = self.named
        operand = named.outer_operand[reached[rows]]
        value = np.full(len(rows), NONE)
        value[operand != NONE] = named.value_of(operand[operand != NONE])
        return value

    def root_of(self, values: Values, made: Ints) -> Ints:
        """The instruction at the fusion's root that gives each of these values of fusions."""
        program = self.named.program
        root = self.named.inner_root[values.row[made]]
        is_tuple = program.opcode.is_one_of("tuple")[root]
        root[is_tuple] = program.operand(root[is_tuple], values.element[made[is_tuple]])
        return root


# Readers: the first named instruction that reads a buffer, also inside of fusions.


def first_readers(values: Values, buffers: Ints) -> Ints:
    """The first instruction with a strong name that reads each of these values, or NONE.

    A reader of a copy counts as a reader of the value. `buffers` are numbers of values.
    """
    named = values.named
    flow = named.dataflow
    copies = values.of(*COPIES, *CONVERTS_OR_RESHAPES)
    source = values.operand(copies, 0)
    copies, source = copies[source != NONE], source[source != NONE]
    is_read = np.zeros(len(flow), np.bool_)
    copied: Ints = buffers
    while len(copied):
        is_read[copied] = True
        copied = copies[is_read[source] & ~is_read[copies]]
    use = np.flatnonzero(is_read[flow.use_value])
    use = use[np.lexsort((flow.use_operand[use], flow.use_instruction[use], flow.use_value[use]))]
    reader = inner_readers(named, flow.use_instruction[use], flow.use_operand[use])
    # A bitcast or copy carries the name of the instruction that reads it.
    is_move = named.program.opcode.is_one_of("bitcast", *COPIES)
    reader = np.where(named.owns[reader] & ~is_move[flow.use_instruction[use]], reader, NONE)
    first = np.full(len(flow), NONE)
    named_uses = np.flatnonzero(reader != NONE)[::-1]
    first[flow.use_value[use[named_uses]]] = reader[named_uses]
    while True:
        newly_known = np.flatnonzero((first[source] == NONE) & (first[copies] != NONE))
        if not len(newly_known):
            break
        first[source[newly_known[::-1]]] = first[copies[newly_known[::-1]]]
    reader_of_buffer: Ints = first[buffers]
    return reader_of_buffer


def inner_readers(named: Named, users: Ints, operands: Ints) -> Ints:
    """Which instruction reads an operand: the user, or inside of a fusion the first named one.

    `users` are instructions, `operands` the numbers of their operands. Inside of a fusion, the
    search starts at the operand's parameter and goes on through nameless readers.
    """
    program = named.program
    reader = users.copy()
    in_fusion = np.flatnonzero(program.opcode.is_one_of("fusion")[users])
    if not len(in_fusion):
        return reader
    callee = program.callee(users[in_fusion], "calls")
    parameter = program.parameter_of(callee, operands[in_fusion], users[in_fusion])
    pairs, pair_of_use = np.unique(parameter, return_inverse=True)
    start, readers = _readers(named)
    nearest = np.full(len(pairs), NONE)
    query, rows = np.arange(len(pairs)), pairs
    while len(query):
        counts = start[rows + 1] - start[rows]
        query = np.repeat(query, counts)
        rows = readers[joined(start[rows], counts)]
        is_named = named.owns[rows]
        first, at = np.unique(query[is_named], return_index=True)
        nearest[first] = rows[is_named][at]
        is_open = nearest[query] == NONE
        distinct = np.unique(query[is_open] * len(program) + rows[is_open])
        query, rows = np.divmod(distinct, len(program))
    inner = nearest[pair_of_use]
    reader[in_fusion] = np.where(inner != NONE, inner, users[in_fusion])
    return reader


def _readers(named: Named) -> tuple[Ints, Ints]:
    """The fused readers of each fused instruction in text order: where they start, readers."""
    program = named.program
    at = np.flatnonzero(named.is_fused[program.operand_row])
    operand, reader = program.operands[at], program.operand_row[at]
    order = np.lexsort((reader, operand))
    start = np.searchsorted(operand[order], np.arange(len(program) + 1))
    return start, reader[order]


# Fills: buffers that hold one number everywhere, until something is written into them.

# The result repeats or keeps the elements of the operand.
_REPEATS = (*KEEPS_ELEMENTS, "broadcast", "copy-start")


def fills(values: Values, fusions: Fusions) -> tuple[Mask, Ints]:
    """Which values hold one constant number everywhere, or memory that is not written yet.

    And the value that each value repeats or copies; itself if there is none.
    """
    named = values.named
    program = named.program
    begins_fill = program.opcode.is_one_of("constant") & named.is_scalar
    begins_fill |= program.custom_call_target.is_one_of("AllocateBuffer")
    is_fill = begins_fill[values.row] & values.is_array
    source = np.arange(len(is_fill))
    repeats = values.of(*_REPEATS)
    # The context buffer of a copy holds no elements of the operand.
    repeats = repeats[~values.is_context[repeats]]
    repeated = values.operand(repeats, 0)
    source[repeats] = np.where(repeated != NONE, repeated, repeats)
    made = values.of("fusion")
    inner = fusions.repeated[fusions.root_of(values, made)]
    is_fill[made] = fusions.is_fill[inner]
    repeated = fusions.outer_value(fusions.repeated, fusions.root_of(values, made))
    source[made] = np.where(repeated != NONE, repeated, made)
    leads_to_fill: Mask = is_fill[followed(source)]
    return leads_to_fill, source


# Concatenations: arrays that XLA joins and cuts again, for combined collectives and halos.

# An operand with at least this share of a concatenation's bytes owns the concatenation.
_NEARLY_ALL = 7 / 8
# Element i of the result comes from element i of the operand.
_COPIES_OR_REDUCES = (*COPIES, "all-reduce", "all-reduce-start")


class Concatenations:
    """The operands that the parts of nameless concatenations come from."""

    def __init__(self, values: Values, fusions: Fusions) -> None:
        self._values, self._fusions = values, fusions
        named = values.named
        program = named.program
        source = np.arange(len(values.row))
        moves = values.of(*_COPIES_OR_REDUCES)
        moves = moves[~named.has_strong_name[values.row[moves]]]
        moves = moves[program.operand_count[values.row[moves]] == 1]
        operand = values.operand(moves, 0)
        source[moves] = np.where(operand != NONE, operand, moves)
        self._source = followed(source)
        made = values.of("fusion")
        row = values.row.copy()
        row[made] = fusions.same_elements[fusions.root_of(values, made)]
        self._row = row

    def piece(self, slices: Ints, values: Ints) -> Ints:
        """The operand of a concatenation of flat arrays that each slice lies in, or NONE.

        `slices` are slice instructions, `values` are the values that they cut.
        """
        named = self._values.named
        program = named.program
        joined_row = np.where(values != NONE, self._row[self._source[values]], 0)
        is_piece = (values != NONE) & program.opcode.is_one_of("concatenate")[joined_row]
        is_piece &= named.is_flat[joined_row] & (program.slice_start[slices] != NONE)
        cuts = np.flatnonzero(is_piece & ~named.has_strong_name[joined_row])
        counts = program.operand_count[joined_row[cuts]]
        operand = program.operands[joined(program.operand_start[joined_row[cuts]], counts)]
        of_slice = np.repeat(cuts, counts)
        stop = np.cumsum(named.elements[operand])
        first = np.repeat((stop - named.elements[operand])[np.cumsum(counts) - counts], counts)
        stop -= first
        low = program.slice_start[slices[of_slice]]
        high = low + named.elements[slices[of_slice]]
        contains = (stop - named.elements[operand] <= low) & (high <= stop)
        piece = np.full(len(slices), NONE)
        piece[of_slice[contains]] = self._value(operand[contains])
        return piece

    def nearly_all(self, rows: Ints) -> tuple[Mask, Ints]:
        """Which instructions are concatenations that are nearly all one operand; that operand."""
        named = self._values.named
        program = named.program
        largest = np.full(len(rows), NONE)
        counts = program.operand_count[rows]
        operand = program.operands[joined(program.operand_start[rows], counts)]
        of_row = np.repeat(np.arange(len(rows)), counts)
        is_nearly_all = named.bytes[operand] >= _NEARLY_ALL * named.bytes[rows[of_row]]
        is_nearly_all &= program.opcode.is_one_of("concatenate")[rows[of_row]]
        largest[of_row[is_nearly_all]] = operand[is_nearly_all]
        value = np.full(len(rows), NONE)
        value[largest != NONE] = named.value_of(largest[largest != NONE])
        return value != NONE, value

    def _value(self, rows: Ints) -> Ints:
        """The value of each operand; for a fused one, the value that it keeps all elements of."""
        named = self._values.named
        outer_operand = named.outer_operand[self._fusions.same_elements[rows]]
        row = np.where(named.is_fused[rows], outer_operand, rows)
        value = np.full(len(rows), NONE)
        value[row != NONE] = named.value_of(row[row != NONE])
        return value


# Writes: updates in place, and what the buffer held before all of them.

_UPDATE = "dynamic-update-slice"


class Writes:
    """The values that a dynamic-update-slice makes, alone or at the root of a fusion.

    Of each of `values`: `row`, the dynamic-update-slice; `update`, the instruction whose result
    it writes; `target`, the value that it updates, NONE if the fusion makes that.
    """

    def __init__(self, values: Values, phis: Phis, fusions: Fusions, is_fill: Mask) -> None:
        self._values, self._phis, self._fusions = values, phis, fusions
        self._is_fill = is_fill
        program = values.named.program
        plain, fused = values.of(_UPDATE), values.of("fusion")
        root = fusions.written[fusions.root_of(values, fused)]
        is_update = program.opcode.is_one_of(_UPDATE)[root]
        fused, root = fused[is_update], root[is_update]
        buffer = program.operand(root, 0)
        self.values = np.concatenate([plain, fused])
        self.row = np.concatenate([values.row[plain], root])
        self.update = program.operand(self.row, 1)
        outer = fusions.outer_value(fusions.written_into, buffer)
        self.target = np.concatenate([values.operand(plain, 0), outer])
        first = fusions.written_into[buffer]
        source = fusions.outer_value(fusions.repeated, first)
        is_filled = fusions.is_fill[first] | (is_fill[source] & (source != NONE))
        self._filled_inside = np.concatenate([np.zeros(len(plain), bool), is_filled])

    @cached_property
    def begin(self) -> Ints:
        """Of each of `values`: the value that its buffer held first; NONE if a fusion makes that.

        The way back leads through copies, updates, nameless changes of layout or type, and from
        a loop to the value before its first iteration.
        """
        first_value: Ints = np.where(self.target == NONE, NONE, self._beginning[self.target])
        return first_value

    @cached_property
    def begins_filled(self) -> Mask:
        """Of each of `values`: whether its buffer held one number everywhere before all updates."""
        inside = np.zeros(len(self._is_fill), bool)
        inside[self.values[self._filled_inside]] = True
        # The way back also ends at an update whose fusion makes the fill.
        is_filled: Mask = self._filled_inside | (
            (self.begin != NONE) & (self._is_fill | inside)[self.begin]
        )
        return is_filled

    @cached_property
    def _beginning(self) -> Ints:
        """The value that the buffer of each value held first; itself if there is no earlier one."""
        values = self._values
        source = self._relaid.copy()
        self._redirect(source, self._phis.loop_phis, self._phis.entering)
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
        changes = values.of(*CONVERTS_OR_RESHAPES)
        changes = changes[nameless[changes]]
        self._redirect(source, changes, values.operand(changes, 0))
        made = values.of("fusion")
        made = made[nameless[made]]
        inner = self._fusions.root_of(values, made)
        self._redirect(source, made, self._fusions.outer_value(self._fusions.same_elements, inner))
        return source

    @cached_property
    def _pieces(self) -> Ints:
        """Slices, and the arrays that XLA joins again from slices."""
        values = self._values
        target = values.named.program.custom_call_target
        joins = target.is_one_of("ConcatBitcast")[values.row] & values.is_array
        return np.concatenate([values.of("slice"), np.flatnonzero(joins)])

    @cached_property
    def relaid_from(self) -> Ints:
        """What each value is without copies and nameless changes of layout or type."""
        return followed(self._relaid)

    @cached_property
    def relayout_of(self) -> Ints:
        """What each value is without copies, cuts, padding, conversions and changes of layout.

        Slices count, because a scan cuts one layer after the other out of its stacked inputs.
        """
        values = self._values
        source = self._moves.copy()
        relayouts = values.of(*KEEPS_ELEMENTS, "slice", "pad", "dynamic-slice")
        self._redirect(source, relayouts, values.operand(relayouts, 0))
        made = values.of("fusion")
        inner = self._fusions.root_of(values, made)
        self._redirect(source, made, self._fusions.outer_value(self._fusions.relayout_of, inner))
        return followed(source)

    @cached_property
    def _copies(self) -> Ints:
        source = np.arange(len(self._is_fill))
        copies = self._values.of(*COPIES)
        self._redirect(source, copies, self._values.operand(copies, 0))
        return source

    @cached_property
    def _moves(self) -> Ints:
        """One step through copies, and from loops to the values before the first iteration."""
        source = self._copies.copy()
        self._redirect(source, self._phis.loop_phis, self._phis.entering)
        return source

    @staticmethod
    def _redirect(source: Ints, values: Ints, to: Ints) -> None:
        """Let `source` lead from these values to those beside them, where these exist."""
        source[values] = np.where(to != NONE, to, source[values])


# Candidates: the values that each value may get its owner from, in order.

# Why an instruction owns a value. A chain of values reports its first rule that is not `own`.
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
class CandidateOwners:
    """The values that each value may get its owner from, in order of preference.

    A candidate leads to its own first candidate, and so on to the end of a chain. A candidate
    fails if the end has no owner, if it is part of a cycle, or if the end is a fill where
    `no_fill` is set. Of each value: `rule`, the rule for an owner that a candidate gives;
    `owner`, the instruction that owns the value if it has no candidate or all fail, with its
    `owner_rule`; `is_fill`, whether a chain ends here with the owner still open; `is_loop`,
    whether a loop carries the value.
    """

    count: int
    rule: Ints = field(init=False)
    owner: Ints = field(init=False)
    owner_rule: Ints = field(init=False)
    is_fill: Mask = field(init=False)
    is_loop: Mask = field(init=False)
    _values: list[Ints] = field(default_factory=list)
    _candidates: list[Ints] = field(default_factory=list)
    _no_fill: list[Mask] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rule = np.full(self.count, OWN, np.int8)
        self.owner = np.full(self.count, NONE)
        self.owner_rule = np.full(self.count, OWN, np.int8)
        self.is_fill = np.zeros(self.count, bool)
        self.is_loop = np.zeros(self.count, bool)

    def own(self, values: Ints, rows: Ints, rule: Ints | int) -> None:
        """Set the instructions that own values if none of their candidates does."""
        self.owner[values] = rows
        self.owner_rule[values] = rule

    def follow(self, values: Ints, candidates: Ints, *, no_fill: bool = False) -> None:
        """Add candidates to the values beside them, after those that these have; NONE adds none."""
        exists = candidates != NONE
        values, candidates = values[exists], candidates[exists]
        self._values.append(values)
        self._candidates.append(candidates)
        self._no_fill.append(np.full(len(values), no_fill))

    def by_value(self) -> tuple[Ints, Ints, Mask]:
        """All candidates by value and order: where each value's start, candidates, no_fill."""
        values = np.concatenate([*self._values, np.array([], np.int64)])
        order = np.argsort(values, kind="stable")
        counts = np.bincount(values, minlength=self.count)
        candidates = np.concatenate([*self._candidates, np.array([], np.int64)])[order]
        no_fill = np.concatenate([*self._no_fill, np.array([], bool)])[order]
        return starts_of(counts), candidates, no_fill


# Rules: the candidates of each value, opcode by opcode.
#
# An opcode without a rule here follows the last rule: its name owns, or else the owner of its
# largest operand is the guess.

# The result has elements of the first operand and nothing new but padding.
_CHANGES_SHAPE_OR_TYPE = (*CONVERTS_OR_RESHAPES, "slice", "reverse", "pad", "broadcast",
                          "reduce-precision", "dynamic-slice")  # fmt: skip
_REDUCES = ("all-reduce", "all-reduce-start", "reduce-scatter")


class OwnerRules:
    """The rules, opcode by opcode: which values each value may get its owner from.

    Each rule claims its values, so that the first rule that applies to a value is the only one.
    `candidates` is the result; `is_fill` and `repeats` are those of `fills`.
    """

    def __init__(self, named: Named) -> None:
        self.named = named
        self.values = Values(named)
        self.phis = Phis(self.values)
        self.fusions = Fusions(named)
        self.is_fill, self.repeats = fills(self.values, self.fusions)
        self.concatenations = Concatenations(self.values, self.fusions)
        self.writes = Writes(self.values, self.phis, self.fusions, self.is_fill)
        self.candidates = CandidateOwners(len(named.dataflow))
        self._unclaimed = self.values.is_array.copy()
        self._claim(np.flatnonzero(self.values.is_context))
        self._claim_fills()
        self._arguments()
        self._loops_and_conditionals()
        self._copies()
        self._updates()
        self._slices()
        self._gathers()
        self._reductions()
        self._fusions()
        self._other_opcodes()

    def _claim(self, values: Ints) -> Ints:
        """Claim the values that no earlier rule has claimed, and return them."""
        values = values[self._unclaimed[values]]
        self._unclaimed[values] = False
        return values

    def _claim_opcodes(self, *opcodes: str) -> Ints:
        return self._claim(self.values.of(*opcodes))

    def _fall_back_on_names(self, values: Ints) -> None:
        """If all candidates fail, the maker's name counts: strong, an argument's, or weak."""
        row = self.values.row[values]
        argument = self.named.named_argument[row]
        is_weak = self.named.has_weak_name[row]
        is_strong = self.named.owns[row]
        owner = np.where(is_strong | is_weak, row, argument)
        rule = np.where(is_strong, OWN, np.where(argument != NONE, MOVED, WEAK))
        self.candidates.own(values, owner, rule)

    def _claim_fills(self) -> None:
        fill_values = self._claim(np.flatnonzero(self.is_fill))
        self.candidates.is_fill[fill_values] = True

    def _arguments(self) -> None:
        arguments = self._claim(np.flatnonzero(self.named.is_entry_parameter[self.values.row]))
        self.candidates.own(arguments, self.values.row[arguments], ARGUMENT)

    def _loops_and_conditionals(self) -> None:
        """Candidates are a loop's result, then what enters; the branches of a conditional."""
        phis = self.phis
        loop_phis = self._claim(phis.loop_phis)
        is_claimed = np.isin(phis.loop_phis, loop_phis)
        self._fall_back_on_names(loop_phis)
        self.candidates.follow(loop_phis, phis.computed[is_claimed], no_fill=True)
        self.candidates.follow(loop_phis, phis.entering[is_claimed])
        self.candidates.rule[loop_phis] = LOOP
        self.candidates.is_loop[loop_phis] = True
        conditional_phis = self._claim(phis.conditional_phis)
        self._fall_back_on_names(conditional_phis)
        self.candidates.rule[conditional_phis] = LOOP
        results = list(phis.branches(conditional_phis, self.writes.relaid_from))
        for wanted in (True, False):
            for phi, is_computed, value in results:
                is_candidate = is_computed == wanted
                self.candidates.follow(phi[is_candidate], value[is_candidate], no_fill=True)
        # If all branches give a fill, the first branch's fill is the candidate.
        if results:
            self.candidates.follow(results[0][0], results[0][2])

    def _copies(self) -> None:
        """A copy carries its reader's name, so that the name is the last resort."""
        copies = self._claim_opcodes(*COPIES)
        self.candidates.follow(copies, self.values.operand(copies, 0))
        self.candidates.rule[copies] = MOVED
        self._fall_back_on_names(copies)

    def _updates(self) -> None:
        """A cache that is updated in place is the argument's; a stack is the update's owner's."""
        writes = self.writes
        updated = self._claim(writes.values)
        is_claimed = np.isin(writes.values, updated)
        target, begin = writes.target[is_claimed], writes.begin[is_claimed]
        is_carried = (target != NONE) & self.phis.is_loop_phi[writes.relaid_from[target]]
        rule = np.where(is_carried, LOOP, MOVED)
        first_row = self.values.row[begin]
        is_argument = (begin != NONE) & self.named.is_entry_parameter[first_row]
        self._fall_back_on_names(updated)
        self.candidates.own(updated[is_argument], first_row[is_argument], rule[is_argument])
        is_stack = ~is_argument & (writes.begins_filled[is_claimed] | is_carried)
        update = self.fusions.moved[writes.update[is_claimed]]
        self._follow_instruction(updated[is_stack], update[is_stack], rule[is_stack])
        is_other = ~is_argument & ~is_stack
        inner = np.where(is_other, writes.row[is_claimed], 0)
        is_fused = is_other & self.named.owns[inner] & self.named.is_fused[inner]
        row = self.values.row[updated]
        is_its_own = self.named.owns[row] & self.values.is_single[updated]
        inner_rule = np.where(is_its_own, OWN, FUSED)
        self.candidates.own(updated[is_fused], inner[is_fused], inner_rule[is_fused])
        is_other &= ~is_fused & ~self.named.owns[row]
        self.candidates.follow(updated[is_other], target[is_other])
        self.candidates.rule[updated[is_other]] = MOVED

    def _slices(self) -> None:
        """A scan cuts its stacked inputs apart: each slice is owned by the stack's owner."""
        values, program = self.values, self.named.program
        plain = values.of("dynamic-slice")
        made = values.of("fusion")
        inner = self.fusions.root_of(values, made)
        stack = self._sliced_loop_input(inner)
        row = program.operand(values.row[plain], 0)
        is_of_loop = self.phis.is_loop_input[row] & ~self._is_constant(self.named.value_of(row))
        for slices, source in (
            (made[stack != NONE], stack[stack != NONE]),
            (plain[is_of_loop], self.named.value_of(row[is_of_loop])),
        ):
            is_unclaimed = self._unclaimed[slices]
            claimed = self._claim(slices)
            self._fall_back_on_names(claimed)
            self.candidates.follow(claimed, source[is_unclaimed])
            self.candidates.rule[claimed] = LOOP

    def _sliced_loop_input(self, inner: Ints) -> Ints:
        """The loop input that each of these fused instructions takes a slice of, as a value.

        NONE if the instruction is no slice of an input of a loop's body.
        """
        program, fusions = self.named.program, self.fusions
        root = fusions.sliced_from[inner]
        slices = np.flatnonzero(program.opcode.is_one_of("dynamic-slice")[root])
        loop_input = self.named.outer_operand[fusions.sliced_from[program.operand(root[slices], 0)]]
        is_input = (loop_input != NONE) & self.phis.is_loop_input[loop_input]
        slices, input_value = slices[is_input], self.named.value_of(loop_input[is_input])
        is_computed = ~self._is_constant(input_value)
        stack = np.full(len(inner), NONE)
        stack[slices[is_computed]] = input_value[is_computed]
        return stack

    def _is_constant(self, values: Ints) -> Mask:
        """Which values are constants, whose names say less than that of a slice of them."""
        row = self.values.row[values]
        is_constant: Mask = self.named.program.opcode.is_one_of("constant")[row] & (values != NONE)
        return is_constant

    def _gathers(self) -> None:
        """A gathered argument is the argument; another gathered array has the collective's name."""
        gathered = self._claim_opcodes(*GATHERS)
        source = self.values.operand(gathered, self.values.element[gathered])
        begin = np.where(source != NONE, self.writes.relayout_of[source], NONE)
        row = self.values.row[begin]
        is_argument = (begin != NONE) & self.named.is_entry_parameter[row]
        self._fall_back_on_names(gathered)
        self.candidates.own(gathered[is_argument], row[is_argument], ARGUMENT)
        is_nameless = ~is_argument & ~self.named.owns[self.values.row[gathered]]
        self.candidates.follow(gathered[is_nameless], source[is_nameless])
        self.candidates.rule[gathered[is_nameless]] = MOVED

    def _reductions(self) -> None:
        """Follow the operands if the name says nothing, as one name cannot for several arrays."""
        reduced = self._claim_opcodes(*_REDUCES)
        row = self.values.row[reduced]
        self._fall_back_on_names(reduced)
        is_unclear = ~self.named.owns[row] | (self.named.program.operand_count[row] > 1)
        followed_values = reduced[is_unclear]
        self.candidates.follow(
            followed_values,
            self.values.operand(followed_values, self.values.element[followed_values]),
        )
        self.candidates.rule[followed_values] = MOVED

    def _fusions(self) -> None:
        """Each result is owned by the first named instruction behind the root that gives it."""
        named, fusions = self.named, self.fusions
        results = self._claim_opcodes("fusion")
        row = self.values.row[results]
        is_single = self.values.is_single[results] & named.owns[row]
        self._fall_back_on_names(results)
        root = fusions.root_of(self.values, results)
        first = fusions.computing[root]
        has_named_root = named.owns[first]
        rule = np.where(is_single, OWN, FUSED)
        self.candidates.own(results[has_named_root], first[has_named_root], rule[has_named_root])
        is_left = ~has_named_root & ~is_single
        results, root = results[is_left], root[is_left]
        self._follow_instruction(results, root, np.full(len(results), FUSED))
        operand = fusions.outer_value(fusions.some_elements, root)
        has_no_owner = self.candidates.owner[results] == NONE
        is_unknown = has_no_owner | (self.candidates.owner_rule[results] == WEAK)
        is_unknown &= operand == NONE
        is_nameless = is_unknown & has_no_owner
        self.candidates.own(results[is_nameless], fusions.weak(root[is_nameless]), WEAK)
        self._guess_from_operands(results[is_unknown])

    def _follow_instruction(self, values: Ints, inner: Ints, rule: Ints) -> None:
        """Give values the owner of an instruction, fused or not.

        `inner` has an instruction for each value. If the instruction is fused, the nearest name
        inside of the fusion owns, unless the instruction only moves an operand of the fusion;
        that operand is then the candidate. If it is not fused, its value is the candidate.
        """
        named, fusions = self.named, self.fusions
        unfused = np.where(named.is_fused[inner], NONE, named.value_of(inner))
        operand = fusions.outer_value(fusions.some_elements, inner)
        piece = self.concatenations.piece(fusions.same_elements[inner], operand)
        operand = np.where(piece != NONE, piece, operand)
        first = fusions.computing[inner]
        has_named_root = named.is_fused[inner] & named.owns[first]
        stack = self._sliced_loop_input(inner)
        has_named_root &= stack == NONE
        operand = np.where(has_named_root, NONE, np.where(stack != NONE, stack, operand))
        candidates = np.where(unfused != NONE, unfused, operand)
        self.candidates.own(values[has_named_root], first[has_named_root], rule[has_named_root])
        self.candidates.follow(values, candidates)
        self.candidates.rule[values] = rule
        is_unknown = named.is_fused[inner] & ~has_named_root & (operand == NONE)
        nearest = fusions.nearest(inner[is_unknown])
        has_nearest = nearest != NONE
        self.candidates.own(
            values[is_unknown][has_nearest], nearest[has_nearest], rule[is_unknown][has_nearest]
        )

    def _other_opcodes(self) -> None:
        """A name owns; without one, a changed shape or type is its operand's, and others guess."""
        named, values = self.named, self.values
        claimed = self._claim(np.flatnonzero(self._unclaimed))
        row = values.row[claimed]
        self._fall_back_on_names(claimed)
        is_nameless = ~named.owns[row] & (named.named_argument[row] == NONE)
        claimed, row = claimed[is_nameless], row[is_nameless]
        is_moved = named.program.opcode.is_one_of(*_CHANGES_SHAPE_OR_TYPE)[row]
        # ConcatBitcast joins the pieces of one array again.
        is_moved |= named.program.custom_call_target.is_one_of("ConcatBitcast")[row]
        is_nearly_all, largest = self.concatenations.nearly_all(row)
        is_moved |= is_nearly_all
        moved = claimed[is_moved]
        source = np.where(is_nearly_all, largest, values.operand(claimed, 0))[is_moved]
        piece = self.concatenations.piece(row[is_moved], source)
        self.candidates.follow(moved, np.where(piece != NONE, piece, source))
        self.candidates.rule[moved] = MOVED
        self._guess_from_operands(
            claimed[~is_moved & (named.program.parameter_number[row] == NONE)]
        )

    def _guess_from_operands(self, nameless: Ints) -> None:
        """Guess the owner of the largest operand that is not a fill."""
        program = self.named.program
        row = self.values.row[nameless]
        counts = program.operand_count[row]
        value = np.repeat(nameless, counts)
        operand = program.operands[joined(program.operand_start[row], counts)]
        source = self.named.value_of(operand)
        is_candidate = (source != NONE) & ~self.is_fill[source] & self.values.is_array[source]
        value, operand, source = value[is_candidate], operand[is_candidate], source[is_candidate]
        order = np.lexsort((-self.named.bytes[operand], value))
        self.candidates.follow(value[order], source[order], no_fill=True)
        self.candidates.rule[nameless] = OPERAND


# Search: the candidates of all values are followed at once.


@dataclass(frozen=True)
class SearchResult:
    """Of each value: the instruction that is its origin, or NONE, and the rule.

    `fill` is the fill at which the chain of candidates ended, NONE if it ended elsewhere.
    """

    origin: Ints
    rule: Ints
    fill: Ints


def search(owners: CandidateOwners) -> SearchResult:
    """Follow every value's first candidate, and where a chain fails, another one.

    On each chain that fails, the value nearest to the failure tries its next candidate first, so
    that all before it keep their choice. In a cycle the loops go on to their next candidate, the
    value that enters. The search ends when no chain fails, or those that do have no candidate
    left.
    """
    start, candidates, no_fill = owners.by_value()
    numbers = np.arange(owners.count)
    current, stop = start[:-1].copy(), start[1:]
    while True:
        is_end = current == stop
        place = np.minimum(current, max(len(candidates) - 1, 0))
        follows = np.where(is_end, numbers, candidates[place] if len(candidates) else numbers)
        end, is_cyclic = _chain_ends(follows, is_end)
        is_fill = is_end[end] & owners.is_fill[end]
        fails = ~is_fill & (is_cyclic | (owners.owner[end] == NONE))
        # A value may go on to its next candidate or its own name, or leave a fill that it rejects.
        rejects_fills = no_fill[place] if len(candidates) else np.zeros(owners.count, bool)
        has_other = ~is_end & ((current + 1 < stop) | (owners.owner != NONE))
        may_continue = has_other | (~is_end & rejects_fills)
        chooses = has_other & fails & ~is_cyclic
        rejects_this_fill = may_continue & is_fill & rejects_fills
        values_to_advance = _last_of(
            follows, chooses | rejects_this_fill, (fails & ~is_cyclic) | is_fill
        )
        rank = np.where(may_continue, np.where(owners.is_loop, 0, 1), 2)
        values_to_advance = np.union1d(values_to_advance, _cycle_exits(follows, is_cyclic, rank))
        if not len(values_to_advance):
            break
        current[values_to_advance] += 1
    origin = np.where(is_fill | is_cyclic, NONE, owners.owner[end])
    return SearchResult(origin, _rules(owners, follows, end, is_end), np.where(is_fill, end, NONE))


def _chain_ends(follows: Ints, is_end: Mask) -> tuple[Ints, Mask]:
    """Where the chain of each value ends, and which values lead into a cycle instead."""
    end = follows
    for _ in range(max(1, len(follows).bit_length())):
        further = end[end]
        if np.array_equal(further, end):
            break
        end = further
    return end, ~is_end[end]


def _last_of(follows: Ints, chosen: Mask, starting: Mask) -> Ints:
    """The last chosen value on the chain of each starting value, without repetition."""
    if not (chosen & starting).any():
        return np.array([], np.int64)
    last = np.where(chosen, np.arange(len(follows)), NONE)
    step = follows
    for _ in range(len(follows).bit_length()):
        last_behind = last[step]
        last = np.where(last_behind != NONE, last_behind, last)
        step = step[step]
    return np.unique(last[starting & (last != NONE)])


def _cycle_exits(follows: Ints, is_cyclic: Mask, rank: Ints) -> Ints:
    """The values of the lowest rank on each cycle."""
    at, step = np.flatnonzero(is_cyclic), follows
    lowest = rank.copy()
    for _ in range(len(follows).bit_length() if len(at) else 0):
        # In the end `at` has only values on cycles, and each knows the lowest rank of its cycle.
        at = np.unique(step[at])
        lowest = np.minimum(lowest, lowest[step])
        step = step[step]
    exits: Ints = at[rank[at] == lowest[at]]
    return exits


def _rules(owners: CandidateOwners, follows: Ints, end: Ints, is_end: Mask) -> Ints:
    """The first rule on each chain that is not `own`, else the rule of its end.

    A guess stays a guess, wherever on the chain it was made.
    """
    rule = np.where(is_end, OWN, owners.rule)
    is_guess = ~is_end & (owners.rule == OPERAND)
    step = follows
    for _ in range(len(follows).bit_length()):
        rule = np.where(rule == OWN, rule[step], rule)
        is_guess |= is_guess[step]
        step = step[step]
    rule = np.where(rule == OWN, owners.owner_rule[end], rule)
    rule = np.where(is_guess, OPERAND, rule)
    return np.where(owners.owner_rule[end] == WEAK, WEAK, rule)


# Origins: the result of the search, and the owners of fills.


@dataclass(frozen=True)
class Origins:
    """Of each value: `instruction`, its origin, and `rule`, the place in RULES that says why.

    Both are NONE where no rule gives an owner. `moved_from` is the value that each value is a
    copy, a part or another type of, or of which a loop's first turn starts; itself if none.
    """

    instruction: Ints
    rule: Ints
    moved_from: Ints


def find_origins(named: Named, alias_set: Ints) -> Origins:
    """The origin of every array; a tuple's table has none.

    `alias_set` is the smallest number of the values that must share memory with each value.
    """
    rules = OwnerRules(named)
    search_result = search(rules.candidates)
    owner, rule = search_result.origin.copy(), search_result.rule.astype(np.int64)
    in_alias_set = _owner_in_alias_set(alias_set, owner)
    _own_fills(rules, owner, rule, in_alias_set)
    _own_iotas(rules, owner, rule)
    # A chain that ends in a fill is owned by the value later written into its buffer, or else by
    # the fill's owner.
    fill_chains = np.flatnonzero((search_result.fill != NONE) & ~rules.is_fill)
    fill, later_owner = search_result.fill[fill_chains], in_alias_set[fill_chains]
    owner[fill_chains] = np.where(later_owner != NONE, later_owner, owner[fill])
    inherited_rule = np.where(later_owner != NONE, BECOMES, rule[fill])
    is_inherited = (rule[fill_chains] == OWN) | ((later_owner == NONE) & (rule[fill] == WEAK))
    rule[fill_chains] = np.where(is_inherited, inherited_rule, rule[fill_chains])
    rule = np.where(owner == NONE, NONE, rule)
    return Origins(owner, rule, rules.writes.relayout_of)


def _own_fills(rules: OwnerRules, owner: Ints, rule: Ints, in_alias_set: Ints) -> None:
    """Set the owners of fills: of a value written later, else by a name, else the first reader."""
    named, values = rules.named, rules.values
    fills = np.flatnonzero(rules.is_fill)
    maker = values.row[fills]
    name, name_rule = _fill_names(rules, fills)
    is_copy = named.program.opcode.is_one_of(*COPIES)[maker]
    for candidate, candidate_rule in (
        (in_alias_set[fills], BECOMES),
        (np.where(is_copy, NONE, name[fills]), name_rule[fills]),
        (_name_upstream(rules, name)[fills], MOVED),
        (np.where(named.owns[maker], maker, NONE), OWN),
    ):
        _set_where_unknown(owner, rule, fills, candidate, candidate_rule)
    if (owner[fills] == NONE).any():
        _set_where_unknown(owner, rule, fills, first_readers(values, fills), READ)
    _set_where_unknown(owner, rule, fills, np.where(named.has_weak_name[maker], maker, NONE), WEAK)


def _own_iotas(rules: OwnerRules, owner: Ints, rule: Ints) -> None:
    """Set the owners of nameless iotas: as they compute from nothing, the first reader owns.

    Where the readers are nameless too, the readers of what these compute are searched, and so on.
    """
    named, values = rules.named, rules.values
    flow, inner = named.dataflow, values.row.copy()
    made = values.of("fusion")
    inner[made] = rules.fusions.root_of(values, made)
    is_iota = named.program.opcode.is_one_of("iota")[inner]
    iotas = np.flatnonzero(is_iota & values.is_array & (owner == NONE))
    query, reached = np.arange(len(iotas)), iotas
    seen = query * len(owner) + reached
    while len(reached):
        reader = first_readers(values, reached)
        is_known = np.flatnonzero(reader != NONE)
        order = is_known[np.lexsort((reader[is_known], query[is_known]))]
        first, at = np.unique(query[order], return_index=True)
        _set_where_unknown(owner, rule, iotas[first], reader[order[at]], READ)
        is_open = owner[iotas[query]] == NONE
        query, user = _joined_with(
            query[is_open], reached[is_open], flow.use_value, flow.use_instruction
        )
        query, reached = _joined_with(query, user, values.row, np.arange(len(owner)))
        key = np.setdiff1d(query * len(owner) + reached, seen)
        seen = np.concatenate([seen, key])
        query, reached = np.divmod(key, len(owner))


def _joined_with(query: Ints, keys: Ints, of: Ints, to: Ints) -> tuple[Ints, Ints]:
    """For each key all of `to` whose `of` is the key, with the query beside the key."""
    order = np.argsort(of, kind="stable")
    first, stop = (np.searchsorted(of[order], keys, side) for side in ("left", "right"))
    return np.repeat(query, stop - first), to[order[joined(first, stop - first)]]


def _fill_names(rules: OwnerRules, fills: Ints) -> tuple[Ints, Ints]:
    """The instruction that names each fill, or NONE, and the rule; both by value.

    A name inside of a fusion comes first. A copy carries the name of its reader, and a constant
    inside of a fusion that of any of its readers, so that these names do not count.
    """
    named, values = rules.named, rules.values
    row = values.row[fills]
    is_fusion = named.inner_root[row] != NONE
    inner = row.copy()
    inner[is_fusion] = rules.fusions.computing[rules.fusions.root_of(values, fills[is_fusion])]
    is_constant = named.program.opcode.is_one_of("constant")
    inner = np.where(named.owns[inner] & ~(is_constant[inner] & is_fusion), inner, row)
    is_nameless = ~named.owns[inner] | named.program.opcode.is_one_of(*COPIES)[row]
    name = np.full(len(values.row), NONE)
    name[fills] = np.where(is_nameless, NONE, inner)
    name_rule = np.full(len(values.row), OWN)
    name_rule[fills[(inner != row) & ~(named.owns[row] & values.is_single[fills])]] = FUSED
    return name, name_rule


def _name_upstream(rules: OwnerRules, name: Ints) -> Ints:
    """The first name between a fill and the constant that it repeats."""
    is_constant = rules.named.program.opcode.is_one_of("constant")[rules.values.row]
    upstream, step = np.where(is_constant, NONE, name), rules.repeats
    for _ in range(len(step).bit_length()):
        upstream = np.where(upstream == NONE, upstream[step], upstream)
        step = step[step]
    return upstream


def _set_where_unknown(
    owner: Ints, rule: Ints, values: Ints, candidate: Ints, candidate_rule: Ints | int
) -> None:
    """Set the owner where it is still unknown."""
    is_set = (owner[values] == NONE) & (candidate != NONE)
    owner[values[is_set]] = candidate[is_set]
    rule[values[is_set]] = (
        candidate_rule if isinstance(candidate_rule, int) else candidate_rule[is_set]
    )


def _owner_in_alias_set(alias_set: Ints, owner: Ints) -> Ints:
    """The first known owner within the alias set of each value, or NONE."""
    known = np.flatnonzero(owner != NONE)[::-1]
    first_owner = np.full(len(owner), NONE)
    first_owner[alias_set[known]] = owner[known]
    owner_of_set: Ints = first_owner[alias_set]
    return owner_of_set
