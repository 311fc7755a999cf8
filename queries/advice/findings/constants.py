"""Large arrays that a function closes over, which are constants of its program."""

from ....schema.readable import human_bytes
from ...catalogue import statement
from ...result import counted, without_layout
from ..asked_program import Program, function_line
from ..finding import Finding, Grade
from . import OWNERS, listed

# A smaller constant is not worth another argument.
_WORTH = 0.01
_LEAST_BYTES = 1 << 20


@listed(8, OWNERS)
def constants(program: Program) -> list[Finding]:
    """At most one finding, a fact: as an argument the array is one for all programs."""
    layout = program.layout
    least = max(_LEAST_BYTES, _WORTH * layout.peak_bytes)
    rows = [
        row
        for row in program.rows(statement("advise.constants"), [layout.memory_space]).to_pylist()
        if row["size_bytes"] >= least
    ]
    if not rows:
        return []
    size = human_bytes(sum(row["size_bytes"] for row in rows))
    largest = rows[0]
    return [
        Finding(
            kind="constant of the program",
            title=f"{size} are constants of the program: pass them as arguments",
            grade=Grade.fact,
            write="f(x, table) instead of a table that f closes over, and jax.device_put(table)"
            " once; what positions or shapes tell, compute with jnp",
            why=f"{counted(len(rows), 'constant')}, the largest"
            f" {without_layout(largest['shape'])}; each program that has them holds its own copy,"
            " compiles it and keeps it in its executable",
            value_ids=tuple(row["value_id"] for row in rows),
            source=next((row["source"] for row in rows if row["source"]), None)
            or function_line(program),
        )
    ]
