"""Holds what `memhouse fit` finds against brute force, on the programs of `fit_programs.py`.

    python benchmarks/fits.py OUT [--device cpu v5e v6e h100] [--only PROGRAM ...] [--no-brute]

Needs `jax` with `optax`, `flax` and `keras` in the active environment, and `libtpu` for TPUs, which
need not be there. OUT/DEVICE-PROGRAM.duckdb keeps what is compiled, so that it goes on where it
ended. A row a program and device: the edge, the knee and the work there; the points that the
search compiled, for the edge and then for the knee, and how many of them were refused, which takes
a second or two; what brute force says; and the work beside a count over the jaxpr.

Brute force compiles the one or two sizes below the edge, two above it, and SPREAD sizes that lie
even over the rest of the range: the edge is right if all below it fit and none above it does.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import memhouse

PROGRAMS = Path(__file__).parent / "fit_programs.py"
# Those that fit take long to compile for a TPU, and those that do not a second or two.
BELOW, ABOVE, SPREAD = {"cpu": 2}, 2, 4
H100 = PROGRAMS.parent / "corpus" / "h100.pbtxt"
TOPOLOGIES = {"cpu": "cpu", "v5e": "v5e:2x2", "v6e": "v6e:2x2", "h100": str(H100)}
MESHES = {"cpu": "cpu:8", "v5e": "v5e:2x4", "v6e": "v6e:2x4"}
# A CPU has no memory that is known; of a GPU all is asked for.
MEMORY = {"cpu": "16GiB", "h100": "79.1GiB"}


@dataclass(frozen=True)
class Searched:
    """The sizes of a program: on a CPU the largest is a quarter; each is a multiple of step."""

    largest: int
    step: int = 8

    def sizes(self, device: str) -> range:
        """The sizes that may be tried."""
        largest = self.largest // (4 if device == "cpu" else 1)
        return range(self.step, largest + 1, self.step)


SEARCHED = {
    "scanned": Searched(4096),
    "unrolled": Searched(4096),
    "resnet": Searched(16384, 16),
    "mlp": Searched(1 << 21, 1024),
    "experts": Searched(1 << 19, 256),
    "decode": Searched(16384),
    "lstm": Searched(16384),
    "graph": Searched(16384, 4),
    "unet": Searched(16384, 16),
    "flax": Searched(4096),
    "keras": Searched(16384, 16),
    "mesh_of_eight": Searched(16384, 16),
}
HEAD = ("program", "device", "edge", "brute force", "knee", "work", "compiles", "CPU s", "jaxpr")


def topology_of(program: str, device: str) -> str:
    """What a program is compiled for."""
    if program == "mesh_of_eight":
        return MESHES[device]
    return "cpu:4" if (program, device) == ("experts", "cpu") else TOPOLOGIES[device]


def fitted(program: str, device: str, batch: range | list[int], out: Path) -> list[dict]:
    """The rows of a fit."""
    found = memhouse.fit(
        f"{PROGRAMS}:{program}",
        batch=batch,
        topology=topology_of(program, device),
        memory=MEMORY.get(device),
        timeout=1800,
        db=out / f"{device}-{program}.duckdb",
    )
    return found.rows.arrow().to_pylist()


def to_edge(program: str, device: str, tried: set[int], edge: int, out: Path) -> int:
    """How many of the sizes were compiled until the edge and a larger one were proved."""
    with memhouse.open(out / f"{device}-{program}.duckdb", read_only=True) as warehouse:
        rows = warehouse.sql(
            "SELECT CAST(value AS INTEGER) AS batch FROM run_labels JOIN runs USING (run_id)"
            " WHERE key = 'batch' ORDER BY run_seq"
        )
        order = [row["batch"] for row in rows.arrow().to_pylist() if row["batch"] in tried]
    ends = {edge, min((size for size in tried if size > edge), default=edge)}
    return 1 + max(order.index(end) for end in ends)


def by_brute_force(
    program: str, device: str, sizes: range, edge: int, out: Path
) -> tuple[str, int]:
    """Whether the sizes around the edge, and some that are far, say the same; and how many."""
    at = sizes.index(edge)
    near = range(max(at - BELOW.get(device, 1), 0), min(at + ABOVE + 1, len(sizes)))
    far = range(at + ABOVE + 1, len(sizes), max((len(sizes) - at) // SPREAD, 1))
    tried = sorted({*near, *far})
    rows = fitted(program, device, [sizes[place] for place in tried], out)
    outcomes = {row["batch"]: row["outcome"] for row in rows}
    wrong = [
        f"{size} {outcome}"
        for size, outcome in sorted(outcomes.items())
        if (outcome == "fits") != (size <= edge)
    ]
    return ("; ".join(wrong) or "equal"), len(outcomes)


def row_of(program: str, device: str, out: Path, *, is_brute: bool) -> list[str]:
    """A program on a device."""
    sizes = SEARCHED[program].sizes(device)
    begun = time.perf_counter()
    rows = fitted(program, device, sizes, out)
    took = time.perf_counter() - begun
    failed = [row["message"] for row in rows if row["outcome"] == "failed"]
    fitting = {row["batch"]: row for row in rows if row["outcome"] == "fits"}
    if failed or not fitting:
        return [program, device, (failed or ["none fits"])[0][:90]]
    edge = max(fitting)
    knee = next(row for row in rows if row["answer"] in ("knee", "largest"))
    brute, count = by_brute_force(program, device, sizes, edge, out) if is_brute else ("-", 0)
    proved = to_edge(program, device, {row["batch"] for row in rows}, edge, out)
    refused = sum(row["outcome"] == "refused" for row in rows)
    return [
        program,
        device,
        f"{edge:,}",
        f"{brute} ({count})",
        f"{knee['batch']:,}",
        f"{fitting[edge]['gflops'] / edge / (knee['gflops'] / knee['batch']) - 1:+.1%}",
        f"{proved} + {len(rows) - proved}, {refused} refused",
        f"{sum(row['seconds'] or 0 for row in rows):.0f} ({took:.0f})",
        f"{knee['extra_work_pct']:+.2f} %"
        + (f", {knee['unknown_loops']} loops unknown" if knee["unknown_loops"] else ""),
    ]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", nargs="+", default=["cpu", "v5e", "v6e"], choices=TOPOLOGIES)
    parser.add_argument("--only", nargs="+", default=list(SEARCHED), choices=SEARCHED)
    parser.add_argument("--no-brute", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    print("|", " | ".join(HEAD), "|", flush=True)
    print("|", " | ".join("---" for _ in HEAD), "|", flush=True)
    for device in given.device:
        for program in given.only:
            cells = row_of(program, device, given.out, is_brute=not given.no_brute)
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
