"""Random bits, such as those of dropout, that are kept from the forward to the backward pass."""

import numpy as np

from ...queries.catalogue import statement
from ...queries.result import counted
from ...schema.readable import human_bytes
from ..asked_program import Change, Program, least_saving, saving
from ..finding import Finding, Grade
from . import listed


@listed(5, computes_again=True)
def random_bits(program: Program) -> list[Finding]:
    """At most one finding: the bits that decide what is dropped, drawn again from their key.

    At most all of them are gone. The forward pass still draws them, and XLA orders what it draws
    anew, so that no figure is promised.
    """
    layout = program.layout
    rows = program.rows(statement("advise.random_bits"), [layout.memory_space]).to_pylist()
    if not rows:
        return []
    held = layout.rows_of(np.array([row["value_id"] for row in rows]))
    gone = layout.value_id[np.isin(layout.alias_set, layout.alias_set[held])]
    change = Change(gone=frozenset(gone.tolist()))
    saved = saving(layout, change)
    if saved <= least_saving(program):
        return []
    size = human_bytes(sum(row["size_bytes"] for row in rows))
    largest = rows[0]
    return [
        Finding(
            kind="random bits kept",
            title=f"draw {size} of random bits again for the backward pass",
            grade=Grade.at_most,
            write="jax.checkpoint around what draws them, such as jax.checkpoint(dropout)(x, key),"
            " or nn.remat of the layer",
            why=f"{counted(len(rows), 'array')} are kept, {largest['element_type']} of"
            f" {human_bytes(largest['size_bytes'])} the largest; the key alone tells them",
            value_ids=tuple(row["value_id"] for row in rows),
            source=next((row["source"] for row in rows if row["source"]), None),
            saving_bytes=saved,
            low_bytes=saved,
            high_bytes=saved,
            change=change,
        )
    ]
