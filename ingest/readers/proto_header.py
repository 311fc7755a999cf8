"""What the first line of HLO text says, from a HloModuleProto."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID
from .entry_parameters import EntryParameter, argument_name
from .lines import Positions
from .proto_instructions import PARAMETER, SHARDING, ProtoInstructions, Schedule
from .proto_module import ALIASES, DEVICES, DONORS, SCHEDULE, SHAPE, Extent, ProtoModule
from .proto_shapes import ShapeReader, tuple_shape
from .proto_shardings import sharding_text
from .wire import read_messages
from .wire_bytes import Wire
from .wire_scalar import content, fields, number_of, numbers

_PARAMETERS, _RESULT = 1, 2  # of ProgramShapeProto
_REPLICAS, _PARTITIONS = 1, 2  # of DeviceAssignmentProto
_ENTRIES = 1  # of HloInputOutputAliasProto and of HloBufferDonorProto
_SEQUENCES, _KEY, _VALUE, _IDS = 1, 1, 2, 1  # of HloScheduleProto
_KINDS = {1: "may-alias", 2: "must-alias"}


def read_proto_header(data: bytes | memoryview, module: ProtoModule) -> dict[str, object]:
    """The columns of `modules` that HLO text's first line fills. Raises DumpError."""
    single = module.single
    replicas, partitions = _devices(data, single.get(DEVICES))
    return {
        "is_scheduled": SCHEDULE in single,
        "entry_signature": _signature(data, single.get(SHAPE)),
        "input_output_alias": _entries(data, single.get(ALIASES), _alias),
        "buffer_donor": _entries(data, single.get(DONORS), _donor),
        "num_partitions": partitions,
        "replica_count": replicas,
    }


def read_schedule(wire: Wire, module: ProtoModule) -> Schedule:
    """The order of the instructions; without a schedule an empty one. Raises DumpError."""
    start, end = module.single.get(SCHEDULE, (0, 0))
    schedule = read_messages(wire, np.array([start]), np.array([end]), contents=(_SEQUENCES,))
    each = schedule.each(_SEQUENCES)
    entries = read_messages(wire, each.first, each.end, numbers=(_KEY,), contents=(_VALUE,))
    keys, lists = entries.numbers(_KEY), entries.last(_VALUE)
    if len(np.unique(keys)) < len(keys):
        raise DumpError(f"the schedule at byte {start} orders a computation twice")
    owner, ids = read_messages(wire, lists.first, lists.end, lists=(_IDS,)).lists(_IDS)
    bounds = np.searchsorted(lists.message[owner], np.arange(len(keys) + 1))
    sequences = {
        key: ids[low:high]
        for key, low, high in zip(keys.tolist(), bounds[:-1], bounds[1:], strict=True)
    }
    return Schedule(start, sequences)


def entry_parameters(
    rows: ProtoInstructions, op_names: pa.ChunkedArray, module: ProtoModule
) -> dict[int, EntryParameter]:
    """What the arguments are called and how they are sharded, by number. Raises DumpError."""
    chosen = np.flatnonzero(rows.has_opcode("parameter") & (rows.computation == rows.entry))
    numbers_of = rows.messages.numbers(PARAMETER)[rows.message_of[chosen]].tolist()
    extents = _shardings(rows, chosen, numbers_of) or dict(enumerate(module.shardings))
    known: dict[bytes, str | None] = {}

    def sharding(number: int) -> str | None:
        if number not in extents:
            return None
        start, end = extents[number]
        key = bytes(rows.wire.data[start:end])
        if key not in known:
            known[key] = sharding_text(rows.wire.data, start, end)
        return known[key]

    names = op_names.take(pa.array(chosen)).to_pylist()
    return {
        number: EntryParameter(argument_name(name), sharding(number))
        for number, name in zip(numbers_of, names, strict=True)
    }


def _shardings(
    rows: ProtoInstructions, chosen: Positions, numbers_of: list[int]
) -> dict[int, Extent]:
    """Where the chosen parameters' shardings are, by number; none in the newest libtpu's."""
    found = rows.messages.last(SHARDING)
    number_of_row = dict(zip(chosen.tolist(), numbers_of, strict=True))
    row_of = rows.row_of[found.message].tolist()
    extents = zip(found.first.tolist(), found.end.tolist(), strict=True)
    return {
        number_of_row[row]: extent
        for row, extent in zip(row_of, extents, strict=True)
        if row in number_of_row
    }


def _devices(data: bytes | memoryview, extent: Extent | None) -> tuple[int, int]:
    """The numbers of replicas and partitions; 1 if the module does not say."""
    found = {_REPLICAS: 1, _PARTITIONS: 1}
    for field in fields(data, *(extent or (0, 0))):
        if field[0] in found:
            found[field[0]] = number_of(field)
            if not 0 < found[field[0]] <= LARGEST_ID:
                raise DumpError(f"the number of devices that ends at byte {field[3]} is wrong")
    return found[_REPLICAS], found[_PARTITIONS]


def _signature(data: bytes | memoryview, extent: Extent | None) -> str | None:
    """The arguments' and the result's shapes; None without them."""
    if extent is None:
        return None
    reader = ShapeReader(data)
    arguments, result = [], None
    for field in fields(data, *extent):
        if field[0] == _PARAMETERS:
            arguments.append(reader.read(*content(field)))
        elif field[0] == _RESULT:
            result = reader.read(*content(field))
    return None if result is None else f"{tuple_shape(arguments).text}->{result.text}"


def _entries(
    data: bytes | memoryview, extent: Extent | None, text: Callable[[dict[int, list[int]]], str]
) -> str | None:
    """The entries of a list as text; None of an empty list."""
    found = []
    for entry in fields(data, *(extent or (0, 0))):
        if entry[0] != _ENTRIES:
            continue
        said: dict[int, list[int]] = {}
        for field in fields(data, *content(entry)):
            said.setdefault(field[0], []).extend(numbers(data, field))
        try:
            found.append(text(said))
        except ValueError as error:
            raise DumpError(f"the entry at byte {entry[2]} has {error}") from None
    return ", ".join(found) or None


def _alias(said: dict[int, list[int]]) -> str:
    """An output and its argument: `{0}: (1, {}, may-alias)`."""
    kind = said.get(4, [0])[-1]
    if kind not in _KINDS:
        raise ValueError(f"an unknown kind of alias {kind}")
    number = said.get(2, [0])[-1]
    return f"{_index(said.get(1))}: ({number}, {_index(said.get(3))}, {_KINDS[kind]})"


def _donor(said: dict[int, list[int]]) -> str:
    """An argument whose memory may be reused: `(1, {})`."""
    return f"({said.get(1, [0])[-1]}, {_index(said.get(2))})"


def _index(index: list[int] | None) -> str:
    return "{" + ",".join(map(str, index or ())) + "}"
