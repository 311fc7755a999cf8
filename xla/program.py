"""One HLO module as parallel lists: an instruction is its row, in the order of the text."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from .errors import DumpError

# No instruction, computation, value or number. Never index a list with it: -1 is the last element.
NONE: Final = -1
# The opcode of an instruction with an operand that was not read: no rule covers it.
NOT_READ: Final = "(not read)"

# A shape index, the path to a part of a tuple: () is all of it, (1, 0) element 0 of element 1.
ShapeIndex = tuple[int, ...]

_VALUE = r"\{(?:[^{}]|\{[^{}]*\})*\}|[^ ,{}]+"
_ATTRIBUTE = re.compile(rf"(?:^|, )([a-z_]+)=({_VALUE})")


class Alias(NamedTuple):
    """One pair of an aliasing attribute: a part of the result, and what shares its memory.

    Attributes:
        output_index: the part of the result.
        number: number of the operand, or of the parameter in the header's `input_output_alias`.
        operand_index: the part of that operand or parameter.
    """

    output_index: ShapeIndex
    number: int
    operand_index: ShapeIndex


class Metadata(NamedTuple):
    """The origin of an instruction in the framework: its `metadata={…}`; None if not stated."""

    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    stack_frame_id: int | None = None


class StackFrame(NamedTuple):
    """A frame of the Python stack that created instructions: a row of `stack_frames`."""

    stack_frame_id: int
    parent_frame_id: int | None
    file: str | None
    function: str | None
    line: int | None
    end_line: int | None
    column_start: int | None
    column_end: int | None


class EntryShape(NamedTuple):
    """An array in the entry computation's arguments or result: a row of `entry_shapes`."""

    is_output: bool
    parameter_number: int | None
    shape_index: str
    argument_name: str | None
    sharding: str | None
    shape: str
    element_type: str | None
    logical_bytes: int | None
    padded_bytes: int | None


class ScopedMemory(NamedTuple):
    """Memory that a backend_config reserves for one instruction, in bytes over all spaces.

    Attributes:
        space: the memory space of `reserved_bytes`; None if there are several.
        used_bytes: what the compiler used of it.
    """

    reserved_bytes: int | None
    space: int | None
    used_bytes: int | None


class KernelPart(NamedTuple):
    """An array that a Pallas kernel keeps on chip, as the kernel's own module states.

    Attributes:
        row, part: the kernel's instruction, and the array's number within it, from 0.
        buffers: 2 of a pipelined block, see `kernel_parts`.
        operand: the number of the kernel's operand that the array is a block of.
    """

    row: int
    part: int
    kind: str
    space: str | None
    shape: str
    buffers: int
    operand: int | None


class Unread(NamedTuple):
    """The instructions that a reader left out of a corrupt text.

    Attributes:
        line: the first of their lines, from 1.
        description: their number and the reason, for a message.
    """

    line: int
    description: str


class NotUnderstood(NamedTuple):
    """Syntax of a newer XLA that a reader skipped.

    Attributes:
        line: from 1.
        description: the kind of syntax and its text, for a message.
    """

    line: int
    description: str


class Header(NamedTuple):
    """The attributes of the module: columns of `modules`, None where the text is silent."""

    is_scheduled: bool = False
    entry_signature: str | None = None
    num_partitions: int = 1
    replica_count: int = 1


NO_METADATA: Final = Metadata()


def index_text(index: Iterable[int]) -> str:
    """Numbers in braces, as XLA prints a shape index: `{1,0}`."""
    return f"{{{','.join(map(str, index))}}}"


