"""The order of instructions held against recompiled programs: what is told of XLA's flag on CPU.

    .venv/bin/python benchmarks/order_truth.py OUT --python PYTHON [--only NAME …]

PYTHON has JAX, Optax and Flax. Each program of `order_programs.py` is compiled twice, in processes
of their own, as XLA reads its flags once: OUT/NAME/now and OUT/NAME/flag. What is there already is
not compiled again. A line a program: temps in MiB now, the bound, the best order that was found,
the depth-first order as emulated, as recompiled, and whether the finding's range has the peak.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FLAG = "--xla_cpu_enable_concurrency_optimized_scheduler=false"
HEAD = ("program", "instructions", "now", "bound", "best", "told", "recompiled", "reserved", "held")


def compile_one(name: str) -> None:
    """Compile a program in this process."""
    from order_programs import PROGRAMS

    jitted, arguments = PROGRAMS[name]()
    jitted.lower(*arguments).compile()


def compile_apart(python: str, folder: Path, name: str, flags: str) -> None:
    """Compile a program in a process of its own, which dumps it."""
    folder.mkdir(parents=True)
    dump = f"--xla_dump_to={folder.resolve()} --xla_dump_hlo_as_text"
    environment = os.environ | {"XLA_FLAGS": f"{dump} {flags}", "JAX_PLATFORMS": "cpu"}
    command = [python, __file__, str(folder), "--python", python, "--one", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(name, done.stderr.splitlines()[-1], flush=True)
    largest = max(
        (path.stat().st_size for path in folder.glob("*buffer-assignment.txt")), default=0
    )
    for path in folder.glob("*buffer-assignment.txt"):
        # Helpers of one operation are compiled besides.
        if path.stat().st_size < largest:
            for other in folder.glob(f"{path.name.split('.')[0]}.*"):
                other.unlink()


def line(name: str, now: Path, flag: Path) -> tuple[str, ...]:
    """A program's line of the table."""
    import memhouse
    from memhouse.queries.advice.asked_program import read_layout, read_program
    from memhouse.queries.advice.findings.order import order_of

    with TemporaryDirectory() as made, memhouse.open(Path(made) / "order.duckdb") as warehouse:
        sides = []
        for side, folder in (("now", now), ("flag", flag)):
            warehouse.ingest(folder, run=side)
            (row,) = (
                warehouse.sql(
                    "SELECT dump_id, module_id, peak_bytes, total_bytes, temp_bytes FROM peaks"
                    f" WHERE run_id = '{side}' AND memory_space = 0"
                    " ORDER BY peak_bytes DESC LIMIT 1"
                )
                .arrow()
                .to_pylist()
            )
            sides.append(row)
        before, after = sides
        layout = read_layout(warehouse._store, before["module_id"])
        assert layout is not None
        program = read_program(warehouse._store, before["module_id"], before["dump_id"], layout)
        peaks = order_of(program).ordering
        found = [
            each
            for each in warehouse.advise(before["module_id"], run="now").findings
            if each.is_new_order
        ]
        fixed = int(layout.allocation_bytes[~layout.is_temp].sum())
        held = "silent"
        if found:
            saved = before["peak_bytes"] - after["peak_bytes"]
            reserved = before["total_bytes"] - after["total_bytes"]
            is_in = (found[0].low_bytes or 0) <= saved <= found[0].high_bytes
            in_reserved = (
                (found[0].reserved_low_bytes or 0) <= reserved <= found[0].reserved_high_bytes
            )
            held = (
                f"peak {'in' if is_in else 'NOT in'}, reserved {'in' if in_reserved else 'NOT in'}"
            )
    temps = (
        peaks.now_bytes,
        peaks.bound_bytes,
        peaks.best_bytes,
        peaks.depth_first_bytes,
        after["peak_bytes"] - fixed,
        after["temp_bytes"],
    )
    return (name, str(layout.schedule_length), *(f"{each / 2**20:.2f}" for each in temps), held)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        compile_one(given.one)
        return
    text = Path(__file__).with_name("order_programs.py").read_text()
    names = given.only or text.rpartition("for each in (")[2].partition(")")[0].split()
    print("| " + " | ".join(HEAD) + " |")
    for name in (each.strip(",") for each in names):
        for side, flags in (("now", ""), ("flag", FLAG)):
            if not (given.out / name / side).exists():
                compile_apart(given.python, given.out / name / side, name, flags)
        try:
            print(
                "| "
                + " | ".join(line(name, *(given.out / name / s for s in ("now", "flag"))))
                + " |"
            )
        except Exception as error:
            print(f"{name}: {error}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
