"""Reader of `.hlo.pb`: a HloProto, which holds a module and its buffer assignment."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pyarrow as pa

from ...xla.errors import DumpError
from ...xla.parts import HloText, Parts
from .attributes import read_once
from .entry_parameters import EntryParameter
from .entry_shapes import entry_shapes
from .proto_assignment import read_proto_assignment
from .proto_attributes import read_proto_attributes
from .proto_frames import read_proto_frames
from .proto_header import entry_parameters, read_proto_header, read_schedule
from .proto_identity import content_digest
from .proto_instructions import ProtoInstructions, read_computations
from .proto_module import FRAMES, SCHEDULE, SHAPE, ProtoModule, find_module, has_allocations
from .proto_tables import call_table, instruction_table, operand_table
from .stack_frames import with_sources
from .wire_bytes import Wire, wire_of


@dataclass(frozen=True)
class ProtoIdentity:
    """What a HloProto is.

    content: a digest that equal messages share: neither the order of maps nor the module's number
    counts, which vary from one dump of a module to the next. has_assignment:
    False of an earlier stage, and of a program that came from JAX's compilation cache.
    is_scheduled: False of an early stage. beside_text: a digest of what HLO text may lack, the
    stack frames and the shardings of arguments.
    """

    module_name: str
    content: str
    has_assignment: bool
    is_scheduled: bool
    beside_text: str


def identify_hlo_proto(data: bytes | memoryview) -> ProtoIdentity:
    """Identify a HloProto without reading its instructions.

    Raises DumpError if the bytes are not one: a memory usage report, for example.
    """
    module = find_module(data)
    return ProtoIdentity(
        module.name,
        content_digest(data, module),
        has_allocations(data, module.assignment),
        SCHEDULE in module.single,
        _beside_text(data, module),
    )


def _beside_text(data: bytes | memoryview, module: ProtoModule) -> str:
    digest = sha256()
    for start, end in (module.single.get(FRAMES, (0, 0)), *module.shardings):
        digest.update((end - start).to_bytes(8, "little"))
        digest.update(memoryview(data)[start:end])
    return digest.hexdigest()


def read_hlo_proto(data: bytes | memoryview) -> Parts:
    """Read a HloProto: the module, and the buffer assignment if there is one.

    Raises DumpError, which names the byte of the file.
    """
    module = find_module(data)
    wire = wire_of(data)
    extents = np.frombuffer(module.computations, np.int64).reshape(-1, 2)
    rows = read_computations(wire, extents, module.entry_id, read_schedule(wire, module))
    hlo = _hlo(wire, module, rows)
    if module.assignment is None:
        return Parts(hlo=hlo)
    return Parts(hlo=hlo, buffer_assignment=read_proto_assignment(wire, *module.assignment, rows))


def _hlo(wire: Wire, module: ProtoModule, rows: ProtoInstructions) -> HloText:
    header = read_proto_header(wire.data, module)
    frames = read_proto_frames(wire, *module.single.get(FRAMES, (0, 0)))
    instructions = with_sources(instruction_table(rows), frames)
    arguments = entry_parameters(rows, instructions["op_name"], module)
    is_entry = np.zeros(len(rows.computations), bool)
    is_entry[rows.entry] = True
    return HloText(
        header=header,
        computations=pa.table({"computation": rows.computations, "is_entry": is_entry}),
        instructions=instructions,
        operands=operand_table(rows),
        calls=call_table(rows),
        stack_frames=frames,
        entry_shapes=_entry_shapes(module, header["entry_signature"], arguments),
        attributes=read_once(read_proto_attributes, rows),
    )


def _entry_shapes(
    module: ProtoModule, signature: object, arguments: dict[int, EntryParameter]
) -> pa.Table | None:
    """The arguments' and the result's arrays; None without a signature. Raises DumpError."""
    if signature is None:
        return None
    try:
        return entry_shapes(str(signature), arguments)
    except DumpError as error:
        # A binary has bytes and no lines.
        raise DumpError(f"{error}, at byte {module.single[SHAPE][0]}") from None
