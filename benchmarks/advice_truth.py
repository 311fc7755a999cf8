"""Advice held against recompiled programs: what it foresees, and what the peak became.

    .venv/bin/python benchmarks/advice_truth.py PAIRS [--db FILE] [--findings] [--jobs N]

PAIRS is what `advice_pairs.py` made. All pairs are ingested into one warehouse, which is kept if
`--db` names a file that is not there. A line a pair: the peak of the device's memory before and
after, and the peak that advice on the program before foresees when its findings on this kind of
change are followed; an upper bound only widens the range.

Error = (foreseen - real) / real. `told` is the range that the findings give, and whether the real
peak is as near to it as is promised for this kind of change. Of a program that is right already,
the error is the most that advice claims to save. `--findings` prints each finding below its pair.
"""

import argparse
import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import memhouse
from memhouse.queries.advice.advice import Advice
from memhouse.queries.advice.asked_program import read_layout, replay, saving, together
from memhouse.queries.advice.finding import Finding, Grade
from memhouse.queries.advise import advise

# The kinds of findings that tell of each kind of change.
TELLS = {
    "donate": ("not donated",),
    "remat": ("residuals in a scan", "residuals, unrolled"),
    "pad": ("padding",),
    "unpad": ("padding",),
    "narrow": ("wider than read",),
    "offload": ("idle",),
    "chunk": ("computed at once",),
    "map": ("batch at once",),
    "microbatch": ("batch at once",),
    "gather": ("gathered before a product",),
    "returned": ("returned as it came",),
    "int8": ("cache in fewer bits",),
    "carry": ("donated and copied",),
    "bits": ("random bits kept",),
    # The peak stays.
    "constant": ("constant of the program",),
}
# How far the peak may be from what is foreseen, where the finding gives no range.
PROMISED = {
    "donate": 0.01,
    "remat": 0.1,
    "pad": 0.01,
    "unpad": 0.01,
    "narrow": 0.001,
    "offload": 0.01,
    "chunk": 0.05,
    "map": 0.02,
    "microbatch": 0.05,
    "gather": 0.1,
    "returned": 0.001,
    "int8": 0.01,
    "carry": 0.01,
    "bits": 0.01,
    "constant": 0.01,
}
# Of these kinds the policy says in how many parts, as the finding's title does.
COUNTED = ("chunk", "map", "microbatch")
EDGE = 0.001
RIGHT = 0.002
# What a finding says to write for a policy.
WRITTEN = {
    "full": re.compile(r"jax\.checkpoint\((?!.*policy)"),
    "dots": re.compile(r"\bdots_saveable"),
    "dots_no_batch": re.compile(r"dots_with_no_batch_dims_saveable"),
    "names": re.compile(r"save_only_these_names"),
}
SIZED = re.compile(r"(\d+), a multiple of \d+, (saves|costs) ([\d.]+) ([KMG]i)?B")
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
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
            "FROM dumps INNER JOIN module_memory USING (module_id) WHERE memory_space = 0 "
            "ORDER BY peak_bytes"
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
    """The findings that tell of a pair's change with a figure: of policies, the pair's alone."""
    found = [finding for finding in advice.findings if finding.kind in TELLS[compiled.kind]]
    found = [finding for finding in found if finding.change is not None]
    if compiled.policy is not None:
        # No finding says to work out only a part of a layer again.
        written = WRITTEN.get(compiled.policy)
        if compiled.kind in COUNTED:
            found = [finding for finding in found if compiled.policy in finding.title]
        else:
            found = [finding for finding in found if written and written.search(finding.write)]
    # Of the ways to change one scan the first; a program may have two scans.
    chosen = {finding.choice: finding for finding in reversed(found)}
    return [each for each in found if each.choice is None or chosen[each.choice] is each]


def resized(advice: Advice, compiled: Compiled) -> Foreseen | None:
    """The peak at the size that a pair goes to, as findings on padding tell it in words."""
    wanted = compiled.name.rpartition("_")[2]
    for finding in advice.findings:
        for size, does, number, unit in SIZED.findall(finding.write):
            if finding.kind == "padding" and size == wanted:
                less = float(number) * UNITS[unit] * (1 if does == "saves" else -1)
                peak = round(compiled.before_bytes - less)
                return Foreseen(peak, peak, peak)
    return None


def foreseen(warehouse: memhouse.Warehouse, compiled: Compiled, advice: Advice) -> Foreseen | None:
    """The peak with the findings' changes made at once; None if nothing is told."""
    if compiled.kind in ("pad", "unpad"):
        return resized(advice, compiled)
    findings = on_change(advice, compiled)
    if not findings:
        return None
    layout = read_layout(warehouse._store, compiled.before_id)
    assert layout is not None
    changes = [finding.change for finding in findings if finding.change is not None]
    peak = low = high = replay(layout, together(changes)).peak_bytes
    for finding, change in zip(findings, changes, strict=True):
        # A range may reach beyond what is replayed for it, on either side.
        replayed = saving(layout, change)
        least, told, most = savings(finding)
        peak, low, high = peak + replayed - told, low + replayed - most, high + replayed - least
    return Foreseen(peak, low, high)


def savings(finding: Finding) -> tuple[int, int, int]:
    """The least, the expected and the most that a finding saves; an upper bound promises none."""
    told = finding.saving_bytes or 0
    if finding.grade is Grade.at_most:
        return 0, 0, told
    least = told if finding.low_bytes is None else finding.low_bytes
    return least, told, told if finding.high_bytes is None else finding.high_bytes


def line(warehouse: memhouse.Warehouse, compiled: Compiled, advice: Advice) -> tuple[str, ...]:
    """A pair's line of the table."""
    before, after = compiled.before_bytes, compiled.after_bytes
    columns = [compiled.name, compiled.platform, compiled.policy or compiled.kind]
    if compiled.kind == "none":
        claimed = max((finding.saving_bytes or 0 for finding in advice.findings), default=0)
        met = "met" if claimed <= RIGHT * before else "missed"
        share = f"{-claimed / before:+.2%}"
        return (*columns, megabytes(before), "-", "-", megabytes(before - claimed), share, met)
    columns += [megabytes(before), megabytes(after), f"{after / before - 1:+.2%}"]
    told = foreseen(warehouse, compiled, advice)
    if told is None:
        return (*columns, "-", f"{before / after - 1:+.2%}", "nothing told")
    nearest = min(max(after, told.low_bytes), told.high_bytes)
    # A range says by itself how far the peak may be.
    promised = PROMISED[compiled.kind] if told.low_bytes == told.high_bytes else EDGE
    met = "met" if abs(nearest / after - 1) <= promised else "missed"
    span = f"{megabytes(told.low_bytes)} to {megabytes(told.high_bytes)}: {met}"
    error = f"{told.peak_bytes / after - 1:+.2%}"
    return (*columns, megabytes(told.peak_bytes), error, span)


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
                warehouse.ingest(platform, run=platform.name, jobs=given.jobs)
            show(warehouse, given.pairs, given.findings)


if __name__ == "__main__":
    main()
