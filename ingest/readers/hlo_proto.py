"""Reader of `.hlo.pb`: a HloProto, which holds a module and its buffer assignment.

Shapes, attributes and dimensions are printed as HLO text prints them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.columns.parts import BufferAssignment, HloAttributes, HloText, Parts
from ...xla.errors import LARGEST_ID, LARGEST_SIZE, DumpError
from ...xla.shapes import shape_columns
from .hlo_text import (
    GPU_WORDS,
    INTEGER_SCALAR,
    EntryParameter,
    aliasing_operands,
    argument_name,
    entry_shapes,
    known_trip_counts,
    loop_facts,
    placed,
    read_once,
    scoped_memory,
    with_sources,
)
from .line_columns import Mask, Positions, as_numpy
from .mosaic import BODY, kernel_parts
from .proto_identity import find_module
from .proto_schema import Columns, UnparsableError, checked_texts, damage_located, distinct, parse

# XLA's shapes and shardings as protocol buffers, printed as HLO text prints them.

# XLA's numbers of element types: `PrimitiveType` in xla_data.proto.
_TUPLE, _OPAQUE, _TOKEN, _BUFFER = 13, 14, 17, 34
_ELEMENT_TYPES = {
    **dict(zip(range(1, 6), ("pred", "s8", "s16", "s32", "s64"), strict=True)),
    **dict(zip(range(6, 10), ("u8", "u16", "u32", "u64"), strict=True)),
    **dict(zip(range(10, 15), ("f16", "f32", "f64", "tuple", "opaque"), strict=True)),
    **dict(zip(range(15, 19), ("c64", "bf16", "token", "c128"), strict=True)),
    **dict(zip(range(19, 23), ("f8e5m2", "f8e4m3fn", "s4", "u4"), strict=True)),
    **dict(zip(range(23, 26), ("f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"), strict=True)),
    **dict(zip(range(26, 30), ("s2", "u2", "f8e4m3", "f8e3m4"), strict=True)),
    **dict(zip(range(30, 34), ("s1", "u1", "f4e2m1fn", "f8e8m0fnu"), strict=True)),
}
_UNBOUNDED = _COMBINE = -(2**63)  # a dimension's `?` and a tile's `*`
_MOST_DEEP = 100  # as of shapes in text
_TEXT_PER_BYTE = 16

_REPLICATED, _MAXIMAL, _SHARDINGS, _OTHER, _MANUAL, _UNKNOWN, _UNREDUCED = range(7)
_WHOLE = {
    _REPLICATED: "replicated",
    _MANUAL: "manual",
    _UNKNOWN: "unknown",
    _UNREDUCED: "unreduced",
}
_SUBGROUPS = {_REPLICATED: "replicated", _MAXIMAL: "maximal", _MANUAL: "manual"}
_SUBGROUPS[_UNREDUCED] = "unreduced"


@dataclass(frozen=True, slots=True)
class ShapeText:
    """A shape as text, with and without layouts; `elements` are a tuple's, None of an array."""

    text: str
    without_layout: str
    elements: tuple["ShapeText", ...] | None = None

    def at(self, index: tuple[int, ...]) -> "ShapeText | None":
        """The sub-shape at a shape index; None if there is none."""
        found = self
        for number in index:
            if found.elements is None or not 0 <= number < len(found.elements):
                return None
            found = found.elements[number]
        return found

    def leaves(self, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], "ShapeText"]]:
        """The sub-shapes that are not tuples, with their indices."""
        if self.elements is None:
            yield index, self
            return
        for number, element in enumerate(self.elements):
            yield from element.leaves((*index, number))


class ShapeReader:
    """Reads a file's shapes; equal bytes are read once, because programs repeat few shapes."""

    def __init__(self, file_bytes: int) -> None:
        self._known: dict[bytes, ShapeText] = {}
        # Each level of nested tuples repeats the text of the levels within.
        self._room = _TEXT_PER_BYTE * file_bytes

    def read(self, data: bytes, depth: int = 0) -> ShapeText:
        """The shape that a ShapeProto says. Raises DumpError."""
        found = self._known.get(data)
        if found is None:
            found = self._known[data] = self._read(parse("ShapeProto", data), depth)
            self._room -= len(found.text)
            if self._room < 0:
                raise DumpError("the tuples in a shape nest too deep: the file is damaged")
        return found

    def _read(self, shape: Any, depth: int) -> ShapeText:
        if depth > _MOST_DEEP:
            raise DumpError(f"a shape has over {_MOST_DEEP} nested tuples: the file is damaged")
        elements = [self.read(element, depth + 1) for element in shape.tuple_shapes]
        if shape.element_type == _TUPLE:
            return tuple_shape(elements)
        if shape.element_type == _BUFFER:
            if len(elements) != 1:
                raise DumpError("a buffer type is not of one array: the file is damaged")
            (of,) = elements
            return ShapeText(f"b({of.text})", f"b({of.without_layout})")
        name = _ELEMENT_TYPES.get(shape.element_type, f"type{shape.element_type}")
        sizes, dynamic = shape.dimensions, shape.is_dynamic_dimension
        texts = [_size_text(size, i < len(dynamic) and dynamic[i]) for i, size in enumerate(sizes)]
        plain = f"{name}[{','.join(texts)}]"
        if not shape.HasField("layout") or shape.element_type in (_OPAQUE, _TOKEN):
            return ShapeText(plain, plain)
        return ShapeText(plain + self._layout(shape.layout, bool(sizes), depth), plain)

    def _layout(self, layout: Any, has_dimensions: bool, depth: int) -> str:
        """A layout in braces; of a scalar without properties nothing."""
        if any(layout.dim_level_types):
            raise DumpError("a layout is sparse, which memhouse cannot read")
        tiles = "".join(f"({','.join(map(_tile_text, t.dimensions))})" for t in layout.tiles)
        tail, bits = layout.tail_padding_alignment_in_elements, layout.element_size_in_bits
        index, pointer = layout.index_primitive_type, layout.pointer_primitive_type
        space, prefix = layout.memory_space, layout.dynamic_shape_metadata_prefix_bytes
        splits = "".join(
            f"({split.dimension}:{','.join(map(str, split.split_indices))})"
            for split in layout.split_configs
        )
        physical = ""
        if layout.HasField("physical_shape"):
            physical = self.read(layout.physical_shape, depth + 1).text
        properties = "".join(
            (
                f"T{tiles}" if tiles else "",
                f"L({tail})" if tail not in (0, 1) else "",
                f"#({_ELEMENT_TYPES.get(index, index)})" if index else "",
                f"*({_ELEMENT_TYPES.get(pointer, pointer)})" if pointer else "",
                f"E({bits})" if bits else "",
                f"S({space})" if space else "",
                f"SC{splits}" if splits else "",
                f"P({physical})" if physical else "",
                f"M({prefix})" if prefix else "",
            )
        )
        if not properties and not has_dimensions:
            return ""
        minor_to_major = ",".join(map(str, layout.minor_to_major))
        return f"{{{minor_to_major}:{properties}}}" if properties else f"{{{minor_to_major}}}"


def tuple_shape(elements: list[ShapeText]) -> ShapeText:
    """The tuple of some shapes: every fifth element is numbered."""
    return ShapeText(
        f"({numbered_list([element.text for element in elements])})",
        f"({numbered_list([element.without_layout for element in elements])})",
        tuple(elements),
    )


def numbered_list(texts: list[str]) -> str:
    """Texts with commas between them; every fifth is numbered, as XLA does in long lists."""
    return ", ".join(
        f"/*index={place}*/{text}" if place and place % 5 == 0 else text
        for place, text in enumerate(texts)
    )


