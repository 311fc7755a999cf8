"""Reader of instructions: adds one line of HLO text after the other to a Program."""

import re
from typing import Final

from ...xla.errors import DumpError
from ...xla.forwarding import KNOWN_OPCODES
from ...xla.program import NONE, NOT_READ, Program, Unread
from ...xla.shapes import Shape, TupleShape, parse_shape
from .backend_config import add_backend_config
from .entry_shapes import EntryParameter, argument_name
from .instruction_attributes import AttributeReader, Attributes
from .instruction_line import operand_names, read_small_number, split_instruction
from .newer_text import NewerNames

_INTEGER_SHAPE: Final = re.compile(r"[su](?:8|16|32|64)\[\]")
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
# XLA prints no longer number of a tuple element, and Python parses long ones slowly.
_MAX_DIGITS: Final = 9


class InstructionReader:
    """Adds instructions to a program. `finish` resolves names that may be defined later.

    Attributes:
        entry_parameters: the parameters of the entry computation, by number.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.entry_parameters: dict[int, EntryParameter] = {}
        self._attributes = AttributeReader()
        self._newer = NewerNames()
        # Equal texts become one string, and each distinct one is checked once.
        self._shapes: dict[str, str] = {}
        self._opcodes: dict[str, str] = {}
        self._computations: dict[str, int] = {}
        # A computation or an instruction may be named before it is defined.
        self._calls: list[tuple[int, str, str]] = []
        self._predecessors: list[tuple[int, str]] = []
        # Row, number of the first undefined operand, opcode.
        self._undefined: list[tuple[int, int, str]] = []

    def open_computation(self, name: str, *, is_entry: bool) -> None:
        """Begin a computation: the instructions added next belong to it.

        Of two with one name, calls mean the first.
        """
        computation = self.program.add_computation(name)
        self._computations.setdefault(name, computation)
        if is_entry:
            self.program.entry = computation

    def add(self, line: str, number: int) -> None:
        """Add the instruction on a line, which has this number in the file.

        Raises DumpError if it cannot be read; then it is not added.
        """
        parts = split_instruction(line)
        program = self.program
        if parts.name in program.row_of:
            raise DumpError("two instructions have one name")
        shape = self._shapes.get(parts.shape)
        if shape is None:
            try:
                parse_shape(parts.shape)
            except ValueError:
                raise DumpError("an instruction has no shape of XLA") from None
            shape = self._shapes[parts.shape] = parts.shape
        attributes = self._attributes.read(parts.attributes)
        opcode = self._opcodes.get(parts.opcode)
        if opcode is None:
            opcode = self._opcodes[parts.opcode] = parts.opcode
            if opcode not in KNOWN_OPCODES:
                self._newer.add("opcode", opcode, number)
        parameter_number = NONE
        operands: tuple[int, ...] = ()
        if opcode == "parameter":
            parameter_number = read_small_number(parts.operands)
        elif opcode != "constant":
            operands = self.operand_rows(operand_names(parts.operands), number)
        row = program.add_instruction(
            parts.name,
            opcode,
            shape,
            operands,
            number,
            metadata=attributes.metadata,
            parameter_number=parameter_number,
            tuple_index=attributes.tuple_index,
        )
        if parts.is_root:
            program.root[-1] = row
        if NONE in operands:
            self.drop_undefined_operands(row)
        if opcode == "constant":
            if _INTEGER_SHAPE.match(shape) and _INTEGER.fullmatch(parts.operands):
                program.integers[row] = int(parts.operands)
        elif opcode == "parameter" and program.is_in_entry(row):
            name = argument_name(attributes.metadata.op_name)
            self.entry_parameters[parameter_number] = EntryParameter(name, attributes.sharding)
        self.add_attributes(row, attributes)

    def operand_rows(self, names: list[str], line: int) -> tuple[int, ...]:
        """The rows of operands; NONE for one that is not defined before in the computation.

        Raises DumpError for an element `x#1` that the tuple x does not have.
        """
        row_of, first = self.program.row_of, self.program.first[-1]
        rows = [row_of.get(name, NONE) for name in names]
        if not rows or min(rows) >= first:
            return tuple(rows)
        for index, name in enumerate(names):
            if "#" in name and rows[index] == NONE:
                rows[index] = self._add_tuple_element(name, line)
        # Names are unique in the text, but only those of the same computation are operands.
        return tuple([row if row >= first else NONE for row in rows])

    def drop_undefined_operands(self, row: int) -> None:
        """Remove NONE from an instruction's operands, and set its opcode to NOT_READ."""
        program = self.program
        operands = program.operands[row]
        self._undefined.append((row, operands.index(NONE), program.opcode[row]))
        program.opcode[row] = NOT_READ
        program.operands[row] = tuple([operand for operand in operands if operand != NONE])

    def _add_tuple_element(self, name: str, line: int) -> int:
        """Add the get-tuple-element instructions of an operand `x#1#0`. Returns the last row.

        Since JAX 0.12 XLA leaves them out of the text (`--xla_dump_compact_gte`): `%x#1` is
        element 1 of the tuple x. Here they are called `x#1` and `x#1#0`, as the text has no names
        for them, and precede the first instruction that uses them. NONE if x is not defined.
        Raises DumpError if x has no such element.
        """
        program = self.program
        owner, *numbers = name.split("#")
        row = program.row_of.get(owner, NONE)
        if row < program.first[-1]:
            return NONE
        elements: list[tuple[str, int, str]] = []
        shape = parse_shape(program.shape[row])
        for number in numbers:
            shape = _element(shape, number, f"operand {name}: {owner}")
            owner = f"{owner}#{number}"
            elements.append((owner, int(number), str(shape)))
        for element, index, text in elements:
            tuple_row, row = row, program.row_of.get(element, NONE)
            if row == NONE:
                row = program.add_instruction(
                    element, "get-tuple-element", text, (tuple_row,), line, tuple_index=index
                )
        return row

    def add_attributes(self, row: int, attributes: Attributes) -> None:
        """Add the attributes that only some instructions have."""
        program = self.program
        for attribute, callee in attributes.calls:
            self._calls.append((row, attribute, callee))
        for predecessor in attributes.control_predecessors:
            self._predecessors.append((row, predecessor))
        if attributes.dimensions:
            program.attributes[row] = attributes.dimensions
        if attributes.operand_aliasing:
            program.operand_aliasing[row] = list(attributes.operand_aliasing)
        if attributes.fusion_kind:
            program.fusion_kind[row] = attributes.fusion_kind
        if attributes.custom_call_target is not None:
            program.custom_call_target[row] = attributes.custom_call_target
        if attributes.is_less_than and program.opcode[row] == "compare":
            program.less_than.add(row)
        if attributes.config is not None:
            add_backend_config(program, row, attributes.config)

    def finish(self) -> None:
        """Resolve the names of computations and control predecessors, and add notes.

        Names that the text does not define are left out. Undefined operands are not noted in
        `Program.unread` if other lines are, because these may have defined them.
        """
        program = self.program
        program.is_gpu |= self._attributes.is_gpu
        program.not_understood += self._newer.not_understood()
        for row, attribute, name in self._calls:
            if name in self._computations:
                program.calls.setdefault(row, []).append((attribute, self._computations[name]))
        for row, name in self._predecessors:
            if name in program.row_of:
                program.control_predecessors.setdefault(row, []).append(program.row_of[name])
        if self._undefined and not program.unread:
            program.unread.append(self._unread_operands())

    def _unread_operands(self) -> Unread:
        """A note that counts the instructions with undefined operands and names the first."""
        program, count = self.program, len(self._undefined)
        row, number, opcode = self._undefined[0]
        note = (
            f"{count} of {len(program)} instructions {'have' if count > 1 else 'has'} an operand "
            f"that is not defined before: operand {number} of {opcode} {program.names[row]}"
        )
        return Unread(program.lines[row], note)


def _element(shape: Shape, number: str, owner: str) -> Shape:
    """The shape of a tuple's element. Raises DumpError if the tuple has no such element."""
    elements = shape.elements if isinstance(shape, TupleShape) else ()
    if not number.isdecimal() or len(number) > _MAX_DIGITS or int(number) >= len(elements):
        raise DumpError(f"{owner} has {len(elements)} elements")
    return elements[int(number)]
