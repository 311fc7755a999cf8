"""A scan whose body is checkpointed: the change of lives, how to write it, how sure it is."""

from collections.abc import Iterable, Sequence
from typing import Any

from .asked_program import Program
from .finding import Grade
from .on_chip import memory_on_chip
from .replay import Change, Piece
from .saved_residuals import Scan
from .scan_products import Product

# Measured on recompiled programs: docs/advise.md.
_TOLERANCE = 0.10


def checkpointed(scan: Scan, kept: Iterable[Product], products: Iterable[Product]) -> Change:
    """The stacks gone: the carry and the kept products stacked instead, one layer made again.

    What the backward loop takes out of the stacks goes too. There the largest residual of one
    layer is live instead, or the largest of all products where that is smaller, because XLA
    fuses elementwise work with what reads it; only what the loop does not make again already.
    Nothing is live in addition where two values of that size are now, such as the gradients of
    attention's scores before and after the softmax: one of them comes to take the room. Of a loop
    within the layer all is live that it stacks.
    """
    start = min(stack.start_time for stack in scan.stacks)
    sizes = [scan.layers * scan.carry_bytes, *(product.stack_bytes for product in kept)]
    pieces = [Piece(place, size, start, scan.end_time) for place, size in enumerate(sizes)]
    inner = sum(stack.size_bytes for stack in scan.stacks if stack.layers > scan.layers)
    largest = max(stack.size_bytes for stack in scan.stacks)
    product = max((product.stack_bytes for product in products), default=largest)
    plain = min(largest, product) // scan.layers
    needed = max(inner // scan.layers, plain if plain > scan.paired_bytes else 0)
    more = max(0, needed - scan.again_bytes)
    pieces.append(Piece(len(sizes), more, scan.start_time, scan.end_time))
    gone = (stack.value_ids | (stack.part_ids & scan.read_back) for stack in scan.stacks)
    return Change(gone=frozenset().union(*gone), pieces=tuple(pieces))


def checkpoint_text(kept: Sequence[Product], products: Sequence[Product]) -> str:
    """What to write so that of a scan's products these are kept."""
    if not kept:
        return "jax.lax.scan(jax.checkpoint(body), ...); in Flax nn.remat"
    unbatched = [product for product in products if not product.is_batched]
    names: dict[str, list[Product]] = {}
    if len(kept) == len(products):
        policy = "dots_saveable"
    elif set(kept) == set(unbatched):
        policy = "dots_with_no_batch_dims_saveable"
    else:
        for product in kept:
            # What has no line cannot be named, and is computed again.
            if product.source is not None:
                names.setdefault(product.source, []).append(product)
        quoted = ", ".join(f'"{_name(line)}"' for line in names)
        policy = f"save_only_these_names({quoted})"
    wrapped = f"jax.checkpoint(body, policy=jax.checkpoint_policies.{policy})"
    return f"jax.lax.scan({wrapped}, ...)" + "".join(
        f', and jax.ad_checkpoint.checkpoint_name(product, "{_name(line)}") around'
        f" {'the product' if len(named) == 1 else f'each of the {len(named)} products'} at {line}"
        for line, named in names.items()
    )


def told_as(program: Program, saved: int) -> dict[str, Any]:
    """The grade of a scan's finding, and the figures that go with it.

    On chip there is room for bytes that no replay can foresee: the range is told where they are
    more than the tolerance of the new peak, or than half the saving. Off TPU only the order of
    findings is known.
    """
    if program.platform != "tpu":
        return {"grade": Grade.fact}
    on_chip = memory_on_chip(program)
    if on_chip > min(saved / 2, _TOLERANCE * (program.layout.peak_bytes - saved)):
        return {
            "grade": Grade.between,
            "saving_bytes": saved,
            "low_bytes": saved - on_chip,
            "high_bytes": saved + on_chip,
        }
    return {
        "grade": Grade.expected,
        "saving_bytes": saved,
        "low_bytes": saved,
        "high_bytes": saved,
        "tolerance": _TOLERANCE,
    }


def _name(line: str) -> str:
    """A name for what a line computes: the line's number."""
    return f"line{line.rpartition(':')[2]}"
