"""What checkpoints around unrolled layers would save, where XLA keeps them: on TPU."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ....schema.readable import human_bytes
from ..asked_program import Program, least_saving, memory_on_chip
from ..finding import Finding, Grade
from ..replay import Change, Piece, saving
from ..saved_residuals import Residual, read_residuals, read_scans
from . import OWNERS

PLACE, COMPUTES_AGAIN = 4, True
NEEDS: frozenset[str] = frozenset({OWNERS})

# A layer hands its result to the next by an addition, in a network with residual connections.
_CARRIES = frozenset({"add", "add_any"})
# A part of an argument, such as a layer's weights, is not computed.
_PARTS = frozenset({"slice", "dynamic_slice", "squeeze"})
# The line, operation and shape of a residual.
_Key = tuple[str | None, str, str]


def unrolled(program: Program) -> list[Finding]:
    """At most one finding: each layer computed again in the backward pass, with the bytes' range.

    XLA for CPU computes unrolled checkpoints only once, so that they save nothing there. On TPU
    what fits into the memory on chip moves, so that the range is twice as wide as that memory.
    """
    layers = repeated_layers(program) if program.platform == "tpu" else []
    dropped = [residual for layer in layers for residual in layer]
    sizes = [sum(residual.size_bytes for residual in layer) for layer in layers]
    on_chip = memory_on_chip(program)
    if not layers or sum(sizes) <= max(on_chip, *sizes):
        return []
    gone = frozenset(value for residual in dropped for value in residual.value_ids)
    change = Change(gone, pieces=tuple(_made_again(layers)))
    saved = saving(program.layout, change)
    if saved <= least_saving(program):
        return []
    largest = sorted(dropped, key=lambda residual: -residual.size_bytes)
    return [
        Finding(
            kind="residuals, unrolled",
            title=f"compute each of the {len(layers)} layers again in the backward pass",
            grade=Grade.between,
            write="jax.checkpoint(layer) instead of the function of a layer; in Flax nn.remat",
            why=f"{human_bytes(sum(sizes))} are saved for the backward pass in the layers, at most"
            f" {human_bytes(max(sizes))} in one; XLA lays out the {human_bytes(on_chip)} on chip"
            " anew, hence the range",
            value_ids=tuple(residual.value_id for residual in largest),
            source=largest[0].source,
            saving_bytes=saved,
            low_bytes=saved - on_chip,
            high_bytes=saved + on_chip,
            change=change,
            choice="residuals that are not stacked",
        )
    ]


def repeated_layers(program: Program) -> list[list[Residual]]:
    """The residuals that each layer of an unrolled network would drop, layer by layer.

    Layers are told from residuals of one line, operation and shape that repeat, the others by
    their time. What a layer hands to the next stays saved: its last sum. None where the layers
    have no such sum.
    """
    residuals = read_residuals(program)
    stacked = {stack for scan in read_scans(program, residuals) for stack in scan.stacks}
    groups: dict[_Key, list[Residual]] = {}
    for residual in residuals:
        if residual not in stacked and residual.operation not in _PARTS:
            groups.setdefault(_key(residual), []).append(residual)
    repeated = [group for group in groups.values() if len(group) > 1]
    count = _layers(repeated)
    layers: list[list[Residual]] = [[] for _ in range(count)]
    for group in repeated:
        if count and len(group) % count == 0:
            in_order = sorted(group, key=lambda residual: residual.start_time)
            for rank, residual in enumerate(in_order):
                layers[rank * count // len(group)].append(residual)
    spans = [(layer[0].start_time, layer[-1].start_time) for layer in map(_in_time, layers)]
    for group in repeated:
        for residual in group if count and len(group) % count else ():
            layers[_nearest(spans, residual.start_time)].append(residual)
    carry = _carry(layers)
    return [[each for each in layer if _key(each) != carry] for layer in layers] if carry else []


def _key(residual: Residual) -> _Key:
    return residual.source, residual.operation, residual.shape.partition("{")[0]


def _in_time(layer: Iterable[Residual]) -> list[Residual]:
    return sorted(layer, key=lambda residual: residual.start_time)


def _layers(repeated: Iterable[Sequence[Residual]]) -> int:
    """How often most bytes repeat; 0 if nothing does."""
    weights: Counter[int] = Counter()
    for group in repeated:
        weights[len(group)] += sum(residual.size_bytes for residual in group)
    return weights.most_common(1)[0][0] if weights else 0


def _nearest(spans: Sequence[tuple[int, int]], time: int) -> int:
    return min(
        range(len(spans)), key=lambda layer: max(spans[layer][0] - time, time - spans[layer][1])
    )


def _carry(layers: Iterable[Iterable[Residual]]) -> _Key | None:
    """What most layers compute as their last sum."""
    last: Counter[_Key] = Counter()
    for layer in layers:
        sums = [residual for residual in _in_time(layer) if residual.operation in _CARRIES]
        if sums:
            last[_key(sums[-1])] += 1
    return last.most_common(1)[0][0] if last else None


def _made_again(layers: Iterable[Iterable[Residual]]) -> Iterable[Piece]:
    """Each layer's residuals, live again from the first that the backward pass reads."""
    place = 0
    for layer in filter(None, map(list, layers)):
        start = min(residual.idle_end_time for residual in layer)
        for residual in layer:
            yield Piece(place, residual.size_bytes, start, residual.end_time)
            place += 1