def _size_text(size: int, is_dynamic: int) -> str:
    if size == _UNBOUNDED:
        return "?"
    return f"<={size}" if is_dynamic else str(size)


def _tile_text(size: int) -> str:
    return "*" if size == _COMBINE else str(size)


def sharding_text(data: bytes, *, depth: int = 0) -> str | None:
    """An OpSharding as text, such as `{devices=[4,1]<=[4]}`; None if it names mesh axes.

    Raises DumpError.
    """
    if depth > 1:
        raise DumpError("a sharding's tuples are nested: the file is damaged")
    sharding = parse("OpSharding", data)
    if sharding.named_sharding:
        return None
    if sharding.type == _SHARDINGS:
        elements = [sharding_text(e, depth=depth + 1) for e in sharding.tuple_shardings]
        texts = [text for text in elements if text is not None]
        return f"{{{numbered_list(texts)}}}" if len(texts) == len(elements) else None
    like = "like" if sharding.shard_group_type else "as"
    group = f" shard_{like} {sharding.shard_group_id}" if sharding.is_shard_group else ""
    return f"{{{_leaf(sharding)}{group}}}"


def _leaf(sharding: Any) -> str:
    if sharding.type in _WHOLE:
        return _WHOLE[sharding.type]
    devices = _joined(sharding.tile_assignment_devices)
    if sharding.type == _MAXIMAL:
        return f"maximal device={devices}"
    reshape, transpose = sharding.iota_reshape_dims, sharding.iota_transpose_perm
    if reshape:
        devices = f"<=[{_joined(reshape)}]"
        # XLA does not print a transposition of one dimension, which changes nothing.
        if len(transpose) > 1:
            devices += f"T({_joined(transpose)})"
    text = f"devices=[{_joined(sharding.tile_assignment_dimensions)}]{devices}"
    if sharding.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    if sharding.last_tile_dims:
        types = [_SUBGROUPS.get(type_, "error_type.") for type_ in sharding.last_tile_dims]
        text += f" last_tile_dims={{{', '.join(types)}}}"
    return text


