"""Arrays that were gathered from all devices, and are kept from the forward to the backward."""

from itertools import pairwise

from ....schema.readable import human_bytes
from ...catalogue import statement
from ...result import counted
from ..asked_program import Change, Piece, Program, saving
from ..finding import Finding, Grade
from . import OWNERS, listed

_WORTH = 0.01


@listed(7, OWNERS)
def gathered(program: Program) -> list[Finding]:
    """At most one finding: the arrays that nothing touches at the peak, gathered again after it.

    It promises nothing. Recompiled, four programs saved between 31 and 112 % of the arrays' size:
    XLA orders the gathers and the gradients anew, so that a replay told too little or too much.
    """
    if program.platform not in ("tpu", "gpu"):
        return []
    layout = program.layout
    used: dict[int, list[int]] = {}
    rows = program.rows(statement("advise.gathered"), [layout.memory_space]).to_pylist()
    for row in rows:
        used.setdefault(row["value_id"], []).append(row["use_time"])
    lives = {row["value_id"]: row for row in rows}
    kept: list[int] = []
    pieces: list[Piece] = []
    for value_id, times in used.items():
        gap = next(
            (
                (before, after)
                for before, after in pairwise(sorted({*times}))
                if before < layout.peak_time < after
            ),
            None,
        )
        if gap is None:
            continue
        life = lives[value_id]
        size, place = life["size_bytes"], len(kept)
        pieces += [
            Piece(place, size, life["start_time"], gap[0]),
            Piece(place, size, gap[1], life["end_time"]),
        ]
        kept.append(value_id)
    change = Change(gone=frozenset(kept), pieces=tuple(pieces))
    if not kept or saving(layout, change) < _WORTH * layout.peak_bytes:
        return []
    largest = lives[kept[0]]
    size = human_bytes(sum(lives[value]["size_bytes"] for value in kept))
    return [
        Finding(
            kind="gathered and kept",
            title=f"gather {counted(len(kept), 'array')} again for the backward pass: {size} kept",
            grade=Grade.fact,
            write="wrap the layer that gathers them in jax.checkpoint, so that its all-gather runs"
            " again; policy=jax.checkpoint_policies.dots_saveable keeps its products",
            why=f"the largest is {largest['argument'] or largest['instruction']},"
            f" {human_bytes(largest['size_bytes'])}; nothing reads them at the peak;"
            " XLA orders gathers and gradients anew, so that no figure is promised",
            value_ids=tuple(kept),
            source=largest["source"],
        )
    ]
