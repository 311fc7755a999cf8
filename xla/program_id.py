"""The id of a program: what its memory is, whatever its names and source lines are."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .columns.program import NONE, Codes, Ints, NumberedProgram
from .hashes import hash_of_digest, hash_of_texts
from .runs import joined, rows_of, starts_of
from .shifts import Shifts, less

# The skeleton of a program: what its arguments are called, and how many dimensions they have.


def skeleton_id_of(entry_shapes: pa.Table | None) -> int | None:
    """The skeleton's id; None if no argument has a name: such skeletons are equal by chance.

    `entry_shapes` is as in the warehouse's table, in the order of the signature.
    """
    if entry_shapes is None:
        return None
    arguments = entry_shapes.filter(pc.invert(entry_shapes["is_output"]))
    names = arguments["argument_name"]
    if names.null_count == len(names):
        return None
    ranks = map(_rank, arguments["shape"].to_pylist())
    return _skeleton_id(zip(pc.fill_null(names, "").to_pylist(), ranks, strict=True))


def _rank(shape: str) -> int:
    """The number of dimensions: 2 for `bf16[8,128]{1,0}`; 0 for a scalar or a token."""
    dimensions = shape.partition("[")[2].partition("]")[0]
    return dimensions.count(",") + 1 if dimensions else 0


# The id of a program: what its memory is, whatever its names and source lines are.
#
# Instructions count by opcode, shape, kernel, operands and called computations, at their places;
# allocations and values by their figures. Names, numbers that XLA only counts (of allocations,
# values, channels), metadata, backend_config and the values of constants do not count. Texts are
# hashed once for each distinct one, because the shape of a tuple can be very long.

_Hashes = npt.NDArray[np.uint64]

# Of each instruction: opcode, shape, kernel, how many operands, how many called computations.
_FIXED = 5


def program_id_of(
    program: NumberedProgram,
    allocations: pa.Table | None = None,
    values: pa.Table | None = None,
    ranges: pa.Table | None = None,
) -> int | None:
    """The program's id; None if its parts do not fit together: see `program_ids_of`."""
    (found,) = program_ids_of(program, Shifts.alone(0), allocations, values, ranges)
    return found


def program_ids_of(
    program: NumberedProgram,
    shifts: Shifts,
    allocations: pa.Table | None = None,
    values: pa.Table | None = None,
    ranges: pa.Table | None = None,
) -> list[int | None]:
    """The id of each program; None if the parts of one do not fit together.

    `allocations` is as in the warehouse's table. `values` has value_id, instruction_id (the row
    in `program`), shape_index, memory_space, allocation_index, offset_bytes and size_bytes;
    `ranges` value_id, start_time and end_time. A part that the source lacks is None.
    """
    computations = _hashed_computations(program)
    nothing: list[int | None] = [None] * len(shifts)
    if computations is None:
        return nothing
    of_allocations = of_values = np.zeros(0, np.uint64)
    allocation_bounds = value_bounds = [0] * (len(shifts) + 1)
    if allocations is not None and values is not None:
        of_allocations = _hashed_allocations(allocations, shifts)
        allocation_bounds = shifts.bounds(allocations)
        values = values.filter(pc.is_valid(values["allocation_index"]))
        row = _numbers(values["instruction_id"])
        at = _numbers(
            pc.index_in(
                values["allocation_index"],
                value_set=allocations["allocation_index"].combine_chunks(),
            )
        )
        if (row >= len(program)).any() or (at == NONE).any():
            return nothing
        value_bounds = shifts.bounds(values)
        computation = program.computation[row]
        start, end = _times(values, ranges, shifts.starts["time"][program.program_of[row]])
        of_values = _mixed(
            row - program.first[computation],
            computations[computation],
            _hashed_column(values["shape_index"]),
            _local_spaces(values, shifts),
            of_allocations[at],
            _numbers(values["offset_bytes"]),
            _numbers(values["size_bytes"]),
            start,
            end,
        )
    return [
        _program_id(
            entry,
            _sorted_bytes(of_allocations[slice(*of_allocation)]),
            _sorted_bytes(of_values[slice(*of_value)]),
        )
        for entry, of_allocation, of_value in zip(
            computations[program.entries].tolist(),
            pairwise(allocation_bounds),
            pairwise(value_bounds),
            strict=True,
        )
    ]


def _local_spaces(rows: pa.Table, shifts: Shifts) -> Ints:
    """The memory spaces by the numbers that their programs have for them."""
    space = _numbers(rows["memory_space"])
    return space - shifts.starts["space"][shifts.of("space", space)]


