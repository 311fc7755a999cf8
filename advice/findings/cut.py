"""What is computed at once and could be computed in parts: a dominating group, or a batch."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from ...queries.catalogue import statement
from ...queries.result import counted, without_layout
from ...schema.readable import human_bytes
from ...xla.donations import EntryArray
from ...xla.shapes import ArrayShape
from ..asked_program import Change, Program, memory_on_chip, saving
from ..cutting import HAND_ON, Array, Cut, Cutting, flat
from ..finding import Finding, Grade, Options
from ..flow import Mask
from ..graph import Slot
from . import listed
from .donations import donation_groups
from .residuals import read_residuals, read_scans

# A smaller part of the peak is not worth a change of the program.
_WORTH = 0.1
# Twice as many parts are worth it if they bring as much of the peak.
_DOUBLED = 0.02
_COUNTS = (4, 8, 16)
_MICROBATCHES = (4,)
# A batch of fewer has no parts that are worth a loop.
_LEAST_BATCH = 16
# A group stands out if what it is computed from has at most this part of its bytes.
_BULGE = 0.5
_LINES = 3
_GROUPS = 3
_OF_LINES = 0.8

# A group of arrays that makes much of the peak, such as logits or the scores of attention.


@listed(3)
def chunked(program: Program) -> list[Finding]:
    """The largest group of temps that can be cut, in a finding for each number of chunks."""
    cutting = program.worked_out(Cutting)
    of_arguments = {
        _sizes(cutting, (atom for word in words for atom in word))
        for _, _, words in cutting.arguments
    }
    # What a scan saves of all layers is computed again, not cut, and so are random bits.
    space = [program.layout.memory_space]
    bits = {*program.rows(statement("advise.random_bits"), space)["value_id"].to_pylist()}
    scans = read_scans(program, read_residuals(program))
    stacked = {value for scan in scans for stack in scan.stacks for value in stack.value_ids}
    for group, arrays in cutting.groups(program.layout.peak_time)[:_GROUPS]:
        size = cutting.bytes_of(arrays)
        if size < _WORTH * program.layout.peak_bytes:
            return []
        if _sizes(cutting, group) in of_arguments or not _is_of_few_lines(cutting, arrays):
            continue
        drawn = sum(cutting.size(each) for each in arrays if each.value_id in bits)
        if stacked.issuperset(each.value_id for each in arrays) or 2 * drawn > size:
            continue
        region = cutting.region(partial(_contains, part=group))
        inside = [each for each in cutting.arrays if _contains(flat(each), group)]
        for atom in sorted({*group}, key=lambda each: -cutting.dimensions.atoms.sizes[each]):
            if (
                _may_be_cut(cutting, atom)
                and _stands_out(cutting, atom, region)
                and cutting.can_be_cut(atom, region)
            ):
                cuts = _in_parts(cutting, atom, inside, cutting.summed(region, atom), _COUNTS)
                if cuts:
                    return [_chunk(cutting, cut) for cut in cuts]
    return []


def _sizes(cutting: Cutting, atoms: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(cutting.dimensions.atoms.sizes[atom] for atom in atoms))


def _may_be_cut(cutting: Cutting, atom: int) -> bool:
    """Whether it is an axis of data: of features are the weights, and the last axis of the rest."""
    if not cutting.program.trains and any(
        len(words) > 1 and atom in words[-1] for _, _, words in cutting.arguments
    ):
        return False
    return atom not in cutting.of_weights and atom not in cutting.dimensions.arrays.counts


def _is_of_few_lines(cutting: Cutting, arrays: list[Array]) -> bool:
    """Whether a few lines make most of a group; what a whole network saves is of many."""
    sizes: Counter[str | None] = Counter()
    lines = cutting.program.lines
    for array in arrays:
        sizes[lines.get(array.value_id)] += cutting.size(array)
    few = sum(size for _, size in sizes.most_common(_LINES))
    return few >= _OF_LINES * sum(sizes.values())


def _stands_out(cutting: Cutting, atom: int, region: Mask) -> bool:
    """Whether what goes into a group and what comes out of it are small beside it."""
    graph, flow, elements = cutting.program.graph, cutting.flow, cutting.elements
    outside = cutting.with_atom(atom) & ~region
    most = _BULGE * elements[region].max(initial=0)
    for within, beside in ((flow.reader, flow.source), (flow.source, flow.reader)):
        others = np.unique(beside[region[within] & outside[beside]])
        made = sum(elements[at] for at in others.tolist() if graph.opcode_at(at) not in HAND_ON)
        if max(made, elements[others].max(initial=0)) > most:
            return False
    return True


def _in_parts(
    cutting: Cutting, atom: int, arrays: list[Array], summed: set[int], counts: Sequence[int]
) -> list[Cut]:
    """The program in so many parts, as long as twice as many bring more."""
    layout, size = cutting.layout, cutting.dimensions.atoms.sizes[atom]
    cuts: list[Cut] = []
    before = layout.peak_bytes
    for count in counts:
        if size % count:
            break
        cut = cutting.cut(atom, arrays, summed, count)
        if before - cut.peak_bytes < _DOUBLED * layout.peak_bytes:
            break
        before = cut.peak_bytes
        cuts.append(cut)
    return [cut for cut in cuts if layout.peak_bytes - cut.peak_bytes >= _least(cutting.program)]


def _least(program: Program) -> int:
    """The saving from which on a cut is told."""
    return max(int(_WORTH * program.layout.peak_bytes), memory_on_chip(program))


def _chunk(cutting: Cutting, cut: Cut) -> Finding:
    program = cutting.program
    arrays = [each for each in cut.arrays if cutting.lies_at(each, program.layout.peak_time)]
    largest = max(arrays, key=lambda each: (cutting.size(each), len(each.words)))
    axis, shape = cutting.named(cut.atom), without_layout(str(largest.shape))
    again = " under jax.checkpoint" if program.trains else ""
    return Finding(
        kind="computed at once",
        title=f"compute {shape} in {cut.count} chunks along {axis}",
        write=f"jax.lax.map(part, x.reshape({cut.count}, -1, ...)), where part{again} has all that"
        " makes and reads it",
        why=f"{human_bytes(cutting.bytes_of(arrays))} of the peak have its dimensions, in"
        f" {counted(len(arrays), 'array')}; nothing that is computed from all of the axis goes"
        " back into them",
        value_ids=tuple(each.value_id for each in sorted(arrays, key=lambda a: -cutting.size(a))),
        source=program.lines.get(largest.value_id),
        choice="chunk",
        options=Options(values=(str(cut.count),)),
        **_figure(cutting, cut),
    )


# So many more parts are there at once than of the whole: XLA for CPU fuses the body of a loop less
# and copies its part of the data; XLA for TPU fetches the next.
_MORE_PARTS = {"cpu": 3, "tpu": 1}


def _figure(cutting: Cutting, cut: Cut) -> dict[str, Any]:
    """The saving of a cut with its range.

    At the most nothing is left of what is cut: on TPU a part may lie on chip, where the peak does
    not see it, and copies that XLA made of the whole may be gone.
    """
    program, layout = cutting.program, cutting.layout
    saved = layout.peak_bytes - cut.peak_bytes
    gone = saving(layout, Change(cut.change.gone, pieces=cut.change.pieces[cut.parts :]))
    part = max(piece.size_bytes for piece in cut.change.pieces[: cut.parts])
    more = _MORE_PARTS.get(program.platform or "")
    return {
        "grade": Grade.at_most if more is None else Grade.between,
        "saving_bytes": saved,
        "low_bytes": max(saved - (more or 0) * part, 0),
        "high_bytes": max(saved, gone),
        "change": cut.change,
    }


def _contains(whole: tuple[int, ...], part: tuple[int, ...]) -> bool:
    if not {*part} <= {*whole}:
        # Of most arrays, and quicker than to count.
        return False
    have = Counter(whole)
    return all(have[atom] >= count for atom, count in Counter(part).items())


# A batch, whose elements have nothing to do with each other.


@listed(4)
def batched(program: Program) -> list[Finding]:
    """A batch in parts, and of a training step the sum of their gradients: one axis at most."""
    cutting = program.worked_out(Cutting)
    at_peak = [each for each in cutting.arrays if cutting.lies_at(each, program.layout.peak_time)]
    size = cutting.bytes_of(at_peak)
    if size < _WORTH * program.layout.peak_bytes:
        return []
    held: Counter[int] = Counter()
    for array in at_peak:
        for atom in {*flat(array)}:
            held[atom] += cutting.size(array)
    total = sum(map(cutting.size, at_peak))
    for atom, bytes_of_atom in held.most_common():
        if 2 * bytes_of_atom <= total:
            break
        if _may_be_cut(cutting, atom) and _is_batch(cutting, atom):
            found = _of_batch(cutting, atom, at_peak)
            if found:
                return found
    return []


def _of_batch(cutting: Cutting, atom: int, at_peak: list[Array]) -> list[Finding]:
    program = cutting.program
    region = cutting.with_atom(atom)
    if cutting.region(lambda atoms: atoms.count(atom) > 1).any():
        return []
    if not cutting.can_be_cut(atom, region):
        return []
    inside = [each for each in cutting.arrays if atom in flat(each)]
    of_atom = [each for each in at_peak if atom in flat(each)]
    of_atom.sort(key=lambda each: -cutting.size(each))
    counts = _MICROBATCHES if program.trains else _COUNTS
    return [
        Finding(
            kind="batch at once",
            why=f"{human_bytes(cutting.bytes_of(of_atom))} of the peak have this axis, and no"
            " element of it needs another",
            value_ids=tuple(each.value_id for each in of_atom),
            source=program.lines.get(of_atom[0].value_id),
            choice="batch" if program.trains else "chunk",
            **_batch_edit(cutting, cut),
            **_figure(cutting, cut),
        )
        for cut in _in_parts(cutting, atom, inside, cutting.summed(region, atom), counts)
    ]


def _batch_edit(cutting: Cutting, cut: Cut) -> dict[str, Any]:
    """What to do, and what to write."""
    axis = cutting.named(cut.atom)
    if cutting.program.trains:
        return {
            "title": f"compute the gradient in {cut.count} microbatches along {axis}",
            "write": f"jax.lax.scan over batch.reshape({cut.count}, -1, ...), which adds up the"
            " gradients, or optax.MultiSteps",
            "options": Options(values=(str(cut.count),)),
        }
    size = cutting.dimensions.arrays.size
    whole = max(size(words[0]) for _, _, words in cutting.arguments if cut.atom in words[0])
    part = whole // cut.count
    return {
        "title": f"compute {part} at a time along {axis}",
        "write": f"jax.lax.map(f, xs, batch_size={part}) instead of jax.vmap(f)(xs)",
        "options": Options(values=(str(part),)),
    }


def _is_batch(cutting: Cutting, atom: int) -> bool:
    """Whether it is the first axis of arguments, and, of what does not train, of each result.

    What a cache has of a batch is updated in place, which parts would copy.
    """
    program, size = cutting.program, cutting.dimensions.arrays.size
    with_it = [(role, words) for _, role, words in cutting.arguments if atom in chain(*words)]
    if not with_it or any(words[0][:1] != (atom,) for _, words in with_it):
        return False
    if min(size(words[0]) for _, words in with_it) < _LEAST_BATCH:
        return False
    rows = program.entry_arrays.to_pylist()
    caches = {
        each.pair.argument.value_id
        for group in program.worked_out(donation_groups)
        for each in group.foreseen
        if _is_cache(program, each.pair.argument)
    }
    words = {array.value_id: flat(array) for array in cutting.live_arrays}
    of_atom = [row for row in rows if atom in words.get(row["value_id"], ())]
    if any(row["is_shared"] or row["value_id"] in caches for row in of_atom):
        return False
    return program.trains or all(row in of_atom for row in rows if row["is_output"])


# A cache, of which a part is written in place.

# They write a part of their first operand, which is the operand of this number.
_WRITE = {"dynamic-update-slice": 1, "scatter": 2}
# A cache is written a token at a time; a state is written whole, layer by layer.
_A_TIME = 1 / 1000
_THROUGH = HAND_ON - {"convert", "dynamic-update-slice"} | {"transpose", "reshape", "copy-start"}
_THROUGH |= {"copy-done", "optimization-barrier"}


def _is_cache(program: Program, argument: EntryArray) -> bool:
    """Whether an instruction writes a part of it, or of a copy of it."""
    graph, flow = program.graph, program.worked_out(Cutting).flow
    if argument.parameter_number is None:
        return False
    parameter = graph.program.parameters(graph.program.entry)[argument.parameter_number]
    (place,) = graph.find_slots([parameter], [argument.index])
    seen, waiting = {place}, [place]
    while waiting:
        place = waiting.pop()
        for reader in flow.readers[place]:
            opcode = graph.opcode_at(reader)
            if opcode in _WRITE and flow.sources[reader][0] == place:
                return _is_a_little(program, reader)
            if (opcode in _THROUGH or reader in flow.joins) and reader not in seen:
                seen.add(reader)
                waiting.append(reader)
    return False


def _is_a_little(program: Program, write: Slot) -> bool:
    """Whether an instruction writes a small part of an array."""
    graph, shape = program.graph, program.worked_out(Cutting).dimensions.arrays.shape
    instruction = graph.instruction[write]
    written = graph.operands[instruction][_WRITE[graph.opcode[instruction]]]
    part, whole = shape(graph.root_slot[written]), shape(write)
    return (
        isinstance(part, ArrayShape)
        and isinstance(whole, ArrayShape)
        and prod(part.dimensions) <= _A_TIME * prod(whole.dimensions)
    )
