"""Donations: arguments whose memory the result takes, or could take.

JAX pairs donated arguments with results, and XLA pairs the others. The header of the HLO text lists
the pairs; `pair_up` is the rule for arguments that are not donated.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import attrgetter
from typing import Final, Literal, NamedTuple, get_args

from .parts import Allocation, AssignedValue, UsedValues
from .program import NONE, EntryShape, Program, index_text
from .shapes import ArrayShape, parse_shape

# header: the program donates the argument. If it does not: shape: JAX would pair the two, for
# their element type and dimensions; bytes: XLA would.
PairedBy = Literal["header", "shape", "bytes"]
PAIRED_BY: Final[tuple[PairedBy, ...]] = get_args(PairedBy)

# An array's parameter_number, None of the result, and index.
_Key = tuple[int | None, str | None]

# `state['w']`, `state.w` and `state[0]` belong to `state`, and `args[0]['w']` to `args[0]`.
_TOP_LEVEL: Final = re.compile(r"arg(?:s|uments)\[\d+\]|kwargs\['[^']*'\]|\w+")
# These instructions only forward an argument: they do not read it.
_FORWARDING: Final = frozenset({"bitcast", "tuple", "get-tuple-element", "opt-barrier"})
# The part of its result that a copy makes.
_COPIES: Final = {"copy": "{}", "copy-start": "{0}"}


@dataclass(frozen=True)
class EntryArray:
    """An array of the arguments or of the result, of one device, and the value that it is.

    Attributes:
        parameter_number: None of the result.
        index: the part of the argument or result, such as `{1}`.
        name: of an argument, in the framework, where XLA kept it.
        is_shared: whether argument and result share the memory.
        is_donated: of an argument, whether it is shared, or the header donates it without effect.
    """

    parameter_number: int | None
    index: str
    name: str | None
    shape: str
    padded_bytes: int
    value_id: int
    memory_space: int
    allocation_index: int
    is_shared: bool
    is_donated: bool

    @property
    def array(self) -> ArrayShape:
        """The parsed shape."""
        array = parse_shape(self.shape)
        assert isinstance(array, ArrayShape)
        return array

    @property
    def type_and_dimensions(self) -> tuple[str, tuple[int, ...]]:
        """They are equal in the arguments and outputs that JAX pairs."""
        return self.array.element_type, self.array.dimensions

    @property
    def top_level(self) -> str:
        """The argument that a user can name."""
        match = _TOP_LEVEL.match(self.name or "")
        return match.group() if match else f"argument {self.parameter_number}"


class Pair(NamedTuple):
    """An output, and the argument whose memory it takes if that is donated."""

    argument: EntryArray
    output: EntryArray
    paired_by: PairedBy


def pair_up(
    arguments: Sequence[EntryArray], outputs: Sequence[EntryArray], partitions: int
) -> list[Pair]:
    """Each output's argument, if all these arguments of a memory space are donated.

    JAX takes for each output in order the first argument of its element type and dimensions that
    is not taken yet. These are a device's part, so that arrays that are sharded otherwise differ.
    The others XLA pairs by equal bytes, and JAX lets it for an equal number of elements, or
    if the program is partitioned.

    >>> def array(number, shape, size):
    ...     return EntryArray(number, "{}", None, shape, size, 0, 0, 0, False, False)
    >>> arguments = [array(0, "f32[8]{0}", 32), array(1, "f32[2,4]{1,0}", 32)]
    >>> outputs = [array(None, "f32[2,4]{0,1}", 32), array(None, "s32[8]{0}", 32)]
    >>> [(pair.argument.parameter_number, pair.output.shape, pair.paired_by)
    ...  for pair in pair_up(arguments, outputs, partitions=1)]
    [(1, 'f32[2,4]{0,1}', 'shape'), (0, 's32[8]{0}', 'bytes')]
    """

    def by_bytes(entry: EntryArray) -> Hashable:
        return entry.padded_bytes, None if partitions > 1 else prod(entry.array.dimensions)

    pairs = list(_first_come(arguments, outputs, "shape", attrgetter("type_and_dimensions")))
    paired = {entry for argument, output, _ in pairs for entry in (argument, output)}
    arguments = [argument for argument in arguments if argument not in paired]
    outputs = [output for output in outputs if output not in paired]
    return [*pairs, *_first_come(arguments, outputs, "bytes", by_bytes)]


def _first_come(
    arguments: Iterable[EntryArray],
    outputs: Iterable[EntryArray],
    paired_by: PairedBy,
    key: Callable[[EntryArray], Hashable],
) -> Iterator[Pair]:
    """Each output with the first argument of its key that is not taken yet."""
    queues: dict[Hashable, deque[EntryArray]] = defaultdict(deque)
    for argument in arguments:
        queues[key(argument)].append(argument)
    for output in outputs:
        if fitting := queues[key(output)]:
            yield Pair(fitting.popleft(), output, paired_by)


class Donation(NamedTuple):
    """A row of `donations`."""

    parameter_number: int
    parameter_shape_index: str
    output_shape_index: str | None
    paired_by: PairedBy
    late_reader_instruction_id: int | None = None


class DonationCopy(NamedTuple):
    """A row of `donation_copies`."""

    parameter_number: int
    parameter_shape_index: str
    instruction_id: int
    other_value_id: int


class Donations:
    """The donations of a complete program, and those that it could have.

    Attributes:
        value_ids: by array of the program's signature, its value_id; None if it has none.
        rows: the donations of the header, then those that there could be.
        copies: those that XLA makes nevertheless for donations of the header.
    """

    def __init__(
        self,
        program: Program,
        allocations: Iterable[Allocation],
        values: Iterable[AssignedValue],
        used: UsedValues,
        start: Mapping[int, int],
        time: Sequence[int | None],
    ) -> None:
        """Find them.

        Args:
            start: by value_id, the first time at which it is live.
            time: by row.
        """
        self._program, self._used, self._start, self._time = program, used, start, time
        self._values = {value.value_id: value for value in values}
        inputs, root = program.parameters(program.entry), program.root[program.entry]
        self._value_at = self._find_values([*inputs, root])
        rows: dict[int | None, int] = {None: root, **dict(enumerate(inputs))}
        shapes = program.entry_shapes or []
        self.value_ids = [
            self._value_at.get((rows.get(shape.parameter_number, NONE), shape.shape_index))
            for shape in shapes
        ]
        self._arrays = self._find_arrays(shapes, allocations)
        self.rows = [*self._donated(), *self._missed()]
        self.copies = list(self._find_copies())

    def _row(self, instruction: str) -> int:
        return self._program.row_of.get(instruction, NONE)

    def _find_values(self, rows: Sequence[int]) -> dict[tuple[int, str], int]:
        """The value_id at each part of the results of these rows, and of the operands of loops."""
        program = self._program
        holders = {*rows}.union(*(program.operands[row] for row in program.rows_with("while")))
        return {
            (row, position.shape_index): position.value_id
            for position in self._used.positions
            if (row := self._row(position.instruction)) in holders
        }

    def _find_arrays(
        self, shapes: Iterable[EntryShape], allocations: Iterable[Allocation]
    ) -> dict[_Key, EntryArray]:
        """The arrays that have a value and bytes, by parameter_number and index."""
        aliases = self._program.aliases
        aliased: set[_Key] = {(a.number, index_text(a.operand_index)) for a in aliases}
        aliased |= {(None, index_text(alias.output_index)) for alias in aliases}
        donors = {(number, index_text(index)) for number, index in self._program.donors}
        shared = {
            allocation.allocation_index
            for allocation in allocations
            if allocation.is_parameter and allocation.maybe_live_out
        }
        arrays: dict[_Key, EntryArray] = {}
        for shape, value_id in zip(shapes, self.value_ids, strict=True):
            value = None if value_id is None else self._values.get(value_id)
            if (
                value is None
                or value.allocation_index is None
                or shape.padded_bytes is None
                or shape.element_type in ("token", "opaque")
            ):
                continue
            key = shape.parameter_number, shape.shape_index
            is_shared = key in aliased or value.allocation_index in shared
            arrays[key] = EntryArray(
                shape.parameter_number,
                shape.shape_index,
                shape.argument_name,
                shape.shape,
                shape.padded_bytes,
                value.value_id,
                value.memory_space,
                value.allocation_index,
                is_shared,
                is_donated=not shape.is_output and (is_shared or key in donors),
            )
        return arrays

    def _donated(self) -> Iterator[Donation]:
        """The donations of the header."""
        for alias in self._program.aliases:
            output = index_text(alias.output_index)
            yield Donation(alias.number, index_text(alias.operand_index), output, "header")
        for number, index in self._program.donors:
            array = self._arrays.get((number, index_text(index)))
            if array is None or not array.is_shared:
                yield Donation(number, index_text(index), None, "header")

    def _missed(self) -> Iterator[Donation]:
        """The donations that there could be."""
        last_reads = self._find_last_reads()
        arguments: dict[int, list[EntryArray]] = defaultdict(list)
        outputs: dict[int, list[EntryArray]] = defaultdict(list)
        for array in self._arrays.values():
            if not (array.is_shared or array.is_donated):
                side = outputs if array.parameter_number is None else arguments
                side[array.memory_space].append(array)
        for space in sorted(arguments):
            for argument, output, paired_by in pair_up(
                arguments[space], outputs[space], self._program.header.num_partitions
            ):
                time, reader = last_reads.get(argument.value_id, (NONE, NONE))
                written = self._first_written(output)
                yield Donation(
                    argument.parameter_number or 0,
                    argument.index,
                    output.index,
                    paired_by,
                    reader if written is not None and time > written else None,
                )

    def _find_last_reads(self) -> dict[int, tuple[int, int]]:
        """By value_id of an array, when it is read last, and by which row."""
        reads = {array.value_id: (NONE, NONE) for array in self._arrays.values()}
        for use in self._used.uses:
            row = self._row(use.instruction) if use.value_id in reads else NONE
            if row != NONE and self._program.opcode[row] not in _FORWARDING:
                time = self._time[row]
                if time is not None:
                    reads[use.value_id] = max(reads[use.value_id], (time, row))
        return reads

    def _first_written(self, output: EntryArray) -> int | None:
        """When the memory that becomes the output is first written: a loop's before the loop."""
        value = self._values[output.value_id]
        value_id, row = value.value_id, self._row(value.instruction)
        if row != NONE and self._program.opcode[row] == "while":
            for operand in self._program.operands[row]:
                value_id = self._value_at.get((operand, value.shape_index), value_id)
        return self._start.get(value_id)

    def _find_copies(self) -> Iterator[DonationCopy]:
        """The copies of donated arguments, and of values that become the output in their memory."""
        sources: dict[int, dict[int, int]] = defaultdict(dict)
        results: dict[int, dict[int, int]] = defaultdict(dict)
        for row, source, result in self._copies_within_spaces():
            sources[result][row], results[source][row] = source, result
        for number, index, output_index, paired_by, _ in self.rows:
            argument = self._arrays.get((number, index))
            if paired_by == "header" and argument is not None:
                output = self._arrays.get((None, output_index))
                # A copy from the argument to the output is one.
                copies = dict(sources[output.value_id]) if output is not None else {}
                copies |= results[argument.value_id]
                for row, other in copies.items():
                    yield DonationCopy(number, index, row, other)

    def _copies_within_spaces(self) -> Iterator[tuple[int, int, int]]:
        """The row of each copy, the value_id that it copies and the one that it makes.

        Both are in one memory space, and have one shape and layout.
        """
        program, values = self._program, self._values
        made = {
            row: value
            for value in values.values()
            if (row := self._row(value.instruction)) != NONE
            and _COPIES.get(program.opcode[row]) == value.shape_index
        }
        for use in self._used.uses:
            row = self._row(use.instruction)
            if row in made and use.value_id in values:
                result, source = made[row], values[use.value_id]
                shapes = {program.shape[operand] for operand in program.operands[row]}
                if result.shape in shapes and source.memory_space == result.memory_space:
                    yield row, source.value_id, result.value_id
