"""The owners and op_names of plain programs as columns, until all rules are plain."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from .. import frames as plain_frames
from .. import named_program
from .. import scopes as plain_scopes
from ..names import OpName
from ..owners.candidates import RULES
from ..owners.find import find_owners
from ..owners.loops import find_loop_phis
from ..owners.readers import Readers
from ..program import Metadata, StackFrame
from ..values import Values as PlainValues
from .bridge import plain_analysis
from .dataflow import Dataflow
from .liveness import Derived
from .parts import HloText
from .program import NONE, Ints, Mask, NumberedProgram

COPIES = tuple(named_program.COPIES)
CONVERTS_OR_RESHAPES = tuple(named_program.CONVERTS_OR_RESHAPES)
GATHERS = tuple(named_program.GATHERS)
OPERAND, WEAK = RULES.index("operand"), RULES.index("weak")


@dataclass(frozen=True)
class OpNames:
    """The op_names of a program: see `names.OpName`; `code` is by instruction."""

    code: Ints
    texts: list[str]
    kind: Ints
    has_rematted: Mask
    has_transpose: Mask
    has_jvp: Mask
    is_relative: Mask
    loops: Ints
    operation: list[str]

    @property
    def program_of(self) -> Ints:
        """The number of each op_name's program."""
        return np.zeros(len(self.texts), np.int64)

    def by_row(self, mask: Mask) -> Mask:
        """A mask by distinct op_name as a mask by instruction; no op_name is False."""
        by_row: Mask = np.append(mask, False)[self.code]
        return by_row


def op_name_columns(op_names: list[OpName]) -> OpNames:
    """The columns of op_names."""
    distinct = [op_name for op_name in dict.fromkeys(op_names) if op_name.text is not None]
    number = {op_name: code for code, op_name in enumerate(distinct)}
    return OpNames(
        code=np.array([number.get(op_name, NONE) for op_name in op_names], np.int64),
        texts=[op_name.text or "" for op_name in distinct],
        kind=np.array([int(op_name.kind) for op_name in op_names], np.int64),
        has_rematted=np.array([op_name.is_rematerialised for op_name in distinct], bool),
        has_transpose=np.array([op_name.is_backward for op_name in distinct], bool),
        has_jvp=np.array([op_name.is_forward for op_name in distinct], bool),
        is_relative=np.array([op_name.is_relative for op_name in distinct], bool),
        loops=np.array([op_name.loop_count for op_name in distinct], np.int64),
        operation=[op_name.operation for op_name in distinct],
    )


class Named:
    """Columns of a `NamedProgram`, which is `plain`."""

    def __init__(self, hlo: HloText, derived: Derived) -> None:
        analysis = plain_analysis(derived, hlo)
        self.program: NumberedProgram = derived.program
        self.dataflow: Dataflow = derived.dataflow
        self.plain = named_program.NamedProgram(analysis.program, analysis.flow)
        self.values = PlainValues(self.plain)
        self.readers = Readers(self.values)
        self.names = op_name_columns(self.plain.op_name)
        self.caller: Ints = np.array(self.plain.caller, np.int64)
        self.is_entry_parameter: Mask = np.array(self.plain.is_argument, bool)
        self.owns: Mask = np.array(self.plain.owns, bool)

    @cached_property
    def takes_a_slice(self) -> Mask:
        """Instructions whose op_name ends in a slicing primitive of JAX."""
        return np.array([op_name.is_slice for op_name in self.plain.op_name], bool)

    @cached_property
    def elements(self) -> Ints:
        """How many elements the array of each instruction has; 0 for a tuple."""
        return np.array(self.plain.elements, np.int64)

    def value_of(self, rows: Ints) -> Ints:
        """The value of each instruction's whole result; NONE inside of fusions."""
        return np.array([self.plain.value_of(row) for row in rows.tolist()], np.int64)

    def scopes(self) -> tuple[Ints, pa.Table]:
        """The scope_id of each instruction, and the table `scopes`."""
        found = plain_scopes.find_scopes(self.plain.program, self.plain.op_name, self.plain.caller)
        columns = {
            name: pa.array([getattr(row, name) for row in found.rows], pa.large_string())
            for name in plain_scopes.Scope._fields
        }
        ids = pa.array(range(len(found.rows)), pa.int32())
        return np.array(found.scope_id, np.int64), pa.table({"scope_id": ids, **columns})


