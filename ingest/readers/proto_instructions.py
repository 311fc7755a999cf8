"""Computations and instructions of a HloModuleProto, as columns in the order of HLO text."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from .lines import Mask, Positions, as_numpy
from .proto_shapes import ShapeReader, ShapeText
from .wire import Messages, read_messages
from .wire_bytes import Wire, distinct

# Fields of HloComputationProto, and the fewest bytes of an instruction that has a name, an
# opcode and a shape.
_NAME, _INSTRUCTIONS, _ID, _ROOT_ID = 1, 2, 5, 6
_FEWEST_BYTES = 8
# Fields of HloInstructionProto.
OPCODE, SHAPE, METADATA, PARAMETER, FUSION_KIND, TUPLE_INDEX, SLICES = 2, 3, 7, 9, 11, 13, 17
TARGET, INSTRUCTION_ID, OPERANDS, CALLED, SHARDING, CONFIG, ALIASES = 28, 35, 36, 38, 40, 43, 74
_CONTENTS = (1, OPCODE, SHAPE, METADATA, FUSION_KIND, SLICES, TARGET, SHARDING, CONFIG, ALIASES)


@dataclass(frozen=True)
class Schedule:
    """The instructions' ids in the order of the schedule, by computation's id.

    at: where the schedule starts in the file.
    """

    at: int
    sequences: dict[int, Positions]


@dataclass(frozen=True)
class ProtoInstructions:
    """A module's instructions: a row for each, in the order of HLO text.

    messages: the instructions' messages, in the order of the file; message_of: each row's
    message; row_of: each message's row; shape: each row's code in `shapes`; computation: each
    row's place in `computations`, which are names; root: the row of each computation's root.
    """

    messages: Messages
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

    @property
    def wire(self) -> Wire:
        """The file's bytes."""
        return self.messages.wire

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
        owner, ids = self._listed(OPERANDS)
        operand = self.find(ids)
        self._require(operand >= 0, owner, "an operand")
        return owner, operand

    @cached_property
    def calls(self) -> tuple[Positions, Positions]:
        """The called computations in the order of the rows: whose, and which.

        Raises DumpError.
        """
        owner, ids = self._listed(CALLED)
        order = np.argsort(self.computation_ids)
        called = found_in(self.computation_ids[order], order, ids)
        self._require(called >= 0, owner, "a computation")
        return owner, called

    def _require(self, is_there: Mask, owner: Positions, what: str) -> None:
        """Raise DumpError at the first owner of what is not in the file."""
        if not is_there.all():
            row = int(owner[np.argmin(is_there)])
            raise DumpError(
                f"{what} of {self.names[row]} at byte {self.byte_of(row)} is not in the file:"
                " dump the program again"
            )

    def byte_of(self, row: int) -> int:
        """Where an instruction's name starts."""
        found = self.messages.last(_NAME)
        return int(found.first[self.message_of[row]])

    def _listed(self, number: int) -> tuple[Positions, Positions]:
        """A repeated field in the order of the rows: row, number."""
        message, numbers = self.messages.lists(number)
        owner = self.row_of[message]
        order = np.argsort(owner, kind="stable")
        return owner[order], numbers[order]


def place_within(owner: Positions) -> Positions:
    """The place of each item among those of its owner; items of one owner stand together."""
    return np.arange(len(owner)) - np.searchsorted(owner, owner)


