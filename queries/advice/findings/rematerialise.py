"""What checkpoints in the body of a scan would save: residuals computed again, layer by layer."""

from collections.abc import Iterable, Sequence

from ....schema.readable import human_bytes
from ..asked_program import Program, least_saving
from ..finding import Finding
from ..replay import Change, saving
from ..saved_residuals import (
    Cost,
    Product,
    Scan,
    checkpoint_text,
    checkpointed,
    read_residuals,
    read_scans,
    scan_products,
    told_as,
)
from . import INSTRUCTIONS, OWNERS

PLACE, COMPUTES_AGAIN = 3, True
NEEDS: frozenset[str] = frozenset({OWNERS, INSTRUCTIONS})

_LINES = 3
# A line's products are worth naming if they take less than this part of what the scan saves.
_SMALL = 0.2


def rematerialise(program: Program) -> list[Finding]:
    """For each scan: all of its body computed again, and the policies that keep products.

    On TPU the figure is expected within 10 %, and told only where it is more than the memory on
    chip, because what fits there moves with any change. Elsewhere only the order of the findings
    is known, so that they have no figure.
    """
    found = []
    for scan in worthwhile_scans(program):
        products = scan_products(program, scan)
        told = []
        for kept in ways_to_keep(scan, products):
            change = checkpointed(scan, kept, products)
            saved = saving(program.layout, change)
            if saved > least_saving(program):
                told.append((saved, kept, change))
        told.sort(key=lambda way: -way[0])
        found += [
            _finding(program, scan, kept, products, change, saved) for saved, kept, change in told
        ]
    return found


def worthwhile_scans(program: Program) -> list[Scan]:
    """The scans that save more than their carry and what a finding must save at least."""
    scans = read_scans(program, read_residuals(program))
    return [scan for scan in scans if scan.spare_bytes > least_saving(program)]


def ways_to_keep(scan: Scan, products: Sequence[Product]) -> list[Sequence[Product]]:
    """The products that a policy keeps, a row for each policy that differs.

    None of them; those without batch dimensions; all; those of a single source line, for the few
    lines that save the most work and take few bytes.
    """
    stacked = sum(stack.size_bytes for stack in scan.stacks)
    lines: dict[str, list[Product]] = {}
    for product in products:
        if product.source is not None and product.is_result:
            lines.setdefault(product.source, []).append(product)
    small = [kept for kept in lines.values() if _bytes(kept) < _SMALL * stacked]
    small.sort(key=lambda kept: -sum(product.work for product in kept) / len(kept))
    unbatched = [product for product in products if not product.is_batched]
    ways: dict[frozenset[Product], Sequence[Product]] = {}
    for way in ([], unbatched, products, *small[:_LINES]):
        ways.setdefault(frozenset(way), way)
    return list(ways.values())


def _finding(
    program: Program,
    scan: Scan,
    kept: Sequence[Product],
    products: Sequence[Product],
    change: Change,
    saved: int,
) -> Finding:
    figure = told_as(program, saved)
    is_told = "saving_bytes" in figure
    stacked = human_bytes(sum(stack.size_bytes for stack in scan.stacks))
    carry = human_bytes(scan.layers * scan.carry_bytes)
    cheap = sum(stack.size_bytes for stack in scan.stacks if stack.cost < Cost.product)
    keeps = f", but keep {human_bytes(_bytes(kept))} of products" if kept else ""
    order = "" if is_told else "; the order of these findings is known, their bytes are not"
    return Finding(
        kind="residuals in a scan",
        title=f"compute the layers of the scan again{keeps}",
        write=checkpoint_text(kept, products),
        why=f"{len(scan.stacks)} stacks of {scan.layers} layers take {stacked}, of which"
        f" {human_bytes(cheap)} are no products; the carry stays saved, {carry}{order}",
        value_ids=tuple(stack.value_id for stack in scan.stacks),
        source=scan.source,
        change=change if is_told else None,
        choice=f"scan at {scan.forward}",
        **figure,
    )


def _bytes(kept: Iterable[Product]) -> int:
    return sum(product.stack_bytes for product in kept)
