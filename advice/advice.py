"""What `advise` answers: the findings of a program, ranked, and what they save together.

If a saving is wanted, the fewest residuals are computed again that bring it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..queries.catalogue import statement
from ..queries.modules import FoundModule
from ..queries.owners import owners
from ..queries.result import Result, Rows
from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from ..schema.store import Store
from ..xla.errors import DumpError
from .asked_program import (
    Change,
    Program,
    Replayed,
    least_saving,
    read_layout,
    read_program,
    replay,
    saving,
    together,
)
from .finding import (
    Finding,
    Grade,
    alternatives_left_out,
    in_full,
    ranked,
    to_follow,
    with_true_range,
)
from .findings import findings_of
from .findings.residuals import (
    Product,
    Scan,
    checkpoint_text,
    checkpointed,
    read_residuals,
    scan_products,
    told_as,
    unrolled,
    worthwhile_scans,
)
from .peak import Kind, PeakShape, largest_kind, reserved_bytes, shape_of_peak, with_reserved

# What to compute again for a wanted saving, the cheapest first.

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
        found = [
            _short(finding, wanted_bytes)
            for finding in unrolled(program)
            if finding.grade is not Grade.at_most
        ]
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
        why = (
            "no loop saves enough, and outside of loops what jax.checkpoint brings on CPU is not"
            " foreseen: XLA of JAX 0.10 undoes it there, that of JAX 0.12 does not"
        )
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


# The advice for a program: what to change first, and by how much its peak would fall.

_FIRST = 3
# What a notebook shows of a finding; the other columns are for programs.
_TOLD = ["saving_bytes", "grade", "title", "source", "write"]
_LINES = 4
# A page: to save less is worth no edit of any program.
_LEAST = 4096
# A line that makes less of the peak is not named.
_LARGE = 0.05
_NO_CHANGE = "No change is known that would surely lower it."
_NOT_KEPT = (
    "What its instructions do was not kept by the memhouse that stored it: ingest the dump again"
    " for advice."
)
_NO_OWNERS = (
    "The owners of its values are not known, without which no change can be told; the messages in"
    " dump_files say why."
)


@dataclass(frozen=True, repr=False)
class Advice(Result):
    """What to change in a module: first what was measured, the largest saving first, then bounds.

    rows: a row a finding, with saving_bytes (None of a fact), low_bytes, high_bytes,
    reserved_low_bytes, reserved_high_bytes, ranked_by, grade, tolerance, finding (its kind), title,
    source, write, why, value_ids; see Finding.
    peak: the peak of the memory space; reserved_bytes: what XLA reserves there, None of HLO text
    alone; self_check_bytes: what the replay of the unchanged program
    has more than the stored peak, which says how far to trust the replays: 0 if they agree.
    followed: the findings with a saving that can be replayed together; together: the peak then.
    consists_of: what the peak consists of: category, size_bytes, buffers; owners: the lines that
    make most of it, as `owners` gives them. is_estimated: the dump is HLO text alone, and all
    sizes are estimates. has_owners: whether the owners of values are known, without which no
    change can be told. has_program: whether it is known what instructions do; if not, an older
    memhouse stored the module, and no change can be told either. kind: what makes most of
    the peak, and shape: how it stands in time; next_kind: what makes most of the peak if the first
    finding is followed. None if it is not known what instructions do.
    """

    rows: Rows
    peak: Replayed
    reserved_bytes: int | None
    self_check_bytes: int
    findings: tuple[Finding, ...]
    followed: tuple[Finding, ...]
    together: Replayed
    consists_of: Rows
    owners: Rows
    is_estimated: bool
    has_owners: bool
    has_program: bool
    kind: Kind | None
    shape: PeakShape | None
    next_kind: Kind | None

    def tables(self) -> Sequence[Rows]:
        """The findings, what the peak consists of, and who makes most of it."""
        findings = replace(self.rows, table=self.rows.table.select(_TOLD))
        return (findings, self.consists_of, self.owners)

    def sentences(self) -> Sequence[str]:
        """The peak and its parts, and what following the findings together gives."""
        return tuple(filter(None, [self.heading, self.together_sentence]))

    @property
    def first(self) -> tuple[Finding, ...]:
        """The three findings to follow first, of those that say what they save."""
        saving = [each for each in self.findings if each.saving_bytes is not None]
        return alternatives_left_out(saving)[:_FIRST]

    @property
    def heading(self) -> str:
        """The peak and its parts, in a sentence, and that nothing would lower it if so."""
        mark = "≈" if self.is_estimated else ""
        parts = ", ".join(
            f"{mark}{human_bytes(row['size_bytes'])} of {row['category']}s"
            for row in self.consists_of.arrow().to_pylist()
        )
        peak = f"{mark}{human_bytes(self.peak.peak_bytes)}"
        told = [f"The peak is {peak} at time {self.peak.peak_time}"]
        told[0] += f": {parts}." if parts else "."
        if self.reserved_bytes is not None:
            told.append(f"XLA reserves {human_bytes(self.reserved_bytes)}.")
        if self.kind is not None:
            part = self.kind.size_bytes / max(self.peak.peak_bytes, 1)
            told.append(f"Most of it: {_kind_words(self.kind, mark)}, {part:.0%} of the peak.")
        if self.shape is not None:
            told.append(str(self.shape))
        if self.self_check_bytes:
            told.append(
                "The replay of the unchanged program differs by"
                f" {human_bytes(abs(self.self_check_bytes))}."
            )
        if all(finding.saving_bytes is None for finding in self.findings):
            told.append(_NO_CHANGE if self.has_owners else _NO_OWNERS)
            told += _made_by(self.owners, self.peak.peak_bytes, mark)
        if not self.has_program:
            told.append(_NOT_KEPT)
        return " ".join(told)

    @property
    def afterwards(self) -> str:
        """The peak if the first finding that can be replayed is followed, and what makes most of
        it; else empty.
        """
        first = next((each for each in self.findings if each.saving_bytes and each.change), None)
        if first is None or self.next_kind is None:
            return ""
        mark = "≈" if self.is_estimated else ""
        left = f"{mark}{human_bytes(self.peak.peak_bytes - (first.saving_bytes or 0))}"
        number = 1 + alternatives_left_out(self.findings).index(first)
        after = "the first" if number == 1 else f"number {number} alone"
        least = "at least " if first.grade is Grade.at_most else ""
        then = f"{least}{left}, most of it {_kind_words(self.next_kind, mark)}"
        return f"After {after} the peak is {then}."

    @property
    def together_sentence(self) -> str:
        """What the findings that can be followed together leave of the peak; empty if it is one."""
        if len(self.followed) < 2:
            return ""
        told = alternatives_left_out(self.findings)
        *numbers, last = (str(1 + told.index(finding)) for finding in self.followed)
        grades = {finding.grade for finding in self.followed}
        about = "about " if Grade.between in grades else ""
        least = "at least " if Grade.at_most in grades else about
        mark = "≈" if Grade.estimated in grades else ""
        left = f"{least}{mark}{human_bytes(self.together.peak_bytes)}"
        return f"Numbers {', '.join(numbers)} and {last} together leave {left}."

    def __str__(self) -> str:
        """The advice as the command prints it, but for the width of its lines."""
        told = [self.heading]
        for number, (first, *lines) in enumerate(in_full(self.findings), start=1):
            told.append("\n".join([f"{number:>2}. {first}", *(f"    {line}" for line in lines)]))
        told += filter(None, [self.afterwards, self.together_sentence])
        return "\n\n".join(told)


def advice_of(
    store: Store, found: FoundModule, memory_space: int, saving_bytes: int | None
) -> Advice:
    """What to change in a module, by the peak of a memory space.

    With `saving_bytes` what to compute again is chosen for this saving, and is told first. Without
    owners of values there are no findings. Raises UsageError if the dump has no live ranges, which
    a replay needs, or shapes that nobody can read, or if it has no owners and a saving is wanted.
    """
    layout = read_layout(store, found.module_id, memory_space)
    if layout is None:
        raise UsageError(
            f"nothing of {found.caption} is known to live in memory space {memory_space}: advice is"
            " worked out from live ranges, for which XLA dumps with --xla_dump_hlo_as_text",
            "module",
        )
    if saving_bytes is not None and not layout.is_followed:
        raise UsageError(
            f"nothing tells what to save in {found.caption}: the owners of values are not known",
            "module",
        )
    program = read_program(store, found.module_id, found.dump_id, layout)
    try:
        return _advice_of(program, found, memory_space, saving_bytes)
    finally:
        program.forget()


def _advice_of(
    program: Program, found: FoundModule, memory_space: int, saving_bytes: int | None
) -> Advice:
    store, layout = program.store, program.layout
    try:
        if saving_bytes is not None and program.hlo is None:
            raise UsageError(
                f"nothing tells what to save in {found.caption}: an older memhouse did not keep"
                " what its instructions do: ingest the dump again",
                "module",
            )
        findings = _findings(program, saving_bytes)
    except DumpError as error:
        raise UsageError(f"{found.caption} has what no rule can read: {error}", "module") from None
    followed = to_follow(findings)
    changes = [finding.change for finding in followed if finding.change is not None]
    unchanged = replay(layout, Change())
    parts = store.rows(statement("advise.consists_of"), [found.module_id, memory_space])
    return Advice(
        Rows(
            pa.Table.from_pylist(list(map(_row, findings)), _SCHEMA),
            found.caption,
            "no change is known that would lower the peak",
        ),
        Replayed(layout.peak_bytes, layout.peak_time),
        None if program.origin == "estimated" else reserved_bytes(layout),
        unchanged.peak_bytes - layout.peak_bytes,
        findings,
        followed,
        replay(layout, together(changes)) if changes else unchanged,
        Rows(parts, "what the peak consists of"),
        owners(store, found.module_id, run=found.run_id, memory_space=memory_space, limit=_LINES),
        program.origin == "estimated",
        layout.is_followed,
        program.hlo is not None or not layout.is_followed,
        *_peak(program, findings),
    )


def _peak(
    program: Program, findings: Sequence[Finding]
) -> tuple[Kind | None, PeakShape | None, Kind | None]:
    """What makes most of the peak, its shape, and what makes most of the next."""
    layout = program.layout
    if program.hlo is None or not layout.is_followed or not layout.peak_bytes:
        return None, None, None
    first = next((each for each in findings if each.saving_bytes and each.change), None)
    left = None
    if first is not None and first.change is not None:
        then = replay(layout, first.change).peak_time
        left = largest_kind(program, then, first.change)
    return largest_kind(program, layout.peak_time), shape_of_peak(program), left


def _kind_words(kind: Kind, mark: str) -> str:
    """The arrays of one kind in words, such as `f32[8,512]: 2.00 MiB, at model.py:3`."""
    where = f", at {kind.source}" if kind.source is not None else ""
    return f"{kind.words}: {mark}{human_bytes(kind.size_bytes)}{where}"


def _findings(program: Program, saving_bytes: int | None) -> tuple[Finding, ...]:
    """All findings in the order in which they are told."""
    chosen = [] if saving_bytes is None else save(program, saving_bytes)
    # What never holds a byte has nothing to lower.
    has_peak = bool(program.layout.peak_bytes)
    others = findings_of(program, with_computed_again=saving_bytes is None) if has_peak else ()
    findings = tuple(
        with_reserved(program, with_true_range(finding))
        for finding in (*chosen, *others)
        if finding in chosen or finding.saving_bytes is None or _most(finding) >= _LEAST
    )
    findings = (*findings[: len(chosen)], *ranked(findings[len(chosen) :]))
    return tuple(map(_as_estimate, findings)) if program.origin == "estimated" else findings


def _most(finding: Finding) -> int:
    return max(finding.saving_bytes or 0, finding.high_bytes or 0)


def _made_by(lines: Rows, peak_bytes: int, mark: str) -> list[str]:
    """A sentence on the lines that make most of the peak."""
    sizes: Counter[str] = Counter()
    for row in lines.arrow().to_pylist():
        if _is_line(row["source"]):
            sizes[row["source"]] += row["counted_bytes"]
    made = [
        f"{mark}{human_bytes(size)} at {line}"
        for line, size in sizes.most_common()
        if size > _LARGE * peak_bytes
    ]
    return [f"The lines that make most of it: {', '.join(made)}."] if made else []


def _is_line(source: str) -> bool:
    """Not the arguments, and not the rest of the owners."""
    return ":" in source and not source.startswith("(")


def _as_estimate(finding: Finding) -> Finding:
    """The same, graded as an estimate: grades were measured with the places that XLA gave."""
    if finding.saving_bytes is None:
        return finding
    return replace(finding, grade=Grade.estimated, tolerance=None)


_SCHEMA = pa.schema(
    [
        ("saving_bytes", pa.int64()),
        ("low_bytes", pa.int64()),
        ("high_bytes", pa.int64()),
        ("reserved_low_bytes", pa.int64()),
        ("reserved_high_bytes", pa.int64()),
        ("ranked_by", pa.string()),
        ("grade", pa.string()),
        ("tolerance", pa.float64()),
        ("finding", pa.string()),
        ("title", pa.string()),
        ("source", pa.string()),
        ("write", pa.string()),
        ("why", pa.string()),
        ("value_ids", pa.list_(pa.int64())),
        ("alone_bytes", pa.int64()),
    ]
)


def _row(finding: Finding) -> dict[str, object]:
    return {
        "saving_bytes": finding.saving_bytes,
        "low_bytes": finding.low_bytes,
        "high_bytes": finding.high_bytes,
        "reserved_low_bytes": finding.reserved_low_bytes,
        "reserved_high_bytes": finding.reserved_high_bytes,
        "ranked_by": finding.ranked_by,
        "grade": finding.grade.value,
        "tolerance": finding.tolerance,
        "finding": finding.kind,
        "title": finding.title,
        "source": finding.source,
        "write": finding.write,
        "why": finding.why,
        "value_ids": list(finding.value_ids),
        "alone_bytes": finding.alone_bytes,
    }
