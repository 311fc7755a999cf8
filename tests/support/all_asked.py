"""A warehouse with something of everything, and all that commands ask of it."""

import tarfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import zstandard

from memhouse import UsageError, Warehouse
from memhouse.queries.check import owning_lines
from memhouse.queries.label import hint_at_branches
from memhouse.queries.questions import OWNERS

from .asked import Asked, listening
from .dumps import DATA, DUMPS, RUNS
from .history import NIGHTS
from .warehouse import fill, reading, writing

DONATED = "donations"
LLAMA = "llama-v5e"
_ROLES = {"cache": "*cache*", "weights": "params*"}


def fill_with_everything(db: Path, nights: Path, folder: Path) -> list[Asked]:
    """Ten nights, all samples, donations, modules that did not fit, messages, a branch.

    What ingest, labels and accepted growth asked on the way.
    """
    unpacked = {name: _unpack(name, folder) for name in ("donations", "oom-dumps")}
    fill(db, *(nights / name for name in NIGHTS))
    fill(db, *RUNS)
    fill(db, unpacked["donations"], run_id=DONATED)
    fill(db, unpacked["oom-dumps"], run_id="oom-dumps")
    fill(db, *sorted((DATA / "oom").glob("*.txt")))
    with writing(db) as store, listening(store) as heard:
        warehouse = Warehouse(store)
        with hint_at_branches(store, {"branch": "main"}):
            warehouse.label(*NIGHTS, labels={"branch": "main"})
        # After all nights of main, with a workload that none of them has.
        paths = (nights / NIGHTS[8], DUMPS / "seeds")
        at = datetime(2026, 11, 1, tzinfo=UTC)
        warehouse.ingest(*paths, run="late", at=at, labels={"branch": "pull/7"})
        warehouse.label(NIGHTS[2], labels={"jax": "0.9"})
        for night in NIGHTS[3:]:
            warehouse.accept(warehouse.check(night), "a test")
            warehouse.accept(warehouse.check(night, metric="temp"), "another")
    return heard


def all_that_is_asked(db: Path, folder: Path) -> list[Asked]:
    """What the commands ask that only read."""
    # A page takes a second, and what is asked for a site is the same in all warehouses.
    small = folder / "small.duckdb"
    fill(small, DUMPS / "gpu")
    with reading(small) as store, listening(store) as of_site:
        Warehouse(store).report_site(folder / "site")
        Warehouse(store).prune(keep="1d", dry_run=True)
    with writing(small) as store:
        store.execute("DELETE FROM history")
    with reading(small) as store, listening(store) as of_breaches:
        Warehouse(store).verify()
    with reading(db) as store, listening(store) as heard:
        _ask(Warehouse(store), folder)
        failed = Warehouse(store).check(NIGHTS[2], memory_space=0)
        owning_lines(store, failed.verdicts)
    return [*of_site, *of_breaches, *heard]


def _ask(warehouse: Warehouse, folder: Path) -> None:
    warehouse.runs()
    warehouse.modules()
    warehouse.modules(run=NIGHTS[0], workload=LLAMA)
    for run, workload in ((None, None), (None, LLAMA), ("tpu", None)):
        warehouse.peaks(run=run, workload=workload)
        warehouse.fragmentation(run=run, workload=workload)
        warehouse.kernels(run=run, workload=workload)
    warehouse.kernels(LLAMA)
    warehouse.passes(LLAMA)
    warehouse.passes(LLAMA, buffers=True)
    _ask_of_module(warehouse, LLAMA, folder)
    for module in (DONATED, "jit_donated"):
        with suppress(UsageError):
            warehouse.donations(module, limit=3)
    for night in NIGHTS:
        warehouse.advise(LLAMA, run=night)
    warehouse.advise("donations/tpu/jit_crossed_donated")
    _ask_of_history(warehouse, folder)
    warehouse.oom()
    warehouse.oom("oom-dumps")
    warehouse.oom(log=DATA / "oom/jax0.10.2-temps.txt")
    warehouse.verify()


def _ask_of_module(warehouse: Warehouse, module: str, folder: Path) -> None:
    warehouse.buffers(module)
    warehouse.buffers(module, at=5, limit=4, callers=2)
    for by in OWNERS:
        warehouse.owners(module, by=by, limit=3)
    warehouse.owners(module, at=5, memory_space=1)
    warehouse.owners(module, callers=2)
    warehouse.owners(module, roles=_ROLES)
    warehouse.donations(module)
    warehouse.advise(module, save="1GiB")
    warehouse.timeline(module)
    warehouse.report(module)
    warehouse.export_trace(module, folder / "module.pftrace")


def _ask_of_history(warehouse: Warehouse, folder: Path) -> None:
    warehouse.trends()
    warehouse.trends(workload=LLAMA, metric="temp")
    warehouse.trends(branch="pull/7", memory_space=1)
    warehouse.since(LLAMA)
    warehouse.since("decode-v5e", metric="temp", tolerance="1%")
    for night in NIGHTS[1::3]:
        warehouse.check(night)
    warehouse.check(NIGHTS[-1], best=True, metric="temp")
    warehouse.check("late")
    warehouse.check(NIGHTS[-1], baseline=NIGHTS[0], metric="argument", memory_space=1)
    warehouse.check(NIGHTS[4], max_growth=["2%", "1MiB"], module=LLAMA)
    limits = folder / "limits.toml"
    limits.write_text('max_scoped_bytes = "16MiB"\n')
    warehouse.check(NIGHTS[4], limits=limits)
    # Their compilers have other flags.
    warehouse.diff("tpu/llama-v5e", "tpu/llama-v5e-jax0.7.0")
    for a, b in ((NIGHTS[0], NIGHTS[-1]), (NIGHTS[3], NIGHTS[4])):
        warehouse.diff(a, b)
        warehouse.diff(a, b, by="scope")
        warehouse.report_diff(a, b)
    warehouse.report_history()
    warehouse.report_history("decode-v5e", branch="main")


def _unpack(name: str, folder: Path) -> Path:
    with (DATA / f"{name}.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder / name, filter="data")
    return folder / name
