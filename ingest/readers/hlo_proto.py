"""Reader of `.hlo.pb`: a HloProto, which contains a module and its buffer assignment."""

from typing import Any, Final

from ...xla.errors import LARGEST_ID, DumpError
from ...xla.parts import BufferAssignment
from ...xla.program import (
    NO_METADATA,
    NONE,
    Alias,
    Header,
    Metadata,
    Program,
    StackFrame,
)
from ...xla.shapes import TupleShape
from .backend_config import (
    BackendConfig,
    add_backend_config,
    has_gpu_words,
    read_backend_config,
)
from .entry_shapes import EntryParameter, argument_name, read_entry_shapes
from .proto_assignment import read_assignment
from .proto_attributes import DIMENSIONED_OPCODES, attribute_text
from .proto_identity import parse_hlo_proto
from .proto_schema import checked_number, damage_as_dump_error, parse
from .proto_shapes import ShapeReader, sharding_text

# The attributes by which HLO text names the computations that an opcode calls; `calls` for all
# others. Only the start of an asynchronous operation prints the computation that it runs.
_PAIRED_CALLS: Final = {
    "while": ("body", "condition"),
    "select-and-scatter": ("select", "scatter"),
}
_TO_APPLY: Final = frozenset((
    "call", "map", "reduce", "reduce-window", "reduce-scatter", "all-reduce", "all-reduce-start",
    "scatter", "sort", "topk",
))  # fmt: skip
_UNPRINTED_CALLS: Final = frozenset(("async-update", "async-done"))
_OPCODES_WITH_FIELDS: Final = frozenset(
    ("parameter", "get-tuple-element", "fusion", "custom-call", "compare", "constant")
)
_INTEGER_TYPES: Final = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")


def read_hlo_proto(content: bytes) -> tuple[Program, BufferAssignment | None]:
    """The module in a HloProto, and its buffer assignment if it has one.

    A binary has no lines: an instruction's line is its number, from 1. Raises DumpError, which
    names the instruction, or the byte of a file that cannot be parsed.
    """
    proto = parse_hlo_proto(content)
    with damage_as_dump_error():
        reader = _ModuleReader(proto.hlo_module)
        program = reader.read()
        # Only a TPU has tiled layouts.
        program.is_gpu &= not any(":T(" in text for text in reader.shape_texts.values())
        assignment = read_assignment(proto.buffer_assignment, program, reader.row_of_id)
    return program, assignment