def _joined(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


# Computations and instructions of a HloModuleProto, in the order of HLO text.

# What calls a computation by `to_apply`; all that is not here nor below calls by `calls`.
_APPLYING = (
    "call",
    "map",
    "reduce",
    "reduce-window",
    "reduce-scatter",
    "all-reduce",
    "all-reduce-start",
    "scatter",
    "sort",
    "topk",
)
# What calls by several attributes, in the order of the called computations.
_CALLING_PAIRS = {
    "while": ("body", "condition"),
    "select-and-scatter": ("select", "scatter"),
}
_BRANCHES = ("true_computation", "false_computation")


@dataclass(frozen=True)
class ProtoInstructions:
    """A module's instructions: a row for each, in the order of HLO text.

    data: the file's bytes; messages: the instructions' messages, in the order of the file;
    message_of: each row's message; row_of: each message's row; shape: each row's code in `shapes`;
    computation: each row's place in `computations`, which are names; root: the row of each
    computation's root.
    """

    data: bytes | memoryview
    messages: Columns
    message_of: Positions
    row_of: Positions
    names: pa.LargeStringArray
    opcodes: pa.DictionaryArray
    shape: Positions
    shapes: list[ShapeText]
    computation: Positions
    computations: pa.LargeStringArray
    computation_ids: Positions
    root: Positions
    entry: int
    sorted_ids: Positions
    rows_by_id: Positions

    def __len__(self) -> int:
        return len(self.message_of)

    def has_opcode(self, *opcodes: str) -> Mask:
        """Which rows have one of these opcodes."""
        chosen = pc.is_in(self.opcodes.dictionary, value_set=pa.array(opcodes, pa.large_string()))
        has: Mask = as_numpy(chosen)[self.opcodes.indices.to_numpy()]
        return has

    def find(self, ids: Positions) -> Positions:
        """The rows of the instructions with these ids; -1 where there is none."""
        return found_in(self.sorted_ids, self.rows_by_id, ids)

    @cached_property
    def operands(self) -> tuple[Positions, Positions]:
        """The operands in the order of the rows: whose, and which row. Raises DumpError."""
        owner, ids = self._listed("operand_ids")
        operand = self.find(ids)
        self._require(operand >= 0, owner, "an operand")
        return owner, operand

    @cached_property
    def control(self) -> tuple[Positions, Positions]:
        """What must run before what, though nothing is read: whose, and which row."""
        owner, ids = self._listed("control_predecessor_ids")
        predecessor = self.find(ids)
        return owner[predecessor >= 0], predecessor[predecessor >= 0]

    @cached_property
    def calls(self) -> tuple[Positions, Positions]:
        """The called computations in the order of the rows: whose, and which.

        Raises DumpError.
        """
        owner, ids = self._listed("called_computation_ids")
        order = np.argsort(self.computation_ids)
        called = found_in(self.computation_ids[order], order, ids)
        self._require(called >= 0, owner, "a computation")
        return owner, called

    def _require(self, is_there: Mask, owner: Positions, what: str) -> None:
        """Raise DumpError at the first owner of what is not in the file."""
        if not is_there.all():
            row = int(owner[np.argmin(is_there)])
            raise DumpError(
                f"{what} of {self.names[row]} is not in the file: dump the program again"
            )

    def _listed(self, field: str) -> tuple[Positions, Positions]:
        """A repeated field in the order of the rows: row, number."""
        message, numbers = self.messages.lists(field)
        owner = self.row_of[message]
        order = np.argsort(owner, kind="stable")
        return owner[order], numbers[order]


def place_within(owner: Positions) -> Positions:
    """The place of each item among those of its owner; items of one owner stand together."""
    return np.arange(len(owner)) - np.searchsorted(owner, owner)


def read_computations(module: Any, data: bytes | memoryview) -> ProtoInstructions:
    """Read the computations of a HloModuleProto, which is in the file `data`. Raises DumpError."""
    found = module.computations
    names = _required(
        checked_texts(pa.array([c.name for c in found], pa.large_binary()), "a computation's name"),
        "a computation has no name",
    )
    ids = np.array([computation.id for computation in found], np.int64)
    if len(doubled := _doubled(ids)):
        raise DumpError(f"two computations have the id {doubled[0]}: dump the program again")
    entry = np.flatnonzero(ids == module.entry_computation_id)
    if not len(entry):
        raise DumpError(
            f"the entry computation {module.entry_computation_id} is not in the file:"
            " dump the program again"
        )
    counts = [len(computation.instructions) for computation in found]
    computation = np.repeat(np.arange(len(found)), counts)
    messages = Columns(
        "HloInstructionProto", (each for computation in found for each in computation.instructions)
    )
    instruction_names = _required(
        messages.texts("name", "an instruction's name"), "an instruction has no name"
    )
    opcodes = _required(messages.texts("opcode", "an opcode"), "an instruction has no opcode")
    instruction_ids = messages.numbers("id")
    if len(doubled := _doubled(instruction_ids)):
        raise DumpError(f"two instructions have the id {doubled[0]}: dump the program again")
    order = np.argsort(instruction_ids, kind="stable")
    sorted_ids = instruction_ids[order]
    row_of = _text_order(computation, sorted_ids, order, ids, _sequences(module.schedule))
    message_of = np.empty(len(row_of), np.int64)
    message_of[row_of] = np.arange(len(row_of))
    rows_by_id = row_of[order]
    root = found_in(sorted_ids, rows_by_id, np.array([c.root_id for c in found], np.int64))
    # Computations are in the order of the file, as in the text.
    wrong = (root < 0) | (computation[root] != np.arange(len(root))) if len(computation) else True
    if np.any(wrong):
        raise DumpError(f"{names[int(np.argmax(wrong))]} has no root: dump the program again")
    taken = pa.array(message_of)
    shape, shapes = _shapes(messages, instruction_names, len(data))
    return ProtoInstructions(
        data,
        messages,
        message_of,
        row_of,
        names=instruction_names.take(taken),
        opcodes=opcodes.dictionary_encode().take(taken),
        shape=shape[message_of],
        shapes=shapes,
        computation=computation,
        computations=names,
        computation_ids=ids,
        root=root,
        entry=int(entry[0]),
        sorted_ids=sorted_ids,
        rows_by_id=rows_by_id,
    )


def _required(texts: pa.LargeStringArray, complaint: str) -> pa.LargeStringArray:
    """The texts, if none is empty. Raises DumpError."""
    if len(texts) and pc.min(pc.binary_length(texts)).as_py() == 0:
        raise DumpError(f"{complaint}: dump the program again")
    return texts


def _doubled(ids: Positions) -> Positions:
    """The ids that are there more than once."""
    found, counts = np.unique(ids, return_counts=True)
    return found[counts > 1]


def _sequences(schedule: Any) -> dict[int, Positions]:
    """The instructions' ids in the order of the schedule, by computation's id."""
    sequences = {
        entry.key: np.array(list(entry.value.instruction_ids), np.int64)
        for entry in schedule.sequences
    }
    if len(sequences) < len(schedule.sequences):
        raise DumpError("the schedule orders a computation twice: dump the program again")
    return sequences


def found_in(sorted_ids: Positions, values: Positions, ids: Positions) -> Positions:
    """The value of each id, -1 of an unknown one."""
    if not len(sorted_ids):
        return np.full(len(ids), -1)
    at = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.where(sorted_ids[at] == ids, values[at], -1)


def _text_order(
    computation: Positions,
    sorted_ids: Positions,
    order: Positions,
    computation_ids: Positions,
    sequences: dict[int, Positions],
) -> Positions:
    """The row of each instruction's message in HLO text: a schedule orders its computation."""
    row_of = np.arange(len(computation))
    if not sequences:
        return row_of
    first = np.searchsorted(computation, np.arange(len(computation_ids)))
    count = np.bincount(computation, minlength=len(computation_ids))
    place = {number: at for at, number in enumerate(computation_ids.tolist())}
    unknown = [number for number in sequences if number not in place]
    if unknown:
        raise DumpError(
            f"the schedule names a computation {unknown[0]} that is not in the file:"
            " dump the program again"
        )
    owner = np.array([place[number] for number in sequences], np.int64)
    lengths = np.array([len(ids) for ids in sequences.values()], np.int64)
    ids = np.concatenate(list(sequences.values()))
    scheduled = found_in(sorted_ids, order, ids)
    of = np.repeat(owner, lengths)
    wrong = scheduled < 0
    wrong |= computation[np.maximum(scheduled, 0)] != of if len(computation) else wrong
    whole = np.array_equal(lengths, count[owner]) and len(np.unique(scheduled)) == len(scheduled)
    if wrong.any() or not whole:
        raise DumpError(
            "the schedule does not list each instruction of its computations once:"
            " dump the program again"
        )
    begin = np.cumsum(lengths) - lengths
    row_of[scheduled] = np.arange(len(ids)) - np.repeat(begin - first[owner], lengths)
    return row_of


def _shapes(
    messages: Columns, names: pa.LargeStringArray, file_bytes: int
) -> tuple[Positions, list[ShapeText]]:
    """The shape of each message: a code, and the shapes. Raises DumpError."""
    _, found = messages.contents("shape")
    if len(found) < messages.count:
        name = names[int(np.argmin(messages.has("shape")))]
        raise DumpError(f"{name} has no shape: dump the program again")
    code, each = distinct(found)
    reader = ShapeReader(file_bytes)
    shapes: list[ShapeText] = []
    try:
        shapes.extend(map(reader.read, each))
    except UnparsableError:
        raise
    except DumpError as error:
        raise DumpError(f"{names[int(np.argmax(code == len(shapes)))]}: {error}") from None
    return code, shapes


def instruction_table(rows: ProtoInstructions) -> pa.Table:
    """The instructions' columns as in `HloText.instructions`. Raises DumpError."""
    texts = pa.array([shape.text for shape in rows.shapes], pa.large_string())
    return pa.table(
        {
            "instruction": rows.names,
            "opcode": rows.opcodes.cast(pa.large_string()),
            "shape": texts.take(pa.array(rows.shape)),
            **_metadata(rows),
            "custom_call_target": _targets(rows),
            **_scoped(rows),
            "computation": rows.computations.take(pa.array(rows.computation)),
        }
    )


def _metadata(rows: ProtoInstructions) -> dict[str, pa.Array]:
    """Where instructions come from. Many share one metadata, so equal bytes are read once."""
    message, found = rows.messages.contents("metadata")
    code, each = distinct(found)
    read = Columns("OpMetadata", each)
    at = np.full(len(rows), -1)
    at[rows.row_of[message]] = code
    taken = pa.array(at, mask=at < 0)

    def text(field: str) -> pa.Array:
        column = read.texts(field, "the metadata of an instruction")
        return pc.if_else(pc.equal(pc.binary_length(column), 0), None, column).take(taken)

    def count(field: str) -> pa.Array:
        column = read.numbers(field)
        if (column > LARGEST_ID).any():
            row = int(np.argmax(at == np.argmax(column > LARGEST_ID)))
            raise DumpError(f"the metadata of {rows.names[row]} has a number over {LARGEST_ID}")
        return pa.array(column, pa.int32(), mask=column <= 0).take(taken)

    return {
        "op_name": text("op_name"),
        "source_file": text("source_file"),
        "source_line": count("source_line"),
        "stack_frame_id": count("stack_frame_id"),
    }


def _targets(rows: ProtoInstructions) -> pa.Array:
    """The kernels of custom calls; null of all else."""
    chosen = rows.message_of[np.flatnonzero(rows.has_opcode("custom-call"))]
    texts = rows.messages.texts("custom_call_target", "the target of a custom call")
    return placed(texts.take(pa.array(chosen)), rows.row_of[chosen], len(rows))


def _scoped(rows: ProtoInstructions) -> dict[str, pa.Array]:
    at, configs = backend_configs(rows, b'scoped_memory_configs":[{')
    found = scoped_memory(configs)
    for column in (found.reserved, found.used):
        wrong = as_numpy(pc.fill_null(pc.greater(column, LARGEST_SIZE), False))
        if wrong.any():
            name = rows.names[int(at[np.argmax(wrong)])]
            raise DumpError(f"the backend_config of {name} has a number over {LARGEST_SIZE}")
    return found.placed(at, len(rows))


def read_proto_kernels(rows: ProtoInstructions) -> pa.Table:
    """What Pallas kernels keep on chip, see `kernel_parts`."""
    at, configs = backend_configs(rows, BODY.encode())
    return kernel_parts(rows.names.take(pa.array(at)), configs)


def backend_configs(
    rows: ProtoInstructions, holding: bytes
) -> tuple[Positions, pa.LargeStringArray]:
    """The backend_configs that hold some bytes: rows, texts.

    Raises DumpError for one that is not UTF-8.
    """
    message, configs = rows.messages.contents("backend_config")
    # What is not JSON is printed in quotes, where HLO text says nothing more of it.
    is_chosen = pc.and_(pc.starts_with(configs, b"{"), pc.match_substring(configs, holding))
    texts = checked_texts(configs.filter(is_chosen), "a backend_config")
    return rows.row_of[message[as_numpy(is_chosen)]], texts


def operand_table(rows: ProtoInstructions) -> pa.Table:
    """The operands as in `HloText.operands`. Raises DumpError."""
    owner, operand = rows.operands
    return pa.table(
        {
            "instruction": rows.names.take(pa.array(owner)),
            "operand_number": pa.array(place_within(owner), pa.int32()),
            "operand": rows.names.take(pa.array(operand)),
        }
    )


def control_table(rows: ProtoInstructions) -> pa.Table:
    """The control dependencies as in `HloText.control`."""
    owner, predecessor = rows.control
    names = {"instruction": owner, "predecessor": predecessor}
    return pa.table({name: rows.names.take(pa.array(of)) for name, of in names.items()})


def call_table(rows: ProtoInstructions) -> pa.Table:
    """The calls as in `HloText.calls`. Raises DumpError."""
    owner, called = rows.calls
    place = place_within(owner)
    attribute = np.full(len(owner), "calls", object)
    attribute[rows.has_opcode(*_APPLYING)[owner]] = "to_apply"
    attribute[rows.has_opcode("custom-call")[owner]] = "called_computations"
    count = np.bincount(owner, minlength=len(rows))[owner]
    for opcode, names in _CALLING_PAIRS.items():
        of = rows.has_opcode(opcode)[owner]
        for number, name in enumerate(names):
            attribute[of & (place == number)] = name
    conditional = rows.has_opcode("conditional")[owner]
    attribute[conditional] = "branch_computations"
    by_predicate = conditional & (count == 2) & _is_predicate(rows)[owner]
    for number, name in enumerate(_BRANCHES):
        attribute[by_predicate & (place == number)] = name
    # Only the start of an asynchronous call prints what the whole of it runs.
    shown = ~rows.has_opcode("async-update", "async-done")[owner]
    return pa.table(
        {
            "instruction": rows.names.take(pa.array(owner)),
            "attribute": pa.array(attribute, pa.large_string()),
            "computation": rows.computations.take(pa.array(called)),
        }
    ).filter(pa.array(shown))


def _is_predicate(rows: ProtoInstructions) -> Mask:
    """Whose first operand is a truth value."""
    owner, operand = rows.operands
    first = place_within(owner) == 0
    is_predicate = np.array([s.without_layout == "pred[]" for s in rows.shapes] or [False], bool)
    found = np.zeros(len(rows), bool)
    found[owner[first]] = is_predicate[rows.shape[operand[first]]]
    return found


# What a HloModuleProto's instructions do to dimensions, printed as HLO text prints it.

# A text of each instruction that has one: the rows, the texts.
_Column = tuple[Positions, pa.Array]

# These print their dimensions even where they have none.
_DIMENSIONED = ("broadcast", "concatenate", "map", "reduce", "reverse", "transpose")
# The lists of dimension numbers, in the order of the text, and their names there; those that the
# text leaves out if they are empty end in `?`.
_DOT = {
    "lhs_batch_dimensions": "lhs_batch_dims?",
    "lhs_contracting_dimensions": "lhs_contracting_dims",
    "rhs_batch_dimensions": "rhs_batch_dims?",
    "rhs_contracting_dimensions": "rhs_contracting_dims",
}
_GATHER = {
    "offset_dims": "offset_dims",
    "collapsed_slice_dims": "collapsed_slice_dims",
    "start_index_map": "start_index_map",
    "operand_batching_dims": "operand_batching_dims?",
    "start_indices_batching_dims": "start_indices_batching_dims?",
}
_SCATTER = {
    "update_window_dims": "update_window_dims",
    "inserted_window_dims": "inserted_window_dims",
    "scatter_dims_to_operand_dims": "scatter_dims_to_operand_dims",
    "input_batching_dims": "input_batching_dims?",
    "scatter_indices_batching_dims": "scatter_indices_batching_dims?",
}


def dimension_attributes(rows: ProtoInstructions) -> pa.Array:
    """The column `attributes` of the warehouse's `instructions`. Raises DumpError."""
    texts: list[_Column] = [
        _dimensions(rows),
        _repeated(rows, "slice_dimensions", "SliceDimensions", "slice", _slice),
        _once(rows, "padding_config", "PaddingConfig", _padding),
        _listed(rows, "dynamic_slice_sizes", "dynamic_slice_sizes"),
        _once(rows, "window", "Window", _window),
        _once(
            rows,
            "convolution_dimension_numbers",
            "ConvolutionDimensionNumbers",
            _convolution,
        ),
        _groups(rows, "feature_group_count"),
        _groups(rows, "batch_group_count"),
        _once(
            rows, "dot_dimension_numbers", "DotDimensionNumbers", lambda dot: _numbered(dot, _DOT)
        ),
        _once(
            rows,
            "gather_dimension_numbers",
            "GatherDimensionNumbers",
            lambda gather: _indexed(gather, _GATHER),
        ),
        _once(
            rows,
            "scatter_dimension_numbers",
            "ScatterDimensionNumbers",
            lambda scatter: _indexed(scatter, _SCATTER),
        ),
        _listed(rows, "gather_slice_sizes", "slice_sizes"),
        _repeated(
            rows,
            "output_operand_aliasing",
            "OutputOperandAliasing",
            "output_to_operand_aliasing",
            _pair,
        ),
    ]
    row = np.concatenate([row for row, _ in texts])
    order = np.argsort(row, kind="stable")
    column = pa.concat_arrays([text for _, text in texts]).take(pa.array(order))
    filled, begin = np.unique(row[order], return_index=True)
    return placed(_lists(begin, column, ", ").dictionary_encode(), filled, len(rows))


def _lists(begin: Positions, texts: pa.Array, separator: str) -> pa.Array:
    """Texts joined, those from each beginning to the next one."""
    lists = pa.LargeListArray.from_arrays(pa.array(np.append(begin, len(texts))), texts)
    return pc.binary_join(lists, pa.scalar(separator, pa.large_string()))


def _dimensions(rows: ProtoInstructions) -> _Column:
    """`dimensions={0,1}`, and of an iota `iota_dimension=0`."""
    row, texts = _number_lists(rows, "dimensions")
    without = np.setdiff1d(np.flatnonzero(rows.has_opcode(*_DIMENSIONED)), row)
    is_iota = rows.has_opcode("iota")[row]
    named = pc.if_else(
        pa.array(is_iota),
        _between("iota_dimension=", texts, ""),
        _braced("dimensions", texts),
    )
    empty = pa.repeat(pa.scalar("dimensions={}", pa.large_string()), len(without))
    return np.concatenate([row, without]), pa.concat_arrays([named, empty])


def _listed(rows: ProtoInstructions, field: str, name: str) -> _Column:
    row, texts = _number_lists(rows, field)
    return row, _braced(name, texts)


def _number_lists(rows: ProtoInstructions, field: str) -> _Column:
    """A repeated field of numbers as texts such as `0,1`."""
    message, numbers = rows.messages.lists(field)
    filled, begin = np.unique(message, return_index=True)
    return rows.row_of[filled], _lists(begin, pa.array(numbers).cast(pa.large_string()), ",")


def _braced(name: str, texts: pa.Array) -> pa.Array:
    return _between(f"{name}={{", texts, "}")


def _between(before: str, texts: pa.Array, after: str) -> pa.Array:
    begin, end, nothing = (pa.scalar(text, texts.type) for text in (before, after, ""))
    return pc.binary_join_element_wise(begin, texts, end, nothing)


def _groups(rows: ProtoInstructions, field: str) -> _Column:
    """A number of groups, which XLA prints only if there are several."""
    groups = rows.messages.numbers(field)
    message = np.flatnonzero(groups > 1)
    texts = pa.array(groups[message]).cast(pa.large_string())
    return rows.row_of[message], _between(f"{field}=", texts, "")


def _texts(values: pa.Array, type_: str, text: Callable[[Any], str]) -> pa.Array:
    """The text of each message; few are distinct, so Python reads each of these."""
    code, messages = distinct(values)
    texts = [text(parse(type_, message)) for message in messages]
    return pa.array(texts, pa.large_string()).take(pa.array(code))


def _once(rows: ProtoInstructions, field: str, type_: str, text: Callable[[Any], str]) -> _Column:
    """The attributes that one message holds."""
    message, values = rows.messages.contents(field)
    texts = _texts(values, type_, text)
    filled = np.flatnonzero(pc.not_equal(texts, "").to_numpy(zero_copy_only=False))
    return rows.row_of[message[filled]], texts.take(pa.array(filled))


def _repeated(
    rows: ProtoInstructions, field: str, type_: str, name: str, text: Callable[[Any], str]
) -> _Column:
    """An attribute that lists what several messages hold."""
    message, values = rows.messages.contents(field)
    filled, begin = np.unique(message, return_index=True)
    return rows.row_of[filled], _braced(name, _lists(begin, _texts(values, type_, text), ", "))


def _slice(extent: Any) -> str:
    """`[0:16]`, and with a stride `[0:16:2]`."""
    stride = f":{extent.stride}" if extent.stride > 1 else ""
    return f"[{extent.start}:{extent.limit}{stride}]"


def _padding(config: Any) -> str:
    """`padding=0_1x2_3`, and with something between the elements `0_1_2x…`."""
    dimensions = config.dimensions
    columns = [
        [each.edge_padding_low for each in dimensions],
        [each.edge_padding_high for each in dimensions],
    ]
    if any(each.interior_padding for each in dimensions):
        columns.append([each.interior_padding for each in dimensions])
    return f"padding={_by_dimension(*columns)}" if dimensions else ""


def _window(window: Any) -> str:
    """`window={size=3x3 pad=1_1x1_1}`: what does nothing is left out."""
    dimensions = window.dimensions
    if not dimensions:
        return ""

    def column(field: str) -> list[int]:
        return [getattr(each, field) for each in dimensions]

    low, high = column("padding_low"), column("padding_high")
    parts = [f"size={_by_dimension(column('size'))}"]
    if any(each != 1 for each in column("stride")):
        parts.append(f"stride={_by_dimension(column('stride'))}")
    if any(low) or any(high):
        parts.append(f"pad={_by_dimension(low, high)}")
    if any(each != 1 for each in column("base_dilation")):
        parts.append(f"lhs_dilate={_by_dimension(column('base_dilation'))}")
    if any(each != 1 for each in column("window_dilation")):
        parts.append(f"rhs_dilate={_by_dimension(column('window_dilation'))}")
    if any(column("window_reversal")):
        parts.append(f"rhs_reversal={_by_dimension(column('window_reversal'))}")
    return f"window={{{' '.join(parts)}}}"


def _by_dimension(*columns: Iterable[int]) -> str:
    return "x".join("_".join(map(str, row)) for row in zip(*columns, strict=True))


def _convolution(numbers: Any) -> str:
    """`dim_labels=b01f_01io->b01f`."""
    lhs, kernel, output = (
        _labels({batch: first, feature: second}, spatial)
        for batch, first, feature, second, spatial in (
            (
                *(numbers.input_batch_dimension, "b", numbers.input_feature_dimension, "f"),
                numbers.input_spatial_dimensions,
            ),
            (
                *(numbers.kernel_input_feature_dimension, "i"),
                *(numbers.kernel_output_feature_dimension, "o"),
                numbers.kernel_spatial_dimensions,
            ),
            (
                *(numbers.output_batch_dimension, "b", numbers.output_feature_dimension, "f"),
                numbers.output_spatial_dimensions,
            ),
        )
    )
    return f"dim_labels={lhs}_{kernel}->{output}"


def _labels(letters: dict[int, str], spatial: Iterable[int]) -> str:
    """The letter or, of a dimension of space, the number of each dimension, in order."""
    labels = letters | {place: str(number) for number, place in enumerate(spatial)}
    return "".join(labels[place] for place in sorted(labels))


def _numbered(message: Any, names: dict[str, str]) -> str:
    """Lists of dimensions, such as what a dot contracts."""
    return ", ".join(
        f"{name.rstrip('?')}={index_text(getattr(message, field))}"
        for field, name in names.items()
        if getattr(message, field) or not name.endswith("?")
    )


def _indexed(message: Any, names: dict[str, str]) -> str:
    """The dimensions of a gather or a scatter."""
    return f"{_numbered(message, names)}, index_vector_dim={message.index_vector_dim}"


def _pair(alias: Any) -> str:
    """An output and the operand that it shares memory with: `{0}: (1, {})`."""
    operand = f"{alias.operand_index}, {index_text(alias.operand_shape_index)}"
    return f"{index_text(alias.output_shape_index)}: ({operand})"


def index_text(index: Iterable[int]) -> str:
    """Numbers in braces, such as `{1,0}`."""
    return f"{{{','.join(map(str, index))}}}"


# The attributes of a HloModuleProto's instructions.


def read_proto_attributes(rows: ProtoInstructions) -> HloAttributes:
    """Read the attributes that are not stored. Raises DumpError.

    A binary has no lines: `lines` counts the instructions.
    """
    at, configs = backend_configs(rows, b'"aliasing_operands":')
    order = np.argsort(at, kind="stable")
    recorded = aliasing_operands(at[order], configs.take(pa.array(order)))
    return HloAttributes(
        pa.array(np.arange(1, len(rows) + 1)),
        recorded,
        _loop_facts(rows),
        _is_gpu(rows),
        b'"dma_priority":' in rows.data,
    )


def _loop_facts(rows: ProtoInstructions) -> pa.Table:
    """What tells how often loops run. Raises DumpError."""
    counting, configs = backend_configs(rows, b'"known_trip_count":')
    is_while = rows.has_opcode("while")
    counted = (
        counting[is_while[counting]],
        known_trip_counts(configs).filter(pa.array(is_while[counting])),
    )
    texts = pa.array([shape.text for shape in rows.shapes], pa.large_string())
    is_scalar = as_numpy(pc.match_substring_regex(texts, INTEGER_SCALAR))[rows.shape]
    is_scalar &= rows.has_opcode("constant") & is_while.any()
    message, literals = rows.messages.contents("literal")
    chosen = is_scalar[rows.row_of[message]]
    code, each = distinct(literals.filter(pa.array(chosen)))
    numbers = [_integer(parse("LiteralProto", literal)) for literal in each]
    integers = pa.array(numbers, pa.int64()).take(pa.array(code))
    directions = rows.messages.texts("comparison_direction", "the direction of a comparison")
    is_less = as_numpy(pc.equal(directions, "LT"))[rows.message_of]
    return loop_facts(
        counted,
        (rows.row_of[message[chosen]], integers),
        np.flatnonzero(is_less & rows.has_opcode("compare")),
    )


def _integer(literal: Any) -> int | None:
    """The integer in a literal of a scalar."""
    fields = (literal.s32s, literal.s64s, literal.u32s, literal.u64s)
    return next((int(values[0]) for values in fields if values), None)


def proto_program_columns(rows: ProtoInstructions) -> dict[str, pa.Array]:
    """The columns of the table `instructions` from is_root to attributes.

    What an instruction does not say is null. Raises DumpError.
    """
    is_root = np.zeros(len(rows), bool)
    is_root[rows.root] = True
    return {
        "is_root": pa.array(is_root),
        "parameter_number": _numbers(rows, "parameter", "parameter_number"),
        "tuple_index": _numbers(rows, "get-tuple-element", "tuple_index"),
        "fusion_kind": _fusion_kinds(rows),
        "attributes": dimension_attributes(rows),
    }


def _is_gpu(rows: ProtoInstructions) -> bool:
    """Whether the attributes are of a GPU's compiler; tiled layouts are a TPU's."""
    if any(":T(" in shape.text for shape in rows.shapes):
        return False
    return any(word in rows.data for word in GPU_WORDS) or _has_scheduling_names(rows)


def _numbers(rows: ProtoInstructions, opcode: str, field: str) -> pa.Array:
    """A number that instructions of one opcode have; null of all others. Raises DumpError."""
    column = rows.messages.numbers(field)[rows.message_of]
    has = rows.has_opcode(opcode)
    wrong = has & ((column < 0) | (column > LARGEST_ID))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DumpError(f"{opcode} {rows.names[row]} has the number {column[row]}")
    return pa.array(np.where(has, column, 0), pa.int32(), mask=~has)


def _fusion_kinds(rows: ProtoInstructions) -> pa.Array:
    texts = rows.messages.texts("fusion_kind", "the kind of a fusion")
    texts = pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)
    return texts.dictionary_encode().take(pa.array(rows.message_of))


