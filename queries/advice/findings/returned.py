"""Arguments that a program returns as they came."""

from collections import Counter, defaultdict

import numpy as np

from ....schema.readable import human_bytes
from ...cells import counted
from ..asked_program import Change, Place, Program, function_line
from ..finding import Finding, Grade
from . import INSTRUCTIONS, OWNERS, listed
from .donations import EntryArray, entry_arrays

# A smaller part of the peak is not worth a line.
_WORTH = 0.01
# They hand on elements as they are; the number of operands of which they do.
_COPIES = {
    **dict.fromkeys(("bitcast", "copy", "copy-done", "copy-start", "reshape", "slice"), 1),
    **dict.fromkeys(("async-done", "async-start", "async-update", "optimization-barrier"), 1),
    **dict.fromkeys(("call", "fusion", "get-tuple-element", "parameter", "tuple", "while"), 1),
    **{"dynamic-slice": 1, "dynamic-update-slice": 2},
}
# What a loop writes all parts of.
_EMPTY = {"broadcast", "constant"}


@listed(0, OWNERS, INSTRUCTIONS)
def returned(program: Program) -> list[Finding]:
    """A finding for each argument that a user can name, of which outputs are copies.

    Without the outputs all of their memory is saved.
    """
    layout = program.layout
    by_name: dict[str, list[tuple[EntryArray, EntryArray]]] = defaultdict(list)
    for argument, output in returned_arrays(program):
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


def returned_arrays(program: Program) -> list[tuple[EntryArray, EntryArray]]:
    """The outputs in memory of their own that are copies, each with its argument."""
    arguments, outputs = entry_arrays(program)
    graph = program.graph
    entry = graph.program.entry
    parameters = graph.parameters(entry)
    by_place = {
        (parameters[each.parameter_number], each.index): each
        for each in arguments
        if each.parameter_number is not None
    }
    alike = {(each.element_type, each.dimensions) for each in arguments}
    found = []
    for output in outputs:
        if output.is_shared or (output.element_type, output.dimensions) not in alike:
            continue
        place = _copied_from(program, (graph.root(entry), output.index), set(by_place))
        argument = by_place.get(place) if place is not None else None
        if argument is not None and argument.dimensions == output.dimensions:
            found.append((argument, output))
    return found


def _copied_from(program: Program, output: Place, arguments: set[Place]) -> Place | None:
    """The argument whose elements an output has; None if anything else is in it."""
    graph, flow = program.graph, program.dimensions.flow
    found: set[Place] = set()
    indices: list[Counter[str]] = []
    seen, waiting = {output}, [output]
    while waiting:
        place = waiting.pop()
        opcode = graph.opcode[place[0]]
        if place in arguments:
            found.add(place)
            continue
        if program.graph.program.custom_call_target.at(place[0]) == "ConcatBitcast":
            # XLA fetched it in parts.
            opcode = "bitcast"
        if opcode not in _COPIES:
            # Only what a loop fills is empty before.
            if opcode not in _EMPTY or not indices:
                return None
            continue
        sources = flow.sources.get(place) or []
        if opcode in {"dynamic-slice", "dynamic-update-slice"}:
            count = _COPIES[opcode]
            indices.append(_makes(program, sources[count:]))
            sources = sources[:count]
        for source in sources:
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    # A part is written where it was read.
    if len(found) != 1 or any(each != indices[0] for each in indices):
        return None
    return found.pop()


def _makes(program: Program, places: list[Place]) -> Counter[str]:
    """By which operations indices are computed."""
    graph, flow = program.graph, program.dimensions.flow
    made: set[Place] = set()
    for place in places:
        made |= set(flow.before(place, {"parameter", "get-tuple-element", "fusion", "bitcast"}))
    hand_on = {"parameter", "get-tuple-element", "fusion", "bitcast", "while", "constant"}
    return Counter(op for op in {graph.opcode[at] for at, _ in made} if op not in hand_on)
