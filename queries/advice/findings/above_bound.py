"""What XLA's packing of the temp takes beyond what must be live, and since when."""

from ....schema.readable import human_bytes
from ...catalogue import statement
from ..asked_program import Program
from ..finding import Finding, Grade

PLACE, COMPUTES_AGAIN = 11, False
NEEDS: frozenset[str] = frozenset()

# Less of the peak is what packing always leaves.
_WORTH = 0.01


def above_bound(program: Program) -> list[Finding]:
    """At most one finding, a fact: packing is XLA's, and no change is sure to lessen it."""
    space = program.layout.memory_space
    found = program.rows(statement("advise.packing"), [space, program.dump_id]).to_pylist()
    # An estimate knows no packing.
    if not found or (found[0]["packing_bytes"] or 0) < _WORTH * program.layout.peak_bytes:
        return []
    (row,) = found
    since = ""
    if row["since_run_id"] is not None:
        since = f", since run {row['since_run_id']}"
        if row["since_compiler"] is not None:
            since += f" (compiler {row['since_compiler']})"
    size = human_bytes(row["packing_bytes"])
    return [
        Finding(
            kind="packing",
            title=f"packing takes {size} beyond what is live at one time{since}",
            grade=Grade.fact,
            write="nothing is sure to help: compare with another version of the compiler",
            why=f"the temp is {human_bytes(row['temp_bytes'])}, and at most "
            f"{human_bytes(row['live_bound_bytes'])} of it are live at one time; the peak has no "
            "part of the rest, the program's total has",
            value_ids=(),
        )
    ]