class _ModuleReader:
    """One pass over the messages of a module. Equal bytes are decoded once.

    Attributes:
        computation_of_id, row_of_id: the numbers of computations and the rows of instructions by
            their ids in the file.
        shape_texts, metadata, configs: decoded bytes.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.program = Program()
        self.shapes = ShapeReader()
        self.computation_of_id: dict[int, int] = {}
        self.row_of_id: dict[int, int] = {}
        self.shape_texts: dict[bytes, str] = {}
        self.opcodes: dict[bytes, str] = {}
        self.metadata: dict[bytes, Metadata] = {b"": NO_METADATA}
        self.configs: dict[bytes, BackendConfig] = {}

    def read(self) -> Program:
        program, module = self.program, self.module
        program.name = module.name.decode()
        program.frames = _read_frames(module.stack_frame_index)
        messages_in_order = self._assign_rows()
        for computation, messages in zip(module.computations, messages_in_order, strict=True):
            name = _required(computation.name, "a computation has no name")
            program.add_computation(name)
            for message in messages:
                self._read_instruction(message)
            root = self.row_of_id.get(computation.root_id, NONE)
            if not program.first[-1] <= root < program.stop[-1]:
                raise DumpError(f"{name} has no root: dump the program again")
            program.root[-1] = root
        program.header = self._read_header()
        program.aliases = [
            Alias(
                tuple(entry.output_shape_index),
                entry.parameter_number,
                tuple(entry.parameter_shape_index),
            )
            for entry in module.input_output_alias.entries
        ]
        for entry in module.buffer_donor.entries:
            number = checked_number(entry, "parameter_number", "a donor")
            program.donors.append((number, tuple(entry.parameter_shape_index)))
        self._read_entry_shapes()
        return program

    def _assign_rows(self) -> list[list[Any]]:
        """Assign rows to ids. Returns the messages of each computation in text order.

        Computations are in the order of the file; a schedule orders the instructions of one.
        """
        module = self.module
        sequences = {
            id_: list(sequence.instruction_ids)
            for id_, sequence in module.schedule.sequences.items()
        }
        messages_in_order: list[list[Any]] = []
        for number, computation in enumerate(module.computations):
            if self.computation_of_id.setdefault(computation.id, number) != number:
                raise DumpError(
                    f"two computations have the id {computation.id}: dump the program again"
                )
            messages = list(computation.instructions)
            ids = [message.id for message in messages]
            sequence = sequences.pop(computation.id, None)
            if sequence is not None:
                by_id = dict(zip(ids, messages, strict=True))
                if len(sequence) != len(ids) or by_id.keys() != set(sequence):
                    raise DumpError(
                        "the schedule does not list each instruction of its computations once:"
                        " dump the program again"
                    )
                messages, ids = [by_id[id_] for id_ in sequence], sequence
            for row, id_ in enumerate(ids, len(self.row_of_id)):
                if self.row_of_id.setdefault(id_, row) != row:
                    raise DumpError(f"two instructions have the id {id_}: dump the program again")
            messages_in_order.append(messages)
        for id_ in sequences:
            raise DumpError(
                f"the schedule names a computation {id_} that is not in the file:"
                " dump the program again"
            )
        entry_id = module.entry_computation_id
        if entry_id not in self.computation_of_id:
            raise DumpError(
                f"the entry computation {entry_id} is not in the file: dump the program again"
            )
        self.program.entry = self.computation_of_id[entry_id]
        return messages_in_order

    def _read_instruction(self, message: Any) -> None:
        """Append an instruction to the program."""
        program = self.program
        name = _required(message.name, "an instruction has no name")
        opcode = self.opcodes.get(message.opcode) or self._decode_opcode(message.opcode)
        if name in program.row_of:
            raise DumpError(f"two instructions are called {name}: dump the program again")
        try:
            operands = tuple([self.row_of_id[id_] for id_ in message.operand_ids])
        except KeyError:
            raise DumpError(
                f"an operand of {name} is not in the file: dump the program again"
            ) from None
        row = program.add_instruction(
            name,
            opcode,
            self.shape_texts.get(message.shape) or self._decode_shape(message.shape, name),
            operands,
            len(program) + 1,
            metadata=self.metadata.get(message.metadata)
            or self._decode_metadata(message.metadata, name),
        )
        if message.called_computation_ids:
            self._read_calls(row, message.called_computation_ids)
        if message.backend_config:
            self._read_config(row, message.backend_config)
        if message.control_predecessor_ids:
            known = [id_ for id_ in message.control_predecessor_ids if id_ in self.row_of_id]
            if known:
                program.control_predecessors[row] = [self.row_of_id[id_] for id_ in known]
        aliasing = message.output_operand_aliasing
        if aliasing:
            program.operand_aliasing[row] = [_operand_alias(data) for data in aliasing]
        if aliasing or opcode in DIMENSIONED_OPCODES:
            attributes = attribute_text(message, opcode)
            if attributes:
                program.attributes[row] = attributes
        if opcode in _OPCODES_WITH_FIELDS:
            self._read_fields_of_opcode(row, message)

    def _read_fields_of_opcode(self, row: int, message: Any) -> None:
        """Read the fields that only one opcode has. Raises DumpError."""
        program = self.program
        name, opcode = program.names[row], program.opcode[row]
        match opcode:
            case "parameter":
                program.parameter_number[row] = checked_number(message, "parameter_number", name)
            case "get-tuple-element":
                program.tuple_index[row] = checked_number(message, "tuple_index", name)
            case "fusion":
                if message.fusion_kind:
                    program.fusion_kind[row] = message.fusion_kind.decode()
            case "custom-call":
                target = message.custom_call_target.decode()
                program.custom_call_target[row] = target
                program.is_gpu |= has_gpu_words(target)
            case "compare":
                if message.comparison_direction == b"LT":
                    program.less_than.add(row)
            case "constant":
                element_type, bracket, _ = program.shape[row].partition("[]")
                if bracket and element_type in _INTEGER_TYPES:
                    value = _integer(message.literal)
                    if value is not None:
                        program.integers[row] = value

    def _decode_opcode(self, data: bytes) -> str:
        opcode = self.opcodes[data] = _required(data, "an instruction has no opcode")
        return opcode

    def _decode_shape(self, data: bytes, name: str) -> str:
        """The text of a shape. Raises DumpError, which names the instruction."""
        if not data:
            raise DumpError(f"{name} has no shape: dump the program again")
        try:
            text = self.shape_texts[data] = str(self.shapes.read(data))
        except DumpError as error:
            raise DumpError(f"{name}: {error}") from None
        return text

    def _decode_metadata(self, data: bytes, name: str) -> Metadata:
        """The metadata; the file and line are those of the frame if it states none itself."""
        message = parse("OpMetadata", data)
        if max(message.source_line, message.stack_frame_id) > LARGEST_ID:
            raise DumpError(f"the metadata of {name} has a number over {LARGEST_ID}")
        # Some versions of libtpu drop the frames and keep their ids.
        frames = self.program.frames
        frame_id = message.stack_frame_id if frames and message.stack_frame_id > 0 else None
        frame = frames.get(frame_id or 0)
        file = message.source_file.decode() or (frame.file if frame else None)
        line = message.source_line if message.source_line > 0 else None
        if line is None and frame is not None:
            line = frame.line
        metadata = Metadata(message.op_name.decode() or None, file, line, frame_id)
        self.metadata[data] = metadata
        self.program.is_gpu |= bool(message.scheduling_name)
        return metadata

    def _read_calls(self, row: int, ids: list[int]) -> None:
        """Read the called computations, with the attributes that name them in HLO text."""
        program = self.program
        opcode = program.opcode[row]
        called = [self.computation_of_id.get(id_, NONE) for id_ in ids]
        if NONE in called:
            raise DumpError(
                f"a computation of {program.names[row]} is not in the file: dump the program again"
            )
        if opcode in _UNPRINTED_CALLS:
            return
        attributes = ["calls"] * len(called)
        if opcode in _TO_APPLY:
            attributes = ["to_apply"] * len(called)
        elif opcode == "custom-call":
            attributes = ["called_computations"] * len(called)
        elif opcode == "conditional":
            attributes = ["branch_computations"] * len(called)
            if len(called) == 2 and self._is_predicate(program.operands[row]):
                attributes = ["true_computation", "false_computation"]
        elif opcode in _PAIRED_CALLS:
            attributes[:2] = _PAIRED_CALLS[opcode]
        program.calls[row] = list(zip(attributes, called, strict=False))

    def _is_predicate(self, operands: tuple[int, ...]) -> bool:
        shapes = self.program.shape
        return 0 <= (operands or (NONE,))[0] < len(shapes) and shapes[operands[0]].startswith(
            "pred[]"
        )

    def _read_config(self, row: int, data: bytes) -> None:
        """Read a backend_config. One that is not JSON states nothing about memory."""
        if not data.startswith(b"{"):
            return
        config = self.configs.get(data)
        if config is None:
            try:
                config = self.configs[data] = read_backend_config(data.decode())
            except DumpError as error:
                name = self.program.names[row]
                raise DumpError(f"the backend_config of {name}: {error}") from None
        add_backend_config(self.program, row, config)

    def _read_header(self) -> Header:
        module, devices = self.module, self.module.device_assignment
        return Header(
            is_scheduled=module.HasField("schedule"),
            entry_signature=self._entry_signature(),
            num_partitions=checked_number(devices, "computation_count", "the devices") or 1,
            replica_count=checked_number(devices, "replica_count", "the devices") or 1,
        )

    def _entry_signature(self) -> str | None:
        """The shapes of the arguments and of the result; None without them."""
        shape = self.module.host_program_shape
        if not shape.HasField("result"):
            return None
        arguments = TupleShape(tuple([self.shapes.read(data) for data in shape.parameters]))
        return f"{arguments}->{self.shapes.read(shape.result)}"

    def _read_entry_shapes(self) -> None:
        """Read the names, shardings and shapes of the entry computation's arguments."""
        program, module = self.program, self.module
        shardings = dict(enumerate(module.spmd_parameters_shardings))
        entry = module.computations[program.entry]
        shardings_of_instructions = {
            message.parameter_number: message.sharding
            for message in entry.instructions
            if message.opcode == b"parameter" and message.HasField("sharding")
        }
        parameters: dict[int, EntryParameter] = {}
        for row in program.rows_of(program.entry):
            number = program.parameter_number[row]
            if number != NONE:
                # The newest libtpu states the shardings in the module alone.
                sharding = (shardings_of_instructions or shardings).get(number)
                parameters[number] = EntryParameter(
                    argument_name(program.metadata[row].op_name),
                    None if sharding is None else sharding_text(sharding),
                )
        signature = program.header.entry_signature
        if signature is not None:
            try:
                program.entry_shapes = read_entry_shapes(signature, parameters)
            except DumpError as error:
                # A binary has no lines.
                raise DumpError(str(error)) from None