def _has_scheduling_names(rows: ProtoInstructions) -> bool:
    _, each = distinct(rows.messages.contents("metadata")[1])
    _, names = Columns("OpMetadata", each).contents("scheduling_name")
    return any(names.to_pylist())


# Reader of a BufferAssignmentProto: the allocations and their values.

_Place = tuple[int, tuple[int, ...]]
_SAME = (
    *("bitcast", "copy", "while", "domain", "opt-barrier", "optimization-barrier"),
    *("add-dependency", "all-reduce-done", "async-update"),
)
_CALLING = ("call", "conditional")
_STARTS = ("all-gather-start", "collective-permute-start")
_DONES = ("all-gather-done", "collective-permute-done", "async-done")


@dataclass(frozen=True)
class _Buffers:
    """The logical buffers: where each is defined, as a row and a code in `index_texts`."""

    ids: Positions
    color: Positions
    row: Positions
    index: Positions
    index_texts: list[str]


def read_proto_assignment(data: bytes, rows: ProtoInstructions) -> BufferAssignment | None:
    """The allocations and values of a BufferAssignmentProto; None of an empty one.

    Raises DumpError.
    """
    assignment = parse("BufferAssignmentProto", data)
    if not assignment.buffer_allocations:
        return None
    buffers = _buffers(list(assignment.logical_buffers), rows)
    allocations = Columns("BufferAllocationProto", list(assignment.buffer_allocations))
    del assignment
    allocation, assigned = allocations.contents("assigned")
    values = Columns("Assigned", assigned.to_pylist())
    order = np.argsort(buffers.ids, kind="stable")
    _require_once(buffers.ids, "two logical buffers have the id")
    index = _within(allocations, "index", LARGEST_ID)
    _require_once(index, "two allocations have the index")
    buffer = found_in(buffers.ids[order], order, values.numbers("logical_buffer_id"))
    for at in allocation[buffer < 0][:1].tolist():
        raise _wrong(f"allocation {index[at]} assigns a value that is not in the file")
    is_output = np.zeros(allocations.count, bool)
    is_output[allocation[buffer == _output_buffer(rows, buffers)]] = True
    return BufferAssignment(
        _allocations(allocations, rows, index, is_output),
        _values(values, rows, buffers, buffer).append_column(
            "allocation_index", pa.array(index[allocation], pa.int32())
        ),
    )


