"""Copies that XLA made itself, and that lie in the memory space at the peak."""

from ....schema.readable import human_bytes
from ...catalogue import statement
from ..asked_program import Program
from ..finding import Finding, Grade
from . import OWNERS

PLACE, COMPUTES_AGAIN = 8, False
NEEDS: frozenset[str] = frozenset({OWNERS})

_WORTH = 0.01


def own_copies(program: Program) -> list[Finding]:
    """At most one finding: how many, how large, in which loop; what is lost with them is told.

    The source and the copy are both live, so at most the copies' bytes would be saved.
    """
    query = statement("advise.copies")
    copies = program.rows(query, [program.layout.memory_space]).to_pylist()
    size = sum(row["counted_bytes"] for row in copies)
    if size < _WORTH * program.layout.peak_bytes:
        return []
    places = [f"{row['instruction']} ({human_bytes(row['counted_bytes'])})" for row in copies[:3]]
    in_loops = sum(not row["is_entry"] for row in copies)
    lines = dict.fromkeys(row["source"] for row in copies if row["source"] is not None)
    where = ", in loops" if in_loops == len(copies) else f", {in_loops} of them in loops"
    return [
        Finding(
            kind="copied by XLA",
            title=f"{human_bytes(size)} of the peak are copies that XLA made itself:"
            f" {len(copies)}{where if in_loops else ''}",
            grade=Grade.fact,
            write="look at what is copied: a value that is changed in place while its old rows are"
            " still read, or a layout that two readers want otherwise",
            why=f"the largest are {', '.join(places)}; no line of the program asks for them",
            value_ids=tuple(row["value_id"] for row in copies),
            source=next(iter(lines), None),
        )
    ]
