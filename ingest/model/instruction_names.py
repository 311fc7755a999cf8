"""The module's instruction names and their numbers."""

import numpy as np
import pyarrow as pa

from .parts import Parts


class Names:
    """The module's instruction names, numbered in the order in which they are first seen.

    All files of a module use the same names, so the number is the key that joins the parts.
    """

    def __init__(self, parts: Parts) -> None:
        columns = _name_columns(parts)
        chunks = [chunk for column in columns.values() for chunk in column.chunks]
        # All columns are encoded at once, so that each name is looked up once.
        encoded = pa.concat_arrays(chunks or [pa.array([], pa.large_string())]).dictionary_encode()
        self.unique = encoded.dictionary
        ends = np.cumsum([len(column) for column in columns.values()])
        self.numbers = {
            name: encoded.indices[end - len(column) : end]
            for (name, column), end in zip(columns.items(), ends.tolist(), strict=True)
        }

    def numbered(self, table: pa.Table, column: str) -> pa.Table:
        """The table with instruction_id instead of the instruction's name."""
        at = table.schema.get_field_index("instruction")
        return table.set_column(at, "instruction_id", self.numbers[column])


def _name_columns(parts: Parts) -> dict[str, pa.ChunkedArray]:
    """Every column of instruction names."""
    hlo, used, assignment = parts.hlo, parts.used_values, parts.buffer_assignment
    columns = {}
    if hlo is not None:
        # Definitions come first, so that numbers follow the order of the HLO text.
        columns["definitions"] = hlo.instructions["instruction"]
        columns["operand"] = hlo.operands["operand"]
        columns["operands"] = hlo.operands["instruction"]
        columns["calls"] = hlo.calls["instruction"]
    if parts.live_range is not None:
        columns["schedule"] = parts.live_range.schedule["instruction"]
    if used is not None:
        columns["used_values"] = used.values["instruction"]
        columns["positions"] = used.positions["instruction"]
        columns["uses"] = used.uses["instruction"]
    if assignment is not None:
        columns["values"] = assignment.values["instruction"]
    if parts.live_range is not None:
        columns["ranges"] = parts.live_range.ranges["instruction"]
    return columns
