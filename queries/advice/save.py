"""What to compute again for a wanted saving, the cheapest first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...schema.readable import human_bytes
from .asked_program import Program, least_saving
from .finding import Finding, Grade
from .findings.rematerialise import worthwhile_scans
from .findings.unrolled import unrolled
from .replay import Change, saving, together
from .saved_residuals import (
    Product,
    Scan,
    checkpoint_text,
    checkpointed,
    read_residuals,
    scan_products,
    told_as,
)

# What is kept of each scan that is checkpointed.
_Kept = Mapping[Scan, Sequence[Product]]


def save(program: Program, wanted_bytes: int) -> list[Finding]:
    """One finding: the cheapest set of residuals whose recomputation saves the bytes.

    First all goes that needs no product to compute it again (converts, broadcasts, elementwise
    work, sums), scan by scan; then products, a source line at a time, those with the least work
    for a byte first. Each step is replayed with those before it. The finding says how far it
    comes if that is less than wanted, or why nothing is known to be saved. Layers that are not in
    a scan are told as `unrolled` does.
    """
    scans = worthwhile_scans(program)
    if not scans:
        found = [_short(finding, wanted_bytes) for finding in unrolled(program)]
        return found or [_nothing(program)]
    enough = max(wanted_bytes, least_saving(program) + 1)
    best: tuple[int, _Kept, Change] = (0, {}, Change())
    products = {scan: scan_products(program, scan) for scan in scans}
    for kept in _steps(products):
        change = together(
            checkpointed(scan, of_scan, products[scan]) for scan, of_scan in kept.items()
        )
        saved = saving(program.layout, change)
        if saved > best[0]:
            best = (saved, kept, change)
        if saved >= enough:
            break
    saved, kept, change = best
    if saved <= least_saving(program):
        return [_nothing(program)]
    return [_finding(program, products, kept, change, saved, wanted_bytes)]


def _short(finding: Finding, wanted_bytes: int) -> Finding:
    """The finding, which says that it saves less than wanted if it does."""
    if finding.saving_bytes is None or finding.saving_bytes >= wanted_bytes:
        return finding
    return replace(finding, title=f"{finding.title}{_less(wanted_bytes)}")


def _less(wanted_bytes: int) -> str:
    return f", less than the {human_bytes(wanted_bytes)} wanted"


def _steps(products: _Kept) -> Iterator[_Kept]:
    """What is kept after each step: ever less."""
    kept: dict[Scan, Sequence[Product]] = {}
    for scan in sorted(products, key=lambda scan: -sum(s.size_bytes for s in scan.stacks)):
        kept[scan] = products[scan]
        yield dict(kept)
    lines: dict[tuple[Scan, str | None, bool], list[Product]] = {}
    for scan, all_of_it in products.items():
        for product in all_of_it:
            lines.setdefault((scan, product.source, product.is_result), []).append(product)
    for (scan, _, _), gone in sorted(lines.items(), key=_dearness):
        kept[scan] = [product for product in kept[scan] if product not in gone]
        yield dict(kept)


def _dearness(line: tuple[tuple[Scan, str | None, bool], list[Product]]) -> tuple[bool, float]:
    """What only a policy for all products can keep goes first, then by the work for an element."""
    (_, _, is_result), products = line
    return is_result, sum(product.work for product in products) / len(products)


def _nothing(program: Program) -> Finding:
    """Why computing again saves nothing that could be promised."""
    if not read_residuals(program):
        why = "nothing is saved for a backward pass"
    elif program.platform == "cpu":
        why = "XLA for CPU undoes jax.checkpoint but in loops, and no loop saves enough"
    elif program.platform != "tpu":
        why = "outside of scans it was measured on TPU only, and no scan saves enough"
    else:
        why = (
            f"less than {human_bytes(least_saving(program))} would be saved, which XLA's own new"
            " plan of memory can take again"
        )
    return Finding(
        kind="saving wanted",
        title="nothing is known to save memory by being computed again",
        grade=Grade.fact,
        write="nothing: see the other findings",
        why=why,
        value_ids=(),
    )


def _finding(
    program: Program,
    products: _Kept,
    kept: _Kept,
    change: Change,
    saved: int,
    wanted_bytes: int,
) -> Finding:
    figure = told_as(program, saved)
    left = [product for of_scan in kept.values() for product in of_scan]
    stacks = [stack for scan in kept for stack in scan.stacks]
    size = human_bytes(sum(product.stack_bytes for product in left))
    keeps = f"{len(left)} products stay saved, {size}" if left else "no product stays saved"
    found = Finding(
        kind="saving wanted",
        title="compute again what is cheapest",
        write="; ".join(
            f"at {scan.source} {checkpoint_text(of_scan, products[scan])}"
            for scan, of_scan in kept.items()
        ),
        why=f"{keeps}; {len(stacks)} stacks are"
        f" {human_bytes(sum(stack.size_bytes for stack in stacks))} now",
        value_ids=tuple(stack.value_id for stack in stacks),
        source=next(iter(kept)).source,
        change=change if "saving_bytes" in figure else None,
        **figure,
    )
    return _short(found, wanted_bytes)