def _hashed_computations(program: NumberedProgram) -> _Hashes | None:
    """A hash of each computation, which covers what it calls; None if calls run in a circle.

    An instruction is a few numbers, and a computation all of its instructions' numbers. A
    computation is hashed as soon as those that it calls are, and their hashes are filled in.
    """
    rows, attributes, called = _ordered_calls(program)
    call_count = np.bincount(rows, minlength=len(program))
    start = starts_of(_FIXED + program.operand_count + 2 * call_count)
    numbers = np.zeros(start[-1], "<u8")
    of_row = start[:-1]
    numbers[of_row] = _hashed_codes(program.opcode)
    numbers[of_row + 1] = _hashed_codes(program.shape)
    numbers[of_row + 2] = _hashed_codes(program.custom_call_target)
    numbers[of_row + 3] = program.operand_count
    numbers[of_row + 4] = call_count
    distance = program.operand_row - program.operands
    numbers[joined(of_row + _FIXED, program.operand_count)] = distance
    # The pairs of an instruction's calls follow its operands.
    pair = joined(of_row + _FIXED + program.operand_count, 2 * call_count)[::2]
    numbers[pair] = attributes

    count = len(program.first)
    content = numbers.data.cast("B")
    low, high = (8 * start[program.first]).tolist(), (8 * start[program.stop]).tolist()
    found = np.zeros(count, np.uint64)
    caller = program.computation[rows]
    by_called = np.argsort(called, kind="stable")
    calls_start = np.searchsorted(called[by_called], np.arange(count + 1))
    waits_for = np.bincount(caller, minlength=count)
    ready = np.flatnonzero(waits_for == 0)
    hashed = 0
    while len(ready):
        hashed += len(ready)
        digests = b"".join(_digest(content[low[i] : high[i]]) for i in ready.tolist())
        found[ready] = np.frombuffer(digests, "<u8")
        of_ready = calls_start[ready]
        calls = by_called[joined(of_ready, calls_start[ready + 1] - of_ready)]
        numbers[pair[calls] + 1] = found[called[calls]]
        callers, done = np.unique(caller[calls], return_counts=True)
        waits_for[callers] -= done
        ready = callers[waits_for[callers] == 0]
    return found if hashed == count else None


def _ordered_calls(program: NumberedProgram) -> tuple[Ints, _Hashes, Ints]:
    """The calls by instruction and attribute: instruction, attribute's hash, computation."""
    attributes = _hashed_codes(program.call_attribute)
    # Stable: the computations of one attribute keep their order, for example branches.
    order = np.lexsort((attributes, program.call_row))
    return program.call_row[order], attributes[order], program.call_computation[order]


def _hashed_allocations(allocations: pa.Table, shifts: Shifts) -> _Hashes:
    """A hash of each allocation: what it is, without its number."""
    return _mixed(
        _local_spaces(allocations, shifts),
        _numbers(allocations["size_bytes"]),
        _numbers(allocations["parameter_number"]),
        _hashed_column(allocations["parameter_shape_index"]),
        *(
            _numbers(allocations[column].cast(pa.int8()))
            for column in ("maybe_live_out", "is_constant", "is_thread_local", "is_temp")
        ),
    )


def _times(values: pa.Table, ranges: pa.Table | None, begin: Ints) -> tuple[Ints, Ints]:
    """When each value is live; NONE of a value without a live range.

    `begin` is when the program of each value begins.
    """
    if ranges is None:
        none = np.full(len(values), NONE)
        return none, none
    at = rows_of(ranges["value_id"], values["value_id"])
    start, end = (_numbers(ranges[name].take(at)) for name in ("start_time", "end_time"))
    return less(start, begin), less(end, begin)


def _mixed(*columns: Ints | _Hashes) -> _Hashes:
    """A hash of each row of these columns: after each column the bits are mixed (splitmix64)."""
    state = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        state ^= column.view(np.uint64)
        state += np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(30)
        state *= np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(27)
        state *= np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


def _sorted_bytes(hashes: _Hashes) -> bytes:
    """Order-independent hash."""
    return np.sort(hashes).astype("<u8").tobytes()


def _hashed_codes(codes: Codes) -> _Hashes:
    """The hash of each row's text; 0 of null."""
    return _hashed_texts(codes.texts)[codes.codes]


def _hashed_column(column: pa.ChunkedArray) -> _Hashes:
    """The same of a column of few distinct texts."""
    encoded = column.combine_chunks().dictionary_encode()
    return _hashed_texts(encoded.dictionary.to_pylist())[_numbers(encoded.indices)]


def _hashed_texts(texts: Sequence[str]) -> _Hashes:
    """The hash of each text, and at the end 0, for null."""
    digests = b"".join(_digest(text.encode()) for text in texts)
    return np.append(np.frombuffer(digests, "<u8"), np.uint64(0))


def _digest(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=8).digest()


def _numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    """The column as 64-bit numbers, NONE for null."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    filled = pc.fill_null(array, NONE) if array.null_count else array
    numbers: Ints = filled.to_numpy().astype(np.int64)
    return numbers


def _program_id(entry: int, allocations: bytes, values: bytes) -> int:
    """A program: its entry computation's hash, and those of its allocations and values."""
    content = blake2b(entry.to_bytes(8, "little"), digest_size=8)
    # The length tells where the allocations end.
    for part in (len(allocations).to_bytes(8, "little"), allocations, values):
        content.update(part)
    return hash_of_digest(content.digest())


def _skeleton_id(arguments: Iterable[tuple[str, int]]) -> int:
    """The entry computation's arguments: their names and ranks, in order."""
    return hash_of_texts("skeleton", *(f"{rank} {name}" for name, rank in arguments))
