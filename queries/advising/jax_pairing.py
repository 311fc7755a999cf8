"""Which output takes the place of which donated argument, as JAX and XLA pair them."""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from .asked_program import Program

# `state['w']`, `state.w` and `state[0]` are of `state`; `args[0]['w']` is of `args[0]`.
_TOP_LEVEL = re.compile(r"arg(?:s|uments)\[\d+\]|kwargs\['[^']*'\]|\w+")


@dataclass(frozen=True)
class EntryArray:
    """An array of the arguments or of the result, of one device.

    place: 1 for the first, in flattening order; index: such as `{1}` of the result; name: of an
    argument, where XLA kept it. is_donated: of an argument; is_shared: the result's memory is
    an argument's.
    """

    place: int
    parameter_number: int | None
    index: str
    name: str | None
    element_type: str
    dimensions: str
    shape: str
    logical_bytes: int
    padded_bytes: int
    element_bits: int
    value_id: int
    allocation_index: int
    is_donated: bool
    is_shared: bool

    @property
    def top_level(self) -> str:
        """The argument that a user can name."""
        return top_level(self.name, self.parameter_number)


@dataclass(frozen=True)
class Pair:
    """An output, and the argument whose memory it takes if that is donated.

    by_shape: JAX pairs the two, for their type and dimensions; otherwise XLA, for their bytes.
    """

    argument: EntryArray
    output: EntryArray
    by_shape: bool


def top_level(name: str | None, parameter_number: int | None) -> str:
    """The argument that a user can name, of the name of an array in it."""
    found = _TOP_LEVEL.match(name or "")
    return found.group() if found else f"argument {parameter_number}"


def free_arrays(program: Program) -> tuple[list[EntryArray], list[EntryArray]]:
    """The arguments that are not donated, and the outputs that have memory of their own."""
    arguments, outputs = entry_arrays(program)
    return (
        [each for each in arguments if not (each.is_donated or each.is_shared)],
        [each for each in outputs if not each.is_shared],
    )


def partitions(program: Program) -> int:
    """The SPMD partitions that the program was compiled for."""
    (row,) = program.rows("SELECT num_partitions FROM modules WHERE module_id = $1").to_pylist()
    return int(row["num_partitions"] or 1)


def entry_arrays(program: Program) -> tuple[list[EntryArray], list[EntryArray]]:
    """The arrays of the arguments and of the result that lie in the layout's memory space."""
    arguments: list[EntryArray] = []
    outputs: list[EntryArray] = []
    for row in program.entry_arrays.to_pylist():
        if row["memory_space"] != program.layout.memory_space or row["padded_bytes"] is None:
            continue
        array = EntryArray(
            row["place"],
            row["parameter_number"],
            row["shape_index"],
            None if row["is_output"] else row["op_name"],
            row["element_type"],
            row["dimensions"],
            row["shape"],
            row["logical_bytes"],
            row["padded_bytes"],
            row["element_bits"],
            row["value_id"],
            row["allocation_index"],
            row["is_donor"] or (row["is_shared"] and not row["is_output"]),
            row["is_shared"],
        )
        (outputs if row["is_output"] else arguments).append(array)
    return arguments, outputs


def pair_up(
    arguments: Sequence[EntryArray], outputs: Sequence[EntryArray], partitions: int
) -> list[Pair]:
    """Each output's argument, if all these arguments are donated.

    JAX takes for each output in order the first argument of its type and dimensions that is not
    taken yet. These are a device's part, so that arrays that are sharded otherwise differ. What
    is left over XLA pairs by equal bytes, and JAX lets it for an equal number of elements, or if
    the program is partitioned.
    """
    by_shape = [
        Pair(argument, output, by_shape=True)
        for argument, output in _first_come(
            arguments, outputs, lambda each: (each.element_type, each.dimensions)
        )
    ]
    taken = {each.argument for each in by_shape} | {each.output for each in by_shape}

    def by_bytes(array: EntryArray) -> Hashable:
        if partitions > 1:
            return array.padded_bytes
        return array.padded_bytes, array.logical_bytes, array.element_bits

    left = _first_come(
        [each for each in arguments if each not in taken],
        [each for each in outputs if each not in taken],
        by_bytes,
    )
    return by_shape + [Pair(argument, output, by_shape=False) for argument, output in left]


def _first_come(
    arguments: Iterable[EntryArray],
    outputs: Iterable[EntryArray],
    key: Callable[[EntryArray], Hashable],
) -> list[tuple[EntryArray, EntryArray]]:
    """Each output with the first argument of its key that is not taken yet."""
    waiting: dict[Hashable, list[EntryArray]] = {}
    for argument in arguments:
        waiting.setdefault(key(argument), []).append(argument)
    return [
        (fitting.pop(0), output) for output in outputs if (fitting := waiting.get(key(output), []))
    ]
