"""What a second process gains: ten different modules with --jobs 1 and --jobs 2."""

from bench import Bench, Row, measure, ratio_row, seconds
from dumps import link
from process import Finished, in_turn, memhouse

_LIMIT = 0.6


def jobs(bench: Bench) -> list[Row]:
    """Time the ingest of the largest modules besides the large one, with one job and two."""
    chosen = bench.dumps.modules[1 : 1 + bench.modules]
    folder = bench.new_path("ten")
    for number, module in enumerate(chosen):
        workload = folder / f"{number:02}"
        workload.mkdir(parents=True)
        link(module, workload)

    def with_jobs(count: int) -> Finished:
        database = bench.new_path("jobs.duckdb")
        return memhouse("ingest", "--db", database, "--jobs", str(count), folder)

    one, two = in_turn(bench.rounds, lambda: with_jobs(1), lambda: with_jobs(2))
    ratios = [b.seconds / a.seconds for a, b in zip(one, two, strict=True)]
    what = f"ingest of {len(chosen)} modules: --jobs 2 / --jobs 1"
    return [ratio_row(what, ratios, _LIMIT, f"{seconds(two):.2f} s / {seconds(one):.2f} s")]


if __name__ == "__main__":
    measure([jobs])