class Program:
    """One HLO module. Row i is an instruction; lists are indexed by row.

    Rows are in text order: computations one after the other, operands before their users. Facts
    that few instructions have are in a dict by row, without an entry for the others.

    Attributes:
        name: the module's name.
        header: the module's attributes.
        aliases: the header's `input_output_alias`, parsed.
        donors: its `buffer_donor`: parts of parameters that are donated without a result.
        entry: the entry computation.
        computation_names: by computation.
        first, stop: by computation, its rows: from `first` up to, but without, `stop`.
        root: by computation, the row of its root; NONE if that was not read.
        names: by row, the name without `%`.
        lines: by row, the line in the file, from 1.
        opcode: by row.
        shape: by row, the result's shape with layout; equal shapes are one string.
        computation: by row, the computation that contains it.
        operands: by row, the rows of its operands.
        parameter_number: by row; NONE if it is no parameter.
        tuple_index: by row; NONE if it is no get-tuple-element.
        metadata: by row; NO_METADATA without.
        calls: by row, pairs of an attribute and the computation that it names, in text order.
        attributes: by row, its other attributes (dimensions, window, slice, …), as XLA prints them.
        operand_aliasing: by row, the pairs of `output_to_operand_aliasing`.
        fusion_kind: by row of a fusion, such as kLoop.
        custom_call_target: by row of a custom-call.
        control_predecessors: by row, the rows that must run before it though it reads none.
        integers: by row, the value of a scalar integer constant.
        less_than: the rows of compares with direction=LT.
        frames: by id.
        entry_shapes: the arrays in the entry's arguments and result; None without a signature.
        kernels: the arrays that Pallas kernels keep on chip, in the order of the rows.
        scoped: by row, the memory that its backend_config reserves.
        aliasing_lists: by row, the text of `aliasing_operands` in the backend_config of a TPU:
            the operands and results that share memory; "" if none do.
        trip_counts: by row of a while, its number of iterations, where XLA knows it.
        has_dma_priority: whether a backend_config has this attribute of the newest libtpu.
        is_gpu: whether XLA for GPU wrote the attributes.
        row_of: row by name.
        unread: the instructions that a reader left out of a corrupt text.
        not_understood: the syntax of a newer XLA that a reader skipped.
    """

    def __init__(self) -> None:
        self.name = ""
        self.header = Header()
        self.aliases: list[Alias] = []
        self.donors: list[tuple[int, ShapeIndex]] = []
        self.entry = NONE
        self.computation_names: list[str] = []
        self.first: list[int] = []
        self.stop: list[int] = []
        self.root: list[int] = []
        self.names: list[str] = []
        self.lines: list[int] = []
        self.opcode: list[str] = []
        self.shape: list[str] = []
        self.computation: list[int] = []
        self.operands: list[tuple[int, ...]] = []
        self.parameter_number: list[int] = []
        self.tuple_index: list[int] = []
        self.metadata: list[Metadata] = []
        self.calls: dict[int, list[tuple[str, int]]] = {}
        self.attributes: dict[int, str] = {}
        self.operand_aliasing: dict[int, list[Alias]] = {}
        self.fusion_kind: dict[int, str] = {}
        self.custom_call_target: dict[int, str] = {}
        self.control_predecessors: dict[int, list[int]] = {}
        self.integers: dict[int, int] = {}
        self.less_than: set[int] = set()
        self.frames: dict[int, StackFrame] = {}
        self.entry_shapes: list[EntryShape] | None = None
        self.kernels: list[KernelPart] = []
        self.scoped: dict[int, ScopedMemory] = {}
        self.aliasing_lists: dict[int, str] = {}
        self.trip_counts: dict[int, int] = {}
        self.has_dma_priority = False
        self.is_gpu = False
        self.row_of: dict[str, int] = {}
        self.unread: list[Unread] = []
        self.not_understood: list[NotUnderstood] = []
        self._parameters: list[list[int]] = []
        self._rows_by_opcode: dict[str, list[int]] = {}
        self._readers: dict[int, dict[int, list[int]]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add_computation(self, name: str) -> int:
        """Begin a computation: the rows added next belong to it. Returns its number."""
        computation = len(self.computation_names)
        self.computation_names.append(name)
        self.first.append(len(self.names))
        self.stop.append(len(self.names))
        self.root.append(NONE)
        return computation

    def add_instruction(
        self,
        name: str,
        opcode: str,
        shape: str,
        operands: tuple[int, ...],
        line: int,
        *,
        metadata: Metadata = NO_METADATA,
        parameter_number: int = NONE,
        tuple_index: int = NONE,
    ) -> int:
        """Append an instruction to the last computation. Returns its row.

        The only place that appends to the lists by row. Raises DumpError if the name is taken.
        """
        row = len(self.names)
        if self.row_of.setdefault(name, row) != row:
            raise DumpError("two instructions have one name", line, [line])
        self.names.append(name)
        self.opcode.append(opcode)
        self.shape.append(shape)
        self.operands.append(operands)
        self.lines.append(line)
        self.computation.append(len(self.computation_names) - 1)
        self.metadata.append(metadata)
        self.parameter_number.append(parameter_number)
        self.tuple_index.append(tuple_index)
        self.stop[-1] = row + 1
        return row

    def operand(self, row: int, number: int) -> int:
        """One operand of an instruction. Raises DumpError if it has none of this number."""
        operands = self.operands[row]
        if number >= len(operands):
            raise self.error(row, "lacks an operand")
        return operands[number]

    def callee(self, row: int, *attributes: str) -> int:
        """The computation that an instruction calls by one of these attributes, the last if many.

        Raises DumpError if it calls none.
        """
        callee = NONE
        for attribute, computation in self.calls.get(row, ()):
            if attribute in attributes:
                callee = computation
        if callee == NONE:
            raise self.error(row, f"names no computation ({' or '.join(attributes)})")
        return callee

    def called_root(self, row: int) -> int:
        """The root of the computation that a call, fusion or async-start runs."""
        return self.root[self.callee(row, "to_apply", "calls")]

    def rows_with(self, *opcodes: str) -> list[int]:
        """The rows with one of these opcodes, in text order. Only of a complete program."""
        rows: list[int] = []
        for opcode in opcodes:
            rows += self.rows_by_opcode().get(opcode, ())
        return sorted(rows)

    def rows_by_opcode(self) -> dict[str, list[int]]:
        """The rows with each opcode, in text order. Only of a complete program."""
        if not self._rows_by_opcode:
            for row, opcode in enumerate(self.opcode):
                self._rows_by_opcode.setdefault(opcode, []).append(row)
        return self._rows_by_opcode

    def check_computations(self) -> None:
        """Raise DumpError if a computation is empty, or its root was not read."""
        for computation, name in enumerate(self.computation_names):
            if self.root[computation] == NONE:
                if not self.unread and not len(self.rows_of(computation)):
                    raise DumpError(f"computation {name} is empty")
                line = self.unread[0].line if self.unread else None
                raise DumpError(f"the root of computation {name} is not read", line)

    def rows_of(self, computation: int) -> range:
        """The rows of a computation."""
        return range(self.first[computation], self.stop[computation])

    def readers_in(self, computation: int) -> dict[int, list[int]]:
        """By row of a computation, the rows that read it, in text order, once per operand.

        Only of a complete program.
        """
        readers = self._readers.get(computation)
        if readers is None:
            readers = self._readers[computation] = {}
            for row in self.rows_of(computation):
                for operand in self.operands[row]:
                    readers.setdefault(operand, []).append(row)
        return readers

    def parameters(self, computation: int) -> list[int]:
        """The rows of a computation's parameters, by number. Only of a complete program.

        Raises DumpError unless the numbers of every computation's parameters are 0, 1, 2, …
        """
        if not self._parameters:
            self._parameters = self._index_parameters()
        return self._parameters[computation]

    def _index_parameters(self) -> list[list[int]]:
        """By computation, the rows of its parameters by number: computed once, of all rows."""
        index: list[list[int]] = [[] for _ in self.computation_names]
        for row, number in enumerate(self.parameter_number):
            if number != NONE:
                index[self.computation[row]].append(row)
        for rows in index:
            rows.sort(key=self.parameter_number.__getitem__)
            for number, row in enumerate(rows):
                if self.parameter_number[row] != number:
                    raise self.error(row, "does not follow the parameter before it")
        return index

    def parameter(self, computation: int, number: int, caller: int) -> int:
        """The row of a computation's parameter.

        Raises DumpError, with the line of the calling instruction `caller`, if it has none.
        """
        parameters = self.parameters(computation)
        if number >= len(parameters):
            raise self.error(caller, "passes an operand that its computation has no parameter for")
        return parameters[number]

    def callees_first(self) -> list[int]:
        """The computations, each after all that it calls.

        Computations on a cycle of calls, and their callers, are left out (Kahn's algorithm).
        """
        callers: list[list[int]] = [[] for _ in self.computation_names]
        pending = [0] * len(callers)
        for row, called in self.calls.items():
            for _, callee in called:
                callers[callee].append(self.computation[row])
                pending[self.computation[row]] += 1
        order = [computation for computation, count in enumerate(pending) if not count]
        for computation in order:
            for caller in callers[computation]:
                pending[caller] -= 1
                if not pending[caller]:
                    order.append(caller)
        return order

    def is_in_entry(self, row: int) -> bool:
        """Whether an instruction is in the entry computation."""
        return self.computation[row] == self.entry

    def error(self, row: int, complaint: str) -> DumpError:
        """A complaint about one instruction, with its line."""
        return DumpError(f"{self.opcode[row]} {self.names[row]} {complaint}", self.lines[row])


def attribute_values(text: str) -> dict[str, str]:
    """The values in a text of `Program.attributes`, by attribute.

    >>> attribute_values("dimensions={0,2}, index_vector_dim=1")
    {'dimensions': '{0,2}', 'index_vector_dim': '1'}
    """
    return dict(_ATTRIBUTE.findall(text))
