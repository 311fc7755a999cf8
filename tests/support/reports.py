"""A report of each kind, of real dumps: what tests in a browser open."""

from collections.abc import Callable
from pathlib import Path

from memhouse.report.diff_report import diff_report
from memhouse.report.history_report import history_report
from memhouse.report.module_report import module_report
from memhouse.report.page import Report
from memhouse.report.site import write_site
from memhouse.schema.store import Store

from .warehouse import reading, rows

# The run, the workload and the module of the warehouse of all samples: one each of TPU, GPU and
# CPU, one that ran out of memory, and one that is estimated.
MODULES = {
    "tpu": ("tpu", "llama-v5e", "jit_train_step"),
    "gpu": ("gpu", "decode-h100", "jit_generate"),
    "cpu": ("cpu", "jax-0.10.2", "jit_mixed"),
    "oom": ("tpu", "llama7b-oom-v5e", "jit_train_step"),
    "estimated": ("seeds", ".", "jit_conv_general_dilated"),
}
# Those of the warehouse of ten nights.
OF_NIGHTS = ("history", "diff", "night", "site")
KINDS = (*MODULES, *OF_NIGHTS)


def module_of(db: Path, kind: str) -> tuple[int, int]:
    """The id and the peak of one of `MODULES`, which a warehouse has under these names."""
    run, workload, name = MODULES[kind]
    ((module_id, peak),) = rows(
        db,
        f"""SELECT DISTINCT module_id, peak_bytes
        FROM module_memory INNER JOIN dumps USING (module_id)
        WHERE (run_id, workload, module_name) = ('{run}', '{workload}', '{name}')
            AND memory_space = 0""",
    )
    return module_id, peak


def write_report(db: Path, kind: str, path: Path, module_id: int | None = None) -> Path:
    """Write a report of this kind to the path; `module_id` is what it is of, where it is of one.

    Where runs have other names than usual, reports are nevertheless of the same runs.
    """
    if kind == "site":
        with reading(db) as store:
            write_site(store, path.with_suffix(""))
        return path.with_suffix("") / "index.html"
    with reading(db) as store:
        if kind in MODULES:
            return module_report(store, module_id or module_of(db, kind)[0]).save(path)
        return _OF_RUNS[kind](store, [run for (run,) in rows(db, _RUNS)]).save(path)


_RUNS = "SELECT run_id FROM runs ORDER BY run_at, run_seq"
_OF_RUNS: dict[str, Callable[[Store, list[str]], Report]] = {
    "history": lambda store, runs: history_report(store),
    "diff": lambda store, runs: diff_report(store, runs[0], runs[-1]),
    # From one night to the next.
    "night": lambda store, runs: diff_report(store, runs[6], runs[7]),
}
