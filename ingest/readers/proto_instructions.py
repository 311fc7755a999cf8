"""Computations and instructions of a HloModuleProto, in the order of HLO text."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID, LARGEST_SIZE
from .backend_configs import placed, scoped_bytes
from .lines import Mask, Positions, as_numpy
from .proto_schema import Columns, UnparsableError, checked_texts, distinct
from .proto_shapes import ShapeReader, ShapeText

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
            "scoped_bytes": _scoped(rows),
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


def _scoped(rows: ProtoInstructions) -> pa.Array:
    at, configs = backend_configs(rows, b'"scoped_memory_configs":[{')
    found = scoped_bytes(configs)
    wrong = as_numpy(pc.fill_null(pc.greater(found, LARGEST_SIZE), False))
    if wrong.any():
        name = rows.names[int(at[np.argmax(wrong)])]
        raise DumpError(f"the backend_config of {name} has a number over {LARGEST_SIZE}")
    return placed(found, at, len(rows))


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
