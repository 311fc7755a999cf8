"""What XLA's packing and its copies take."""

from ....schema.readable import human_bytes
from ...catalogue import statement
from ..asked_program import Program
from ..finding import Finding, Grade
from . import OWNERS, listed

# What XLA's packing of the temp takes beyond what must be live, and since when.

# Less of the peak is not worth a finding: it is what packing always leaves.
_WORTH = 0.025


@listed(11)
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


# Copies that XLA made itself, and that lie in the memory space at the peak.


@listed(8, OWNERS)
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