def _buffers(messages: list[bytes], rows: ProtoInstructions) -> _Buffers:
    found = Columns("LogicalBufferProto", messages)
    ids = _within(found, "id", LARGEST_ID)
    owner, defined_at = found.contents("defined_at")
    if len(owner) < found.count:
        buffer = ids[np.argmin(found.has("defined_at"))]
        raise _wrong(f"logical buffer {buffer} does not say where it is defined")
    places = Columns("Location", defined_at.to_pylist())
    instruction_ids = places.numbers("instruction_id")
    row = rows.find(instruction_ids)
    # Older versions name the instruction. An id of 0 is not written: without a name it is the id.
    names = places.texts("instruction_name", "an instruction's name")
    has_name = as_numpy(pc.not_equal(names, ""))
    named = np.flatnonzero((instruction_ids == 0) & has_name)
    if len(named):
        at_name = pc.index_in(names.take(pa.array(named)), value_set=rows.names)
        row[named] = pc.fill_null(at_name, -1).to_numpy()
    for buffer in ids[row < 0][:1].tolist():
        raise _wrong(
            f"logical buffer {buffer} is defined by an instruction that is not in the file"
        )
    encoded = index_texts(places, "shape_index").dictionary_encode()
    return _Buffers(
        ids,
        _within(found, "color", LARGEST_ID),
        row,
        encoded.indices.to_numpy().astype(np.int64),
        encoded.dictionary.to_pylist(),
    )


