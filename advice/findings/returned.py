"""Arguments that a program returns as they came."""

from collections import defaultdict

import numpy as np

from ...queries.result import counted
from ...schema.readable import human_bytes
from ...xla.donations import EntryArray
from ..asked_program import Change, Program, function_line
from ..finding import Finding, Grade
from . import listed
from .donations import returned_arrays

# A smaller part of the peak is not worth a line.
_WORTH = 0.01


@listed(0)
def returned(program: Program) -> list[Finding]:
    """A finding for each argument that a user can name, of which outputs are copies.

    Without the outputs all of their memory is saved.
    """
    layout = program.layout
    by_name: dict[str, list[tuple[EntryArray, EntryArray]]] = defaultdict(list)
    for argument, output in program.worked_out(returned_arrays):
        by_name[argument.top_level].append((argument, output))
    findings = []
    for name, pairs in by_name.items():
        allocations = [output.allocation_index for _, output in pairs]
        is_freed = np.isin(layout.allocation_index, allocations)
        saved = int(layout.allocation_bytes[is_freed].sum())
        if saved < _WORTH * layout.peak_bytes:
            continue
        is_of_output = np.isin(layout.allocation, allocations)
        ends = {output.value_id for _, output in pairs}
        alias_sets = layout.alias_set[np.isin(layout.value_id, list(ends))]
        gone = layout.value_id[is_of_output & np.isin(layout.alias_set, alias_sets)]
        findings.append(
            Finding(
                kind="returned as it came",
                title=f"do not return {name}: {counted(len(pairs), 'output')} of"
                f" {human_bytes(saved)} are copies of it",
                grade=Grade.exact if program.platform in {"cpu", "tpu"} else Grade.at_most,
                write="return only what is new, and of a scan None for ys that are its xs",
                why="nothing computes what these outputs hold: their elements are the argument's",
                value_ids=tuple(each.value_id for pair in pairs for each in pair),
                source=program.lines.get(pairs[0][1].value_id) or function_line(program),
                saving_bytes=saved,
                low_bytes=saved,
                high_bytes=saved,
                change=Change(frozenset(gone.tolist()), frozenset(allocations)),
            )
        )
    return findings
