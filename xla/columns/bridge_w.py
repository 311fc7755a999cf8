"""Room W's rules for callers that still have columns."""

import pyarrow as pa

from ..work import Work, measure_work
from .bridge import plain_program
from .parts import HloText
from .program import NumberedProgram


def work_columns(
    program: NumberedProgram, hlo: HloText, count: int
) -> tuple[Work, pa.Array, pa.Array]:
    """The work, and the columns flops of `count` instructions and trip_count of calls."""
    plain = plain_program(program, hlo)
    work = measure_work(plain)
    is_loop = program.call_attribute.is_one_of("body", "condition")
    trip_counts = [
        work.trip_counts.get(row) if is_loops and plain.opcode[row] == "while" else None
        for row, is_loops in zip(program.call_row.tolist(), is_loop.tolist(), strict=True)
    ]
    flops = pa.array([work.flops.get(row) for row in range(count)], pa.int64())
    return work, flops, pa.array(trip_counts, pa.int64())
