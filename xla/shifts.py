"""The rows of several programs as those of one, whose numbers follow each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .runs import Ints, starts_of

# What a column of numbers counts.
_COUNTED = {
    "instruction": (
        "instruction_id", "operand_instruction_id", "predecessor_instruction_id",
        "origin_instruction_id", "made_instruction_id", "read_instruction_id",
        "peak_instruction_id", "row",
    ),
    "value": ("value_id", "alias_set"),
    "allocation": ("allocation_index",),
    "space": ("memory_space",),
    "time": (
        "schedule_time", "start_time", "end_time", "idle_start_time", "idle_end_time",
        "peak_time", "last_use_time",
    ),
    "frame": ("stack_frame_id", "parent_frame_id", "source_frame_id"),
    "scope": ("scope_id",),
    "residual": ("residual_id",),
}  # fmt: skip
_COUNTED_BY = {name: counted for counted, names in _COUNTED.items() for name in names}
MOST = 2**31 - 1


class Divided(NamedTuple):
    """The rows of programs, one after the other: where those of each start, and where all end."""

    table: pa.Table
    starts: Ints

    @staticmethod
    def of(tables: Sequence[pa.Table]) -> "Divided":
        """The rows of several tables, which may lack columns."""
        lengths = np.array([len(table) for table in tables])
        return Divided(pa.concat_tables(tables, promote_options="permissive"), starts_of(lengths))

    def part(self, number: int) -> pa.Table:
        """The rows of one program."""
        start, stop = self.starts[number : number + 2].tolist()
        return self.table.slice(start, stop - start)


@dataclass(frozen=True)
class Shifts:
    """Where the numbers of each program start, by what they count; at the end where the last ends.

    The first program's start at 0, so that of one program alone nothing is shifted.
    """

    starts: Mapping[str, Ints]

    @staticmethod
    def alone(length: int) -> "Shifts":
        """Those of one program, whose schedule has a length."""
        none = dict.fromkeys(_COUNTED, np.array([0, MOST]))
        return Shifts(none | {"time": np.array([0, length])})

    def __len__(self) -> int:
        return len(self.starts["time"]) - 1

    def of(self, counted: str, numbers: Ints) -> Ints:
        """Which program each of these numbers is of."""
        found: Ints = np.searchsorted(self.starts[counted], numbers, side="right") - 1
        return found

    def bounds(self, table: pa.Table) -> list[int]:
        """Where the rows of each program start in a table by its first number, and the end."""
        name = next(name for name in table.column_names if name in _COUNTED_BY)
        starts = self.starts[_COUNTED_BY[name]][:-1]
        found: list[int] = np.searchsorted(table[name].to_numpy(), starts).tolist()
        return [*found, len(table)]

    def joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of the programs, one after the other, with their numbers shifted."""
        if len(tables) == 1:
            return tables[0]
        return self._moved(
            pa.concat_tables(tables), np.array([len(table) for table in tables]), pc.add
        )

    def divided(self, table: pa.Table) -> Divided:
        """The rows of the programs, each with its own numbers."""
        if len(self) == 1:
            return Divided.of([table])
        bounds = np.array(self.bounds(table))
        return Divided(self._moved(table, np.diff(bounds), pc.subtract), bounds)

    def _moved(
        self, table: pa.Table, counts: Ints, operation: Callable[[pa.Array, pa.Array], pa.Array]
    ) -> pa.Table:
        table = table.combine_chunks()
        for place, name in enumerate(table.column_names):
            if name in _COUNTED_BY:
                column = table.column(place)
                by = np.repeat(self.starts[_COUNTED_BY[name]][:-1], counts)
                moved = operation(column, pa.array(by, column.type))
                table = table.set_column(place, name, moved)
        return table


def less(numbers: Ints, start: Ints | int) -> Ints:
    """Numbers counted from where a program starts; -1, which is none, stays."""
    return np.where(numbers == -1, -1, numbers - start)
