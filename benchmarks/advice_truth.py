"""Advice held against recompiled programs: what it foresees, and what the peak became.

    .venv/bin/python benchmarks/advice_truth.py PAIRS [--db FILE] [--findings] [--jobs N]

PAIRS is what `advice_pairs.py` made. All pairs are ingested into one warehouse, which is kept if
`--db` names it. A line a pair: the peak of the device's memory before and after, and the peak that
advice on the program before foresees when its findings on this kind of change are followed. Error
= (foreseen - real) / real; `told` is the range that the finding gives, and whether the real peak
lies within it. Of a program that is right already, what advice claims to save at most is the
error. `--findings` prints each finding's grade and title below its pair.
"""

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import memhouse
from memhouse.queries.advise import Advice, advise
from memhouse.queries.advising.finding import Finding
from memhouse.queries.advising.layout import read_layout
from memhouse.queries.advising.replay import replay, together

# The kinds of findings that tell of each kind of change, by a word in them.
WORDS = {
    "donate": ("donat",),
    "remat": ("residual",),
    "pad": ("padding",),
    "unpad": ("padding",),
    "narrow": ("float32",),
}
HEAD = ("pair", "platform", "kind", "before", "after", "change", "foreseen", "error", "told")


@dataclass(frozen=True)
class Compiled:
    """A pair as it was compiled: the peaks in bytes, and what was changed."""

    name: str
    platform: str
    kind: str
    policy: str | None
    before_id: int
    before_bytes: int
    after_bytes: int


@dataclass(frozen=True)
class Foreseen:
    """The peak that the findings on a kind of change foresee, and the range of it, in bytes."""

    peak_bytes: int
    low_bytes: int
    high_bytes: int


def compiled_pairs(warehouse: memhouse.Warehouse, folder: Path) -> list[Compiled]:
    """All pairs of which both sides were compiled."""
    peaks = {
        (row["run_id"], row["workload"]): (row["module_id"], row["peak_bytes"])
        for row in warehouse.sql(
            "SELECT run_id, workload, module_id, peak_bytes "
            "FROM dumps INNER JOIN module_memory USING (module_id) WHERE memory_space = 0"
        )
        .arrow()
        .to_pylist()
    }
    found = []
    for file in sorted(folder.glob("*/*/pair.json")):
        platform, name = file.parts[-3:-1]
        told = json.loads(file.read_text())
        before = peaks.get((platform, f"{name}/before"))
        after = peaks.get((platform, f"{name}/after")) if "after" in told else before
        if before is None or after is None:
            print(f"{platform} {name}: not compiled")
            continue
        found.append(Compiled(name, platform, told["kind"], told["policy"], *before, after[1]))
    return found


def on_change(advice: Advice, compiled: Compiled) -> list[Finding]:
    """The findings that tell of a pair's change and promise something."""
    words = WORDS[compiled.kind]
    return [
        finding
        for finding in advice.findings
        if finding.change is not None and any(word in finding.kind for word in words)
    ]


def foreseen(
    warehouse: memhouse.Warehouse, compiled: Compiled, findings: list[Finding]
) -> Foreseen:
    """The peak with the findings' changes made at once; without any it stays."""
    before = compiled.before_bytes
    if not findings:
        return Foreseen(before, before, before)
    layout = read_layout(warehouse._store, compiled.before_id)
    assert layout is not None
    changes = (finding.change for finding in findings)
    peak = replay(layout, together(filter(None, changes))).peak_bytes
    (alone,) = findings if len(findings) == 1 else [None]
    if alone is None or alone.low_bytes is None or alone.high_bytes is None:
        tolerance = max(finding.tolerance or 0 for finding in findings)
        return Foreseen(peak, round(peak * (1 - tolerance)), round(peak * (1 + tolerance)))
    return Foreseen(peak, before - alone.high_bytes, before - alone.low_bytes)


def line(warehouse: memhouse.Warehouse, compiled: Compiled, advice: Advice) -> tuple[str, ...]:
    """A pair's line of the table."""
    before, after = compiled.before_bytes, compiled.after_bytes
    columns = [compiled.name, compiled.platform, compiled.policy or compiled.kind]
    if compiled.kind == "none":
        claimed = max((finding.saving_bytes or 0 for finding in advice.findings), default=0)
        share = f"{-claimed / before:+.2%}"
        return (*columns, megabytes(before), "-", "-", megabytes(before - claimed), share, "-")
    told = foreseen(warehouse, compiled, on_change(advice, compiled))
    within = "within" if told.low_bytes <= after <= told.high_bytes else "outside"
    return (
        *columns,
        megabytes(before),
        megabytes(after),
        f"{after / before - 1:+.2%}",
        megabytes(told.peak_bytes),
        f"{told.peak_bytes / after - 1:+.2%}",
        f"{megabytes(told.low_bytes)}..{megabytes(told.high_bytes)} {within}",
    )


def megabytes(size: int) -> str:
    """Bytes as MB of 10^6 bytes."""
    return f"{size / 1e6:.1f}"


def show(warehouse: memhouse.Warehouse, folder: Path, findings: bool) -> None:
    """Print the table, pair by pair."""
    print("| " + " | ".join(HEAD) + " |")
    print("| --- | --- | --- |" + " ---: |" * 5 + " --- |")
    for compiled in compiled_pairs(warehouse, folder):
        advice = advise(warehouse._store, compiled.before_id)
        print("| " + " | ".join(line(warehouse, compiled, advice)) + " |", flush=True)
        for finding in advice.findings if findings else ():
            print(f"    {finding.kind} ({finding.grade}): {finding.title} [{finding.source}]")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--db", type=Path)
    parser.add_argument("--findings", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = given.db or Path(folder) / "pairs.duckdb"
        with memhouse.open(db) as warehouse:
            for platform in sorted(path for path in given.pairs.iterdir() if path.is_dir()):
                warehouse.ingest(platform, run=platform.name, replace=True, jobs=given.jobs)
            show(warehouse, given.pairs, given.findings)


if __name__ == "__main__":
    main()