class Values:
    """Columns of the `Values` of a program."""

    def __init__(self, named: Named) -> None:
        self.named, self._plain = named, named.values
        self.row: Ints = named.dataflow.instruction
        self.is_array: Mask = np.array([array is not None for array in self._plain.array], bool)

    def of(self, *opcodes: str) -> Ints:
        """The arrays that instructions with one of these opcodes define."""
        has_opcode = self.named.program.opcode.is_one_of(*opcodes)[self.row]
        return np.flatnonzero(has_opcode & self.is_array)

    def operand(self, values: Ints, number: int) -> Ints:
        """The value of operand `number` of each value's instruction; NONE if there is none."""
        return np.array([self._plain.operand(v, number) for v in values.tolist()], np.int64)

    @cached_property
    def bytes(self) -> Ints:
        """The bytes of each array's elements, without padding; 0 for a tuple."""
        return np.array(self._plain.bytes, np.int64)

    @cached_property
    def elements(self) -> Ints:
        """How many elements each array has; 0 for a tuple."""
        return np.array(self._plain.elements, np.int64)

    @cached_property
    def space(self) -> Ints:
        """The memory space of each array; 0 for a tuple."""
        arrays = self._plain.array
        return np.array([0 if a is None else a.memory_space for a in arrays], np.int64)

    @cached_property
    def is_float(self) -> Mask:
        """Which arrays hold floating-point numbers."""
        floats = ("f", "bf")
        arrays = self._plain.array
        return np.array([bool(a and a.element_type.startswith(floats)) for a in arrays], bool)

    def plain_shape(self, slots: Ints) -> Ints:
        """A number for the element type and dimensions at each of these slots; 0 for a tuple."""
        codes: dict[tuple[str, tuple[int, ...]], int] = {}
        all_slots = self.named.dataflow.slots
        shapes = ((array.element_type, array.dimensions) for array in all_slots.trees.arrays)
        numbers = [codes.setdefault(shape, len(codes) + 1) for shape in shapes]
        by_slot: Ints = np.array([*numbers, 0], np.int64)[all_slots.array[slots]]
        return by_slot


class Phis:
    """The phis of loops and the values that the bodies give."""

    def __init__(self, values: Values) -> None:
        phis = find_loop_phis(values.named.values)
        self.loop_phis: Ints = np.array(list(phis), np.int64)
        self.computed: Ints = np.array([phi.computed for phi in phis.values()], np.int64)


def inner_readers(named: Named, users: Ints, operands: Ints) -> Ints:
    """The instruction that reads each operand: the user, or one inside of the fusion."""
    pairs = zip(users.tolist(), operands.tolist(), strict=True)
    return np.array([named.readers.inner_reader(*pair) for pair in pairs], np.int64)


@dataclass(frozen=True)
class Origins:
    """Columns of `Owners`; `rule` is the place in RULES."""

    instruction: Ints
    rule: Ints
    moved_from: Ints


def find_origins(named: Named, alias_set: Ints) -> Origins:
    """The owner of every array."""
    owners = find_owners(named.values, alias_set.tolist(), named.readers)
    rules = {rule: number for number, rule in enumerate(RULES)}
    return Origins(
        np.array(owners.row, np.int64),
        np.array([NONE if rule is None else rules[rule] for rule in owners.rule], np.int64),
        np.array(owners.source, np.int64),
    )


def with_own_lines(
    instructions: pa.Table, frames: pa.Table | None, user_code: tuple[str, ...] = ()
) -> pa.Table:
    """Instructions whose line is that of the user's code: see `frames.UserLine`."""
    names = ("source_file", "source_line", "stack_frame_id")
    columns = [instructions[name].to_pylist() for name in names]
    metadata = [Metadata(None, *values) for values in zip(*columns, strict=True)]
    by_id: dict[int, StackFrame] = {}
    for frame in [] if frames is None else frames.to_pylist():
        fields = (frame.get(name) for name in StackFrame._fields)
        by_id.setdefault(frame["stack_frame_id"], StackFrame(*fields))
    lines = plain_frames.find_user_lines(metadata, by_id, tuple(user_code))
    types = [instructions.schema.field(name).type for name in names]
    types += types[:2]
    for name, type_, values in zip(
        plain_frames.UserLine._fields,
        types,
        zip(*lines, strict=True) if lines else [()] * 5,
        strict=True,
    ):
        column = pa.array(values, pa.large_string() if pa.types.is_dictionary(type_) else type_)
        column = column.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else column
        if name in instructions.column_names:
            at = instructions.schema.get_field_index(name)
            instructions = instructions.set_column(at, name, column)
        else:
            instructions = instructions.append_column(name, column)
    return instructions
