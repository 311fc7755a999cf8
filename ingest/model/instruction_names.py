"""The module's instruction names and their numbers."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .parts import HloText, Parts


class Names:
    """The module's instruction names, numbered in the order in which they are first seen.

    All files of a module use the same names, so the number is the key that joins the parts.
    """

    def __init__(self, parts: Parts) -> None:
        columns = _name_columns(parts)
        # All columns are encoded at once, so that each name is looked up once.
        chunks = [chunk for column in columns.values() for chunk in column.chunks]
        encoded = pa.concat_arrays(chunks or [pa.array([], pa.large_string())]).dictionary_encode()
        self.unique = encoded.dictionary
        self.numbers: dict[str, pa.Int32Array] = {}
        self._divide(encoded.indices, columns)
        if parts.hlo is not None:
            self.numbers["operands"] = _of_operands(self.numbers["operators"], parts.hlo)

    def add(self, parts: Parts) -> None:
        """Number the columns of parts that have been worked out since: they hold known names."""
        columns = {n: c for n, c in _name_columns(parts).items() if n not in self.numbers}
        if columns:
            chunks = [chunk for column in columns.values() for chunk in column.chunks]
            numbers = pc.index_in(pa.chunked_array(chunks), value_set=self.unique)
            self._divide(numbers.combine_chunks(), columns)

    def _divide(self, numbers: pa.Int32Array, columns: dict[str, pa.ChunkedArray]) -> None:
        """Hand out the numbers to the columns, which follow each other."""
        start = 0
        for name, column in columns.items():
            self.numbers[name] = numbers[start : start + len(column)]
            start += len(column)

    def numbered(self, table: pa.Table, column: str) -> pa.Table:
        """The table with instruction_id instead of the instruction's name."""
        at = table.schema.get_field_index("instruction")
        return table.set_column(at, "instruction_id", self.numbers[column])


def _of_operands(operators: pa.Int32Array, hlo: HloText) -> pa.Int32Array:
    """The number of each operand's instruction, from those of the instructions with operands."""
    first = np.flatnonzero(hlo.operands["operand_number"].to_numpy() == 0)
    count = np.diff(np.append(first, len(hlo.operands)))
    return pa.array(np.repeat(operators.to_numpy(), count))


def _name_columns(parts: Parts) -> dict[str, pa.ChunkedArray]:
    """Every column of instruction names."""
    hlo, used, assignment = parts.hlo, parts.used_values, parts.buffer_assignment
    columns = {}
    if hlo is not None:
        # Definitions come first, so that numbers follow the order of the HLO text.
        columns["definitions"] = hlo.instructions["instruction"]
        columns["operand"] = hlo.operands["operand"]
        # Each instruction with operands once: its operands follow each other.
        is_first = pc.equal(hlo.operands["operand_number"], 0)
        columns["operators"] = hlo.operands["instruction"].filter(is_first)
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
