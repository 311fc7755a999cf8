"""Caches that are updated in place, in fewer bits."""

from math import prod

import numpy as np

from ....schema.readable import human_bytes
from ....xla.shapes import ArrayShape
from ...result import counted
from ..asked_program import Change, Piece, Place, Program, saving
from ..cutting import HAND_ON
from ..dimensions import Dimensions
from ..finding import Finding, Grade
from . import INSTRUCTIONS, OWNERS, listed
from .donations import EntryArray, entry_arrays
from .narrower import FLOATS

# A smaller part of the peak is not worth what is lost in the elements.
_WORTH = 0.05
_BITS = 8
# They write a part of their first operand, which is the operand of this number.
_WRITE = {"dynamic-update-slice": 1, "scatter": 2}
# A cache is written a token at a time; a state is written whole, layer by layer.
_A_TIME = 1 / 1000
_THROUGH = HAND_ON - {"convert", "dynamic-update-slice"} | {"transpose", "reshape", "copy-start"}
_THROUGH |= {"copy-done", "optimization-barrier"}


@listed(10, OWNERS, INSTRUCTIONS)
def in_int8(program: Program) -> list[Finding]:
    """At most one finding: floats that a program without a gradient updates in place, in int8.

    At the least the arguments are smaller; at the most all copies of them are, too. XLA for TPU
    may copy a cache no more once it is smaller, or convert it as a whole before it reads it, so
    that nothing is saved: at most all copies there.
    """
    layout = program.layout
    if program.trains or program.platform not in {"cpu", "tpu", "gpu"}:
        return []
    arguments, _ = entry_arrays(program)
    caches = [
        each
        for each in arguments
        if each.is_shared
        and each.element_type in FLOATS
        and each.element_bits > _BITS
        and is_cache(program, each)
    ]
    caches.sort(key=lambda each: -each.padded_bytes)
    size = sum(each.padded_bytes for each in caches)
    if size < _WORTH * layout.peak_bytes:
        return []
    # Copies stay as they are, or are gone.
    is_sure = program.platform == "cpu"
    alone, with_copies = (_narrowed(program, caches, copies=each) for each in (1.0, 0.0))
    least, most = saving(layout, alone), saving(layout, with_copies)
    if least < _WORTH * layout.peak_bytes:
        return []
    names = dict.fromkeys(each.top_level for each in caches)
    types = "/".join(dict.fromkeys(each.element_type for each in caches))
    return [
        Finding(
            kind="cache in fewer bits",
            title=f"store {', '.join(names)} in int8: {human_bytes(size)} in {types} now",
            grade=Grade.between if is_sure else Grade.at_most,
            write="jnp.round(x / scale).astype(jnp.int8) where it is written, with a scale for"
            " each row and head, and cache.astype(x.dtype) * scale for the part that is read",
            why=f"{counted(len(caches), 'array')} updated in place and never differentiated; the"
            " results change by what the rounding loses, which the dump cannot tell"
            + ("" if is_sure else "; where XLA converts a whole cache first, less is saved"),
            value_ids=tuple(each.value_id for each in caches),
            source=next(filter(None, (program.lines.get(each.value_id) for each in caches)), None),
            saving_bytes=least if is_sure else most,
            low_bytes=least,
            high_bytes=max(least, most),
            change=alone if is_sure else with_copies,
            changes_results=True,
        )
    ]


def is_cache(program: Program, argument: EntryArray) -> bool:
    """Whether an instruction writes a part of it, or of a copy of it."""
    graph, flow = program.graph, program.worked_out(Dimensions).flow
    if argument.parameter_number is None:
        return False
    parameter = graph.parameters(graph.program.entry)[argument.parameter_number]
    (place,) = graph.places([parameter], [argument.index])
    seen, waiting = {place}, [place]
    while waiting:
        place = waiting.pop()
        for reader in flow.readers[place]:
            opcode = graph.opcode_at(reader)
            if opcode in _WRITE and flow.sources[reader][0] == place:
                return _is_a_little(program, reader)
            if (opcode in _THROUGH or flow.joins[reader]) and reader not in seen:
                seen.add(reader)
                waiting.append(reader)
    return False


def _is_a_little(program: Program, write: Place) -> bool:
    """Whether an instruction writes a small part of an array."""
    graph, shape = program.graph, program.worked_out(Dimensions).arrays.shape
    instruction = graph.instruction[write]
    written = graph.operands[instruction][_WRITE[graph.opcode[instruction]]]
    part, whole = shape(graph.whole[written]), shape(write)
    return (
        isinstance(part, ArrayShape)
        and isinstance(whole, ArrayShape)
        and prod(part.dimensions) <= _A_TIME * prod(whole.dimensions)
    )


def _narrowed(program: Program, caches: list[EntryArray], *, copies: float) -> Change:
    """The arguments in so few bits; temps of their size at this part of theirs."""
    layout = program.layout
    freed = {each.allocation_index for each in caches}
    gone: set[int] = set(layout.value_id[np.isin(layout.allocation, list(freed))].tolist())
    pieces = [
        Piece(place, each.padded_bytes * _BITS // each.element_bits, 0, layout.schedule_length)
        for place, each in enumerate(caches)
    ]
    sizes = {each.padded_bytes for each in caches}
    temps = layout.allocation_index[layout.is_temp]
    alike = np.isin(layout.allocation, temps) & np.isin(layout.size, list(sizes))
    places: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(alike).tolist():
        at = int(layout.allocation[row]), int(layout.offset[row])
        place = places.setdefault(at, len(caches) + len(places))
        size = round(copies * int(layout.size[row]))
        pieces.append(Piece(place, size, int(layout.start[row]), int(layout.end[row])))
        gone.add(int(layout.value_id[row]))
    return Change(frozenset(gone), frozenset(freed), tuple(pieces))