def _wrong(complaint: str) -> DumpError:
    return DumpError(f"in the buffer assignment {complaint}: dump the program again")


def _require_once(numbers: Positions, complaint: str) -> None:
    """Raise DumpError at a number that is there again."""
    found, counts = np.unique(numbers, return_counts=True)
    for number in found[counts > 1][:1].tolist():
        raise _wrong(f"{complaint} {number}")


def _within(messages: Columns, field: str, most: int) -> Positions:
    """A column of numbers that are neither negative nor over `most`. Raises DumpError."""
    column = messages.numbers(field)
    for number in column[(column < 0) | (column > most)][:1].tolist():
        raise _wrong(f"the {field} {number} is negative or over {most}")
    return column


def index_texts(messages: Columns, field: str) -> pa.LargeStringArray:
    """A field with a shape index as text, of all messages: `{1,0}`."""
    owner, numbers = messages.lists(field)
    count = np.bincount(owner, minlength=messages.count)
    bounds = np.concatenate([[0], np.cumsum(count)])
    texts = pa.array(numbers).cast(pa.large_string())
    joined = pc.binary_join(
        pa.LargeListArray.from_arrays(pa.array(bounds), texts), pa.scalar(",", pa.large_string())
    )
    brackets = [pa.scalar(text, pa.large_string()) for text in ("{", "}", "")]
    return pc.binary_join_element_wise(brackets[0], joined, *brackets[1:])


def _allocations(
    found: Columns, rows: ProtoInstructions, index: Positions, is_output: Mask
) -> pa.Table:
    is_parameter = found.numbers("is_entry_computation_parameter") != 0
    is_constant = found.numbers("is_constant") != 0
    is_thread_local = found.numbers("is_thread_local") != 0
    maybe_live_out = found.numbers("maybe_live_out") != 0
    number = _within(found, "parameter_number", LARGEST_ID)
    return pa.table(
        {
            "allocation_index": pa.array(index, pa.int32()),
            "memory_space": pa.array(_within(found, "color", LARGEST_ID), pa.int32()),
            "size_bytes": pa.array(_within(found, "size", LARGEST_SIZE)),
            "is_parameter": pa.array(is_parameter),
            "parameter_number": pa.array(number, pa.int32(), mask=~is_parameter),
            "parameter_shape_index": pc.if_else(
                pa.array(is_parameter), index_texts(found, "parameter_shape_index"), None
            ),
            "is_output": pa.array(is_output),
            "is_constant": pa.array(is_constant),
            "is_thread_local": pa.array(is_thread_local),
            "maybe_live_out": pa.array(maybe_live_out),
            "is_temp": pa.array(~(is_parameter | is_constant | is_thread_local | maybe_live_out)),
            "shape": _allocation_shapes(rows, is_parameter, number, is_output),
            "address": pa.nulls(found.count, pa.int64()),
        }
    )