def _required(data: bytes, complaint: str) -> str:
    """The text, unless it is empty. Raises DumpError."""
    if not data:
        raise DumpError(f"{complaint}: dump the program again")
    return data.decode()


def _operand_alias(data: bytes) -> Alias:
    pair = parse("OutputOperandAliasing", data)
    return Alias(
        tuple(pair.output_shape_index), pair.operand_index, tuple(pair.operand_shape_index)
    )


def _integer(data: bytes) -> int | None:
    """The integer in the literal of a scalar; None for types that protobuf stores as bytes."""
    literal = parse("LiteralProto", data)
    for values in (literal.s32s, literal.s64s, literal.u32s, literal.u64s):
        if values:
            return int(values[0])
    return None


def _read_frames(index: Any) -> dict[int, StackFrame]:
    """The Python frames by id. Ids count from 1, and 0 stands for none. Raises DumpError."""
    files = [name.decode() for name in index.file_names]
    functions = [name.decode() for name in index.function_names]
    locations = index.file_locations
    frames: dict[int, StackFrame] = {}
    for frame_id, frame in enumerate(index.stack_frames, 1):
        owner = f"stack frame {frame_id}"
        location_id = checked_number(frame, "file_location_id", owner)
        if not 0 < location_id <= len(locations):
            raise DumpError(f"{owner} has no file location: dump the program again")
        location = locations[location_id - 1]
        frames[frame_id] = StackFrame(
            frame_id,
            checked_number(frame, "parent_frame_id", owner) or None,
            _name_of_id(files, checked_number(location, "file_name_id", owner)),
            _name_of_id(functions, checked_number(location, "function_name_id", owner)),
            checked_number(location, "line", owner),
            checked_number(location, "end_line", owner) or None,
            checked_number(location, "column", owner) or None,
            checked_number(location, "end_column", owner) or None,
        )
    return frames


def _name_of_id(names: list[str], id_: int) -> str | None:
    return names[id_ - 1] if 0 < id_ <= len(names) else None