def read_computations(
    wire: Wire, extents: Positions, entry_id: int, schedule: Schedule
) -> ProtoInstructions:
    """Read the computations, whose messages start and end at the rows of `extents`.

    Raises DumpError.
    """
    starts, ends = extents[:, 0], extents[:, 1]
    computations = read_messages(
        wire, starts, ends, numbers=(_ID, _ROOT_ID), contents=(_NAME, _INSTRUCTIONS)
    )
    names = _named(computations, _NAME, starts, "computation")
    ids = computations.numbers(_ID)
    if len(np.unique(ids)) < len(ids):
        raise DumpError(f"two computations have one id, at byte {_doubled(ids, starts)}")
    entry = np.flatnonzero(ids == entry_id)
    if not len(entry):
        raise DumpError(
            f"the entry computation {entry_id} is not among those from byte {starts[0]} on:"
            " dump the program again"
        )
    each = computations.each(_INSTRUCTIONS)
    short = each.end - each.first < _FEWEST_BYTES
    if short.any():
        at = int(each.first[np.argmax(short)])
        raise DumpError(f"the instruction at byte {at} has no name, opcode or shape")
    messages = read_messages(
        wire,
        each.first,
        each.end,
        numbers=(PARAMETER, TUPLE_INDEX, INSTRUCTION_ID),
        contents=_CONTENTS,
        lists=(OPERANDS, CALLED),
    )
    instruction_ids = messages.numbers(INSTRUCTION_ID)
    order = np.argsort(instruction_ids, kind="stable")
    sorted_ids = instruction_ids[order]
    if (sorted_ids[1:] == sorted_ids[:-1]).any():
        at = _doubled(instruction_ids, each.first)
        raise DumpError(f"two instructions have one id, at byte {at}")
    row_of = _text_order(each.message, sorted_ids, order, ids, schedule)
    message_of = np.empty(len(row_of), np.int64)
    message_of[row_of] = np.arange(len(row_of))
    rows_by_id = row_of[order]
    root = found_in(sorted_ids, rows_by_id, computations.numbers(_ROOT_ID))
    computation = each.message  # in the order of the file, as of the text
    wrong = (root < 0) | (computation[root] != np.arange(len(root))) if len(root) else root < 0
    if wrong.any():
        at = int(starts[np.argmax(wrong)])
        raise DumpError(f"the computation at byte {at} has no root: dump the program again")
    taken = pa.array(message_of)
    shape, shapes = _shapes(messages, each.first)
    opcodes = _named(messages, OPCODE, each.first, "instruction").dictionary_encode()
    return ProtoInstructions(
        messages,
        message_of,
        row_of,
        names=_named(messages, _NAME, each.first, "instruction").take(taken),
        opcodes=opcodes.take(taken),
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


def _named(messages: Messages, number: int, starts: Positions, what: str) -> pa.LargeStringArray:
    """A text that each message must have. Raises DumpError."""
    texts = messages.texts(number, f"the {what}")
    empty = as_numpy(pc.equal(pc.binary_length(texts), 0))
    if empty.any():
        at = int(starts[np.argmax(empty)])
        raise DumpError(f"the {what} at byte {at} lacks its field {number}: dump the program again")
    return texts


def _doubled(ids: Positions, starts: Positions) -> int:
    """Where the second message with an id starts."""
    _, first = np.unique(ids, return_index=True)
    repeated = np.ones(len(ids), bool)
    repeated[first] = False
    return int(starts[np.argmax(repeated)])


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
    schedule: Schedule,
) -> Positions:
    """The row of each instruction's message in HLO text: a schedule orders its computation."""
    row_of = np.arange(len(computation))
    sequences = schedule.sequences
    if not sequences:
        return row_of
    first = np.searchsorted(computation, np.arange(len(computation_ids)))
    count = np.bincount(computation, minlength=len(computation_ids))
    place = {number: at for at, number in enumerate(computation_ids.tolist())}
    unknown = [number for number in sequences if number not in place]
    if unknown:
        raise DumpError(
            f"the schedule at byte {schedule.at} names a computation {unknown[0]} that is not there"
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
            f"the schedule at byte {schedule.at} does not list each instruction of its computations"
            " once: dump the program again"
        )
    begin = np.cumsum(lengths) - lengths
    row_of[scheduled] = np.arange(len(ids)) - np.repeat(begin - first[owner], lengths)
    return row_of


def _shapes(messages: Messages, starts: Positions) -> tuple[Positions, list[ShapeText]]:
    """The shape of each message: a code, and the shapes. Raises DumpError."""
    found = messages.last(SHAPE)
    if len(found) < messages.count:
        at = int(starts[np.argmin(messages.has(SHAPE))])
        raise DumpError(f"the instruction at byte {at} has no shape: dump the program again")
    code, first = distinct(messages.wire, found.first, found.end)
    reader = ShapeReader(messages.wire.data)
    shapes = [
        reader.read(start, end)
        for start, end in zip(found.first[first].tolist(), found.end[first].tolist(), strict=True)
    ]
    return code, shapes