def _allocation_shapes(
    rows: ProtoInstructions, is_parameter: Mask, number: Positions, is_output: Mask
) -> pa.LargeStringArray:
    """The argument that an allocation holds, or else the result, as shapes without layouts."""
    chosen = np.flatnonzero(rows.has_opcode("parameter") & (rows.computation == rows.entry))
    numbers = rows.messages.numbers("parameter_number")[rows.message_of[chosen]].tolist()
    argument = dict(zip(numbers, rows.shape[chosen].tolist(), strict=True))
    texts: list[str | None] = [None] * len(number)
    result = rows.shapes[int(rows.shape[rows.root[rows.entry]])].without_layout
    for at in np.flatnonzero(is_output).tolist():
        texts[at] = result
    for at in np.flatnonzero(is_parameter).tolist():
        shape = argument.get(int(number[at]))
        if shape is None:
            raise _wrong(f"an allocation holds parameter {number[at]}, which is not in the module")
        texts[at] = rows.shapes[shape].without_layout
    return pa.array(texts, pa.large_string())


def _values(
    values: Columns, rows: ProtoInstructions, buffers: _Buffers, buffer: Positions
) -> pa.Table:
    size = pa.array(_within(values, "size", LARGEST_SIZE))
    row, index = buffers.row[buffer], buffers.index[buffer]
    # Few sub-shapes are distinct.
    width = max(1, len(buffers.index_texts))
    keys, code = np.unique(rows.shape[row] * width + index, return_inverse=True)
    indices = [tuple(map(int, re.findall(r"-?\d+", text))) for text in buffers.index_texts]
    shapes = [rows.shapes[key // width].at(indices[key % width]) for key in keys.tolist()]
    if None in shapes:
        value = buffers.ids[buffer[np.argmax(code == shapes.index(None))]]
        raise _wrong(f"value {value} names a sub-shape that its instruction does not have")
    texts = pa.array([shape.text for shape in shapes if shape is not None], pa.large_string())
    try:
        sizes = shape_columns(texts)
    except ValueError as error:
        raise _wrong(f"a value has a wrong shape, {error}") from None
    taken = pa.array(code)
    logical = sizes["logical_bytes"].take(taken)
    return pa.table(
        {
            "value_id": pa.array(buffers.ids[buffer], pa.int32()),
            "instruction": rows.names.take(pa.array(row)),
            "shape_index": pa.array(buffers.index_texts, pa.large_string()).take(pa.array(index)),
            "is_phi": pa.array(_merging(rows)[row]),
            "memory_space": pa.array(buffers.color[buffer], pa.int32()),
            "offset_bytes": pa.array(_within(values, "offset", LARGEST_SIZE)),
            "size_bytes": size,
            "logical_bytes": pc.coalesce(logical, size),
            "shape": texts.take(taken),
            "element_type": sizes["element_type"].take(taken),
        }
    )


def _merging(rows: ProtoInstructions) -> Mask:
    """At which instructions a value that is defined there merges several values.

    These are loops, conditionals, and the parameters of a loop's body and condition.
    """
    merging = rows.has_opcode("while", "conditional")
    looped = np.zeros(len(rows.computations), bool)
    caller, called = rows.calls
    looped[called[rows.has_opcode("while")[caller]]] = True
    found: Mask = merging | (rows.has_opcode("parameter") & looped[rows.computation])
    return found


def _output_buffer(rows: ProtoInstructions, buffers: _Buffers) -> int:
    """The place of the entry's result among the logical buffers: where the root points to.

    Raises DumpError if the root leads to no buffer.
    """
    codes = {text: code for code, text in enumerate(buffers.index_texts)}
    place: _Place = (int(rows.root[rows.entry]), ())
    # Each step leads to an instruction that runs before, or into or out of a computation.
    for _ in range(2 * len(rows)):
        code = codes.get("{" + ",".join(map(str, place[1])) + "}", -1)
        here = np.flatnonzero((buffers.row == place[0]) & (buffers.index == code))
        if len(here):
            return int(here[0])
        further = _forwarded(rows, *place)
        if further is None:
            break
        place = further
    raise _wrong(f"the result {rows.names[int(rows.root[rows.entry])]} has no value")


def _forwarded(rows: ProtoInstructions, row: int, index: tuple[int, ...]) -> _Place | None:
    """Where the value at a place comes from; None if from nowhere that is known."""
    opcode = rows.opcodes[row].as_py()
    operands, calls = _items(rows.operands, row), _items(rows.calls, row)
    if opcode == "parameter":
        return _argument(rows, row, index)
    if opcode in _CALLING and calls:
        return int(rows.root[calls[0]]), index
    if not operands:
        return None
    if opcode == "get-tuple-element":
        number = int(rows.messages.numbers("tuple_index")[rows.message_of[row]])
        return operands[0], (number, *index)
    if opcode in _SAME:
        return operands[0], index
    if opcode in _DONES:
        return operands[0], (1, *index)
    if opcode in ("copy-done", "recv-done"):
        return operands[0], (0, *index)
    if opcode == "tuple" and index and 0 <= index[0] < len(operands):
        return operands[index[0]], index[1:]
    if opcode == "copy-start" and index[:1] == (1,):
        return operands[0], index[1:]
    if opcode in _STARTS and index[:1] == (0,):
        return _of_operands(operands, index[1:], in_tuple=len(operands) > 1)
    if opcode == "async-start" and index[:1] == (0,):
        return _of_operands(operands, index[1:], in_tuple=True)
    if opcode == "async-start" and index[:1] == (1,) and calls:
        return int(rows.root[calls[0]]), index[1:]
    return None


def _of_operands(operands: list[int], index: tuple[int, ...], *, in_tuple: bool) -> _Place | None:
    if not in_tuple:
        return operands[0], index
    if index and 0 <= index[0] < len(operands):
        return operands[index[0]], index[1:]
    return None


def _argument(rows: ProtoInstructions, row: int, index: tuple[int, ...]) -> _Place | None:
    """What the first caller of a parameter's computation passes for it."""
    caller, called = rows.calls
    at = np.flatnonzero(called == rows.computation[row])
    if not len(at):
        return None
    call = int(caller[at[0]])
    operands = _items(rows.operands, call)
    opcode = rows.opcodes[call].as_py()
    number = int(rows.messages.numbers("parameter_number")[rows.message_of[row]])
    if opcode == "while":
        return call, index
    if opcode == "conditional":
        number = int(at[0] - np.searchsorted(caller, call)) + 1
    return (operands[number], index) if 0 <= number < len(operands) else None


def _items(listed: tuple[Positions, Positions], row: int) -> list[int]:
    """What one row lists."""
    owner, items = listed
    start, stop = np.searchsorted(owner, [row, row + 1]).tolist()
    found: list[int] = items[start:stop].tolist()
    return found


# Reader of `.hlo.pb`: a HloProto, which holds a module and its buffer assignment.

_ALIAS_KINDS = {1: "may-alias", 2: "must-alias"}


def read_hlo_proto(data: bytes | memoryview) -> Parts:
    """Read a HloProto: the module, and the buffer assignment if there is one.

    Raises DumpError, which names the instruction, or the byte of a file that cannot be parsed.
    """
    find_module(data)
    with damage_located(data, "HloProto"):
        proto = parse("HloProto", bytes(data))
        rows = read_computations(proto.hlo_module, data)
        hlo = _hlo(proto.hlo_module, rows)
        assignment = proto.buffer_assignment
        del proto  # It is as large as the file.
        return Parts(hlo=hlo, buffer_assignment=read_proto_assignment(assignment, rows))


def _hlo(module: Any, rows: ProtoInstructions) -> HloText:
    frames = _frames(module.stack_frame_index)
    instructions = instruction_table(rows)
    if not len(frames):
        # Some versions of libtpu drop the frames and keep their numbers, which then mean nothing.
        at = instructions.schema.get_field_index("stack_frame_id")
        numbers = pa.nulls(len(rows), pa.int32())
        instructions = instructions.set_column(at, "stack_frame_id", numbers)
    instructions = with_sources(instructions, frames)
    signature = _signature(module, len(rows.data))
    is_entry = np.zeros(len(rows.computations), bool)
    is_entry[rows.entry] = True
    return HloText(
        header={
            "is_scheduled": module.HasField("schedule"),
            "entry_signature": signature,
            "input_output_alias": ", ".join(map(_alias, module.input_output_alias.entries)) or None,
            "buffer_donor": ", ".join(map(_donor, module.buffer_donor.entries)) or None,
            "num_partitions": _devices(module, "computation_count"),
            "replica_count": _devices(module, "replica_count"),
        },
        computations=pa.table({"computation": rows.computations, "is_entry": is_entry}),
        instructions=pa.table(
            dict(zip(instructions.column_names, instructions.columns, strict=True))
            | proto_program_columns(rows)
        ),
        operands=operand_table(rows),
        calls=call_table(rows),
        stack_frames=frames,
        entry_shapes=_entry_shapes(module, signature, rows, instructions["op_name"]),
        attributes=read_once(_attributes, rows),
        kernels=read_proto_kernels(rows),
        control=control_table(rows),
    )


def _attributes(rows: ProtoInstructions) -> HloAttributes:
    with damage_located(rows.data, "HloProto"):
        return read_proto_attributes(rows)


def _devices(module: Any, field: str) -> int:
    """The number of replicas or partitions; 1 if the module does not say, or says 0."""
    found: int = getattr(module.device_assignment, field)
    if not 0 <= found <= LARGEST_ID:
        raise DumpError(f"the device assignment has a {field} of {found}: dump the program again")
    return found or 1


def _signature(module: Any, file_bytes: int) -> str | None:
    """The arguments' and the result's shapes; None without them."""
    shape = module.host_program_shape
    if not shape.HasField("result"):
        return None
    reader = ShapeReader(file_bytes)
    arguments = tuple_shape([reader.read(parameter) for parameter in shape.parameters])
    return f"{arguments.text}->{reader.read(shape.result).text}"


def _alias(entry: Any) -> str:
    """An output and its argument: `{0}: (1, {}, may-alias)`."""
    if entry.kind not in _ALIAS_KINDS:
        raise DumpError(f"an argument has an unknown kind of alias {entry.kind}")
    argument = f"{entry.parameter_number}, {index_text(entry.parameter_shape_index)}"
    return f"{index_text(entry.output_shape_index)}: ({argument}, {_ALIAS_KINDS[entry.kind]})"


def _donor(entry: Any) -> str:
    """An argument whose memory may be reused: `(1, {})`."""
    return f"({entry.parameter_number}, {index_text(entry.parameter_shape_index)})"


def _entry_shapes(
    module: Any, signature: str | None, rows: ProtoInstructions, op_names: pa.ChunkedArray
) -> pa.Table | None:
    """The arguments' and the result's arrays; None without a signature. Raises DumpError."""
    arguments = _entry_parameters(module, rows, op_names)
    if signature is None:
        return None
    try:
        return entry_shapes(signature, arguments)
    except DumpError as error:
        # A binary has no lines.
        raise DumpError(str(error)) from None


def _entry_parameters(
    module: Any, rows: ProtoInstructions, op_names: pa.ChunkedArray
) -> dict[int, EntryParameter]:
    """What the arguments are called and how they are sharded, by number. Raises DumpError."""
    chosen = np.flatnonzero(rows.has_opcode("parameter") & (rows.computation == rows.entry))
    numbers = rows.messages.numbers("parameter_number")[rows.message_of[chosen]].tolist()
    # The newest libtpu says it of the module alone.
    shardings = _own_shardings(rows, dict(zip(chosen.tolist(), numbers, strict=True))) or dict(
        enumerate(module.spmd_parameters_shardings)
    )
    texts = {sharding: sharding_text(sharding) for sharding in set(shardings.values())}
    names = op_names.take(pa.array(chosen)).to_pylist()
    return {
        number: EntryParameter(
            argument_name(name), texts[shardings[number]] if number in shardings else None
        )
        for number, name in zip(numbers, names, strict=True)
    }


def _own_shardings(rows: ProtoInstructions, number_of_row: dict[int, int]) -> dict[int, bytes]:
    """The shardings that the parameters themselves have, by number."""
    message, found = rows.messages.contents("sharding")
    row_of = rows.row_of[message]
    return {
        number_of_row[row]: found[at].as_py()
        for at, row in enumerate(row_of.tolist())
        if row in number_of_row
    }


def _frames(index: Any) -> pa.Table:
    """The Python frames that instructions come from, in order of their ids. Raises DumpError."""
    files, functions = (
        checked_texts(pa.array(list(names), pa.large_binary()), "a stack frame's name")
        for names in (index.file_names, index.function_names)
    )
    location_rows = Columns("FileLocation", list(index.file_locations))
    frames = Columns("StackFrame", list(index.stack_frames))
    location, parent = (_ids(frames, name) for name in ("file_location_id", "parent_frame_id"))
    # Numbers count from 1, and 0 stands for none.
    wrong = (location == 0) | (location > location_rows.count)
    if wrong.any():
        raise DumpError(
            f"the stack frame {np.argmax(wrong) + 1} has no file location: dump the program again"
        )

    def column(field: str) -> Positions:
        return _ids(location_rows, field)[location - 1]

    return pa.table(
        {
            "stack_frame_id": pa.array(np.arange(1, frames.count + 1), pa.int32()),
            "parent_frame_id": _or_null(parent),
            "file": _named(files, column("file_name_id")),
            "function": _named(functions, column("function_name_id")),
            "line": pa.array(column("line"), pa.int32()),
            "end_line": _or_null(column("end_line")),
            "column_start": _or_null(column("column")),
            "column_end": _or_null(column("end_column")),
        }
    )


def _ids(frames: Columns, field: str) -> Positions:
    """A column of numbers of frames or of their locations. Raises DumpError."""
    numbers = frames.numbers(field)
    wrong = (numbers < 0) | (numbers > LARGEST_ID)
    if wrong.any():
        raise DumpError(
            f"the {field} of stack frame {np.argmax(wrong) + 1} is negative or over {LARGEST_ID}"
        )
    return numbers


def _or_null(numbers: Positions) -> pa.Array:
    return pa.array(numbers, pa.int32(), mask=numbers == 0)


def _named(names: pa.LargeStringArray, numbers: Positions) -> pa.Array:
    known = (numbers > 0) & (numbers <= len(names))
    return names.take(pa.array(np.where(known, numbers - 1, 0), mask=~known))
