"""Rows that are gathered and then multiplied: the product can come first."""

from collections.abc import Iterator
from math import prod

from ....schema.readable import human_bytes
from ....xla.shapes import ELEMENT_BYTES
from ...result import without_layout
from ..asked_program import Change, Piece, Place, Program, memory_on_chip, saving
from ..cutting import HAND_ON, Cutting, flat
from ..finding import Finding, Grade
from . import INSTRUCTIONS, OWNERS, listed

# A smaller part of the peak is not worth a change of the program.
_WORTH = 0.025
_LEAST_SAVING = 0.1
# So many times its operand's elements a gather has, which else is only a choice of rows.
_REPEATED = 2
# The product takes at most this part of what the gathered rows take.
_NARROWER = 2 / 3
# A row of a tile on TPU.
_LANES = 128
_THROUGH = HAND_ON - {"while", "dynamic-update-slice"} | {"concatenate", "transpose", "reshape"}


@listed(2, OWNERS, INSTRUCTIONS)
def gathered_first(program: Program) -> list[Finding]:
    """At most one finding: what is gathered and then made narrower, multiplied first.

    The values with the gathered rows that are as wide as these get the product's width, or are
    gone where XLA fuses what reads the gathered product.
    """
    layout = program.layout
    best: Finding | None = None
    for gather, product, part in _gathers(program):
        finding = _multiplied_first(program, gather, product, part)
        least = max(_LEAST_SAVING * layout.peak_bytes, memory_on_chip(program))
        if finding is None or (finding.saving_bytes or 0) < least:
            continue
        if best is None or (finding.saving_bytes or 0) > (best.saving_bytes or 0):
            best = finding
    return [] if best is None else [best]


def _gathers(program: Program) -> Iterator[tuple[Place, Place, float]]:
    """Gathers of rows, each with a product that contracts what it gathers, and its part of them."""
    graph, cutting = program.graph, program.worked_out(Cutting)
    for instruction in map(int, graph.program.rows("gather")):
        gather, operand = (graph.whole[at] for at in (instruction, graph.operands[instruction][0]))
        if cutting.elements[gather] < _REPEATED * cutting.elements[operand]:
            continue
        features = {*cutting.atoms(operand)} & {*cutting.atoms(gather)}
        seen, waiting = {gather}, [gather]
        while waiting:
            place = waiting.pop()
            for reader in cutting.flow.readers[place]:
                opcode = graph.opcode_at(reader)
                if opcode in {"dot", "convolution"}:
                    left = features & {*cutting.atoms(reader)}
                    part = _part(program, gather, reader, features)
                    if not left and features and part <= _NARROWER:
                        yield gather, reader, part
                elif (opcode in _THROUGH or cutting.flow.joins[reader]) and reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)


def _part(program: Program, gather: Place, product: Place, features: set[int]) -> float:
    """What a product takes of what gathered rows take.

    XLA for TPU keeps the gathered product in its own type, which is f32 where the rows are bf16,
    and fills each of its rows up to a whole tile.
    """
    cutting = program.worked_out(Cutting)
    if program.platform != "tpu":
        return float(cutting.elements[product] / cutting.elements[gather])
    width = prod(cutting.dimensions.atoms.sizes[atom] for atom in features)
    made, taken = (
        -(-width * cutting.elements[at] // cutting.elements[gather] // _LANES) * ELEMENT_BYTES[kind]
        for at in (product, gather)
        for kind in [program.graph.shape[program.graph.instruction[at]].partition("[")[0]]
    )
    return float(made / taken)


def _multiplied_first(
    program: Program, gather: Place, product: Place, part: float
) -> Finding | None:
    cutting, layout, graph = program.worked_out(Cutting), program.layout, program.graph
    whole = cutting.elements[gather]
    operand = graph.whole[graph.operands[graph.instruction[gather]][0]]
    rows = [atom for atom in cutting.atoms(gather) if atom not in cutting.atoms(operand)]
    wide = [
        array
        for array in cutting.arrays
        if set(rows) <= {*flat(array)} and prod(array.shape.dimensions) >= whole
    ]
    if not rows or not wide or cutting.bytes_of(wide) < _WORTH * layout.peak_bytes:
        return None
    places: dict[tuple[int, int], int] = {}
    pieces = []
    for array in wide:
        at = int(layout.allocation[array.row]), int(layout.offset[array.row])
        size = round(part * whole / prod(array.shape.dimensions) * cutting.size(array))
        place = places.setdefault(at, len(places))
        start, end = int(layout.start[array.row]), int(layout.end[array.row])
        pieces.append(Piece(place, size, start, end))
    # The product of all rows is there from the first gather to the last.
    largest = max(wide, key=cutting.size)
    width = cutting.size(largest) / prod(largest.shape.dimensions)
    product_bytes = round(part * cutting.elements[operand] * width)
    since = min(piece.start_time for piece in pieces)
    until = max(piece.end_time for piece in pieces)
    pieces.append(Piece(len(places), product_bytes, since, until))
    change = Change(gone=frozenset(array.value_id for array in wide), pieces=tuple(pieces))
    saved = saving(layout, change)
    # XLA may also fuse all that has the rows.
    with_rows = [each.value_id for each in cutting.arrays if set(rows) <= {*flat(each)}]
    most = max(saved, saving(layout, Change(gone=frozenset(with_rows))))
    # XLA for TPU may gather the product as it does the rows, or fuse it with what reads it.
    is_known = program.platform == "cpu"
    return Finding(
        kind="gathered before a product",
        title=f"multiply before gathering {without_layout(str(largest.shape))}",
        grade=Grade.between if is_known else Grade.at_most,
        write="(h @ w)[rows] instead of h[rows] @ w; of several that are concatenated the sum of"
        " (h @ w[part])[rows] for each",
        why=f"{human_bytes(cutting.bytes_of(wide))} are as wide as what is gathered, and the"
        f" product takes {part:.0%} of that",
        value_ids=tuple(each.value_id for each in sorted(wide, key=lambda a: -cutting.size(a))),
        source=program.lines.get(largest.value_id),
        saving_bytes=saved if is_known else most,
        low_bytes=saved,
        high_bytes=most,
        change=change,
    )
