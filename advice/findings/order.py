"""Another order of the same instructions, which needs less at its peak."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from ...queries.result import counted
from ...schema.readable import human_bytes
from ...xla.computation_order import MovableBuffer
from ...xla.order import MAX_INSTRUCTIONS, Ordering, order_instructions
from ...xla.order_buffers import OrderedValue
from ...xla.program import NONE
from ..asked_program import Program
from ..finding import Finding, Grade, Options
from . import listed

# What is less of the peak, or less than so many bytes, is not worth an order.
_WORTH = 0.05
_LEAST = 1 << 20
# What became of the saving that the depth-first order promised: docs/advice/order.md.
_LOW, _HIGH = 0.75, 1.05
_LINES = 3
_FLAG = "xla_cpu_enable_concurrency_optimized_scheduler"


@listed(6)
def another_order(program: Program) -> list[Finding]:
    """On CPU the flag for XLA's depth-first order, unless the program was compiled with it."""
    layout = program.layout
    if program.platform != "cpu" or not layout.is_temp.any():
        return []
    if layout.schedule_length > MAX_INSTRUCTIONS:
        return []
    peaks = program.worked_out(order_of)
    temps = layout.peak_bytes - int(layout.allocation_bytes[~layout.is_temp].sum())
    if abs(peaks.now_bytes - temps) > _WORTH * layout.peak_bytes:
        # XLA's places say more than the buffers, and nothing that is foreseen would be right.
        return []
    saved = peaks.now_bytes - peaks.depth_first_bytes
    if saved < max(_LEAST, _WORTH * layout.peak_bytes):
        return []
    is_set = program.rows(
        "SELECT 1 FROM dumps INNER JOIN compiler_flags USING (flags_id)"
        " WHERE module_id = $1 AND dump_id = $2 AND flag = $3 AND lower(value) = 'false'",
        [program.dump_id, _FLAG],
    )
    if len(is_set):
        return []
    groups = _groups(program)
    low = min(int(_LOW * saved), peaks.now_bytes - peaks.crowded_bytes)
    high = min(int(_HIGH * saved), peaks.now_bytes)
    return [
        Finding(
            kind="another order",
            title="compile for CPU in depth-first order: the same instructions need"
            f" {human_bytes(peaks.depth_first_bytes)} of temps instead of"
            f" {human_bytes(peaks.now_bytes)}",
            grade=Grade.between if low > 0 else Grade.at_most,
            write=f"XLA_FLAGS=--{_FLAG}=false in the environment of a new process; independent work"
            " then waits for its turn",
            why=f"{_spare_words(groups)}; no order of these instructions needs less than"
            f" {human_bytes(peaks.bound_bytes)}",
            value_ids=_value_ids(program, groups),
            source=groups[0].line if groups else None,
            saving_bytes=saved if low > 0 else high,
            low_bytes=low,
            high_bytes=high,
            is_new_order=True,
            options=Options(flags=f"--{_FLAG}=false"),
        )
    ]


# What is there at the peak, and need not be: exact, whatever the best order is.


class _Group:
    """Buffers of one line that wait for one line, or that one line made early."""

    def __init__(
        self, line: str | None, reader: str | None, spare: Sequence[MovableBuffer]
    ) -> None:
        self.line, self.reader, self.spare = line, reader, spare
        self.is_read_late = spare[0].is_read_late
        self.size_bytes = sum(each.size_bytes for each in spare)

    def __str__(self) -> str:
        size = f"{human_bytes(self.size_bytes)} in {counted(len(self.spare), 'buffer')}"
        at = "" if self.line is None else f" at {self.line}"
        if self.reader in (None, self.line):
            return f"{size} {'read late' if self.is_read_late else 'made early'}{at}"
        if self.is_read_late:
            return f"{size} made{at} and read late at {self.reader}"
        return f"{size} made early{at}, for {self.reader}"


def _groups(program: Program) -> list[_Group]:
    """What is there at the peak and need not be, by the lines that make and read it."""
    rows = program.instructions
    at_peak = pc.equal(rows["schedule_time"], program.layout.peak_time)
    (row,) = rows["instruction_id"].filter(at_peak).to_pylist()
    files, numbers = rows["source_file"].to_pylist(), rows["source_line"].to_pylist()

    def line(instruction: int) -> str | None:
        file = files[instruction]
        return None if file is None else f"{file}:{numbers[instruction]}"

    found = defaultdict(list)
    ordering = program.worked_out(order_of)
    for each in ordering.movable_buffers(row):
        values = ordering.buffers.values[each.buffer]
        made = line(each.maker) or next(filter(None, map(program.lines.get, values)), None)
        found[made, line(each.reader), each.is_read_late].append(each)
    groups = [_Group(made, reader, spare) for (made, reader, _), spare in found.items()]
    return sorted(groups, key=lambda group: -group.size_bytes)


def _spare_words(groups: Sequence[_Group]) -> str:
    """What need not be there at the peak, the most of it by lines."""
    if not groups:
        return (
            "all that is there at the peak is so in every order, but what is there later need not"
        )
    total = sum(group.size_bytes for group in groups)
    lines = "; ".join(map(str, groups[:_LINES]))
    return f"{human_bytes(total)} need not be there at the peak: {lines}"


def _value_ids(program: Program, groups: Sequence[_Group]) -> tuple[int, ...]:
    contents = program.worked_out(order_of).buffers.values
    spare = [each for group in groups for each in group.spare]
    spare.sort(key=lambda each: -each.size_bytes)
    return tuple(value for each in spare for value in contents[each.buffer])


def order_of(program: Program) -> Ordering:
    """The orders of a program's instructions. Its HLO text must be known."""
    assert program.hlo is not None
    layout = program.layout
    is_temp = np.isin(layout.allocation, layout.allocation_index[layout.is_temp])
    columns = (layout.value_id, layout.allocation, layout.offset, is_temp)
    placed = {row[0]: row[1:] for row in zip(*(each.tolist() for each in columns), strict=True)}
    table = program.rows(
        "SELECT value_id, instruction_id, COALESCE(alias_set, -1) AS alias_set, memory_space,"
        ' COALESCE(size_bytes, 0) AS size_bytes FROM "values" WHERE module_id = $1'
        " ORDER BY value_id"
    )
    values = [
        OrderedValue(*row, *placed.get(row[0], ()))
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]
    users = (program.uses[name].to_pylist() for name in ("value_id", "instruction_id"))
    uses = list(zip(*users, strict=True))
    times = pc.fill_null(program.instructions["schedule_time"], NONE).to_pylist()
    return order_instructions(
        program.hlo, times, values, uses, layout.memory_space, program.platform
    )
