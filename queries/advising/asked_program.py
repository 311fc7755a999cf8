"""A module as findings ask it: its layout, its instructions, and what they are computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ...schema.stores.base import Store
from ...xla.program import NumberedProgram
from ..catalogue import statement
from ..stored_program import stored_program
from .graph import Graph
from .space_layout import Layout


@dataclass(frozen=True)
class Program:
    """One memory space of a module; space 0 is the device's main memory.

    platform: cpu, gpu or tpu, None if not known; vmem_bytes: a TPU's memory on chip.
    """

    store: Store
    module_id: int
    dump_id: int
    platform: str | None
    vmem_bytes: int | None
    origin: str
    layout: Layout

    @cached_property
    def entry_arrays(self) -> pa.Table:
        """The arrays of arguments and result: the columns of the view `_entry_arrays`."""
        return self.rows(
            "SELECT * FROM _entry_arrays WHERE module_id = $1 ORDER BY is_output, place"
        )

    @cached_property
    def instructions(self) -> pa.Table:
        """Every instruction, by instruction_id: the columns of `advise_instructions`."""
        return self.rows(statement("advise_instructions"))

    @cached_property
    def uses(self) -> pa.Table:
        """value_id, use_index, instruction_id, operand_number, operand_shape_index."""
        return self.rows("SELECT * FROM uses WHERE module_id = $1 ORDER BY value_id, use_index")

    @cached_property
    def positions(self) -> pa.Table:
        """value_id, position_index, instruction_id, shape_index."""
        return self.rows(
            "SELECT * FROM positions WHERE module_id = $1 ORDER BY value_id, position_index"
        )

    @cached_property
    def trains(self) -> bool:
        """Whether it has a backward pass."""
        found = self.rows(
            "SELECT 1 FROM instructions WHERE module_id = $1 AND pass = 'backward' LIMIT 1"
        )
        return bool(found.num_rows)

    @cached_property
    def graph(self) -> Graph:
        """The instructions and what they read and call. There must be a program."""
        assert self.hlo is not None
        return Graph(self.hlo)

    @cached_property
    def hlo(self) -> NumberedProgram | None:
        """The program as ingest had it; None if it was not kept, see `stored_program`."""
        return stored_program(self.store, self.module_id)

    def rows(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a query of which `$1` is the module; the parameters follow."""
        return self.store.rows(query, [self.module_id, *parameters])


def read_program(store: Store, module_id: int, dump_id: int, layout: Layout) -> Program:
    """The program of a module in a dump."""
    (row,) = store.rows(statement("advise_program"), [dump_id]).to_pylist()
    return Program(
        store,
        module_id,
        dump_id,
        row["platform"],
        row["vmem_bytes"],
        row["origin"],
        layout,
    )
