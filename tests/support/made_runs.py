"""Runs with made-up figures, for what no real dump shows: a drift, branches, many hosts."""

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import memhouse
from memhouse.queries.checking.judge import Verdict
from memhouse.schema import arrow
from memhouse.schema.journal import entries, entry
from memhouse.schema.store import Batch

from .shared import shared
from .warehouse import fill, writing

MIB = 2**20
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def make_run(db: Path, run: str, programs: Mapping[str, Any], *, day: int, **labels: str) -> None:
    """Write a run with these programs, by WORKLOAD/NAME[@PLATFORM]: a peak in MiB, or columns.

    Programs of one peak are the same program. `failed` and `oom` as a peak are what they say.
    """
    run_row = {
        "run_id": run,
        "run_at": _FIRST + timedelta(days=day),
        "run_seq": day,
        "ingested_at": _FIRST,
        "source": run,
        "tool_version": "made",
    }
    part = {"run_id": run, "host": None, "source": run, "entered_at": _FIRST}
    label_rows = [{"run_id": run, "key": key, "value": text} for key, text in labels.items()]
    dumps: list[dict[str, Any]] = []
    modules: dict[int, dict[str, Any]] = {}
    memory: dict[int, dict[str, Any]] = {}
    for name, given in programs.items():
        of_platform, _, platform = name.partition("@")
        workload, _, module_name = of_platform.partition("/")
        made = dict(given) if isinstance(given, Mapping) else {"peak_bytes": given}
        is_failed, is_oom = made.get("peak_bytes") == "failed", made.get("peak_bytes") == "oom"
        if is_failed or is_oom:
            made["peak_bytes"] = None
        figures = {
            key: round(made[key] * MIB)
            for key in made
            if key.endswith("_bytes") and made[key] is not None
        }
        device = figures.pop("device_memory_bytes", None)
        identity = made.get("program", repr(sorted(figures.items())))
        module_id = crc32(f"{module_name} {identity}".encode())
        dumps.append(
            {
                "dump_id": crc32(f"{run} {name}".encode()),
                "run_id": run,
                "workload": workload,
                "module_name": module_name,
                "occurrence": 1,
                "platform": platform or "tpu",
                "module_id": None if is_failed else module_id,
                "device_memory_bytes": device,
                "status": "failed" if is_failed else "ok",
                "oom": is_oom,
            }
        )
        if is_failed:
            continue
        modules[module_id] = {
            "module_id": module_id,
            "module_name": module_name,
            "program_id": crc32(f"program {identity}".encode()),
            "skeleton_id": made.get("skeleton", 1),
            "entry_signature": made.get("signature", "one"),
            "schedule_length": made.get("schedule_length"),
            "origin": made.get("origin", "dumped") if figures else None,
            "grade": int(made.get("origin") == "estimated") if figures else None,
        }
        if figures:
            is_estimated = made.get("origin") == "estimated"
            whole = {
                "total_bytes": None if is_estimated else figures.get("peak_bytes"),
                "reserved_bytes": None if is_estimated else figures.get("peak_bytes"),
                "alias_bytes": 0,
                "argument_bytes": 0,
            }
            memory[module_id] = {"module_id": module_id, "memory_space": 0} | whole | figures
    if not db.exists():
        # To make all tables and views takes longer than all that follows.
        shutil.copy(shared("empty.duckdb", fill), db)
    with writing(db) as store:
        known = set(store.rows("SELECT module_id FROM modules")["module_id"].to_pylist())
        tables: dict[str, list[dict[str, Any]]] = {
            "runs": [run_row],
            "run_parts": [part],
            "run_labels": label_rows,
            "dumps": dumps,
            "modules": [row for key, row in modules.items() if key not in known],
            "module_memory": [row for key, row in memory.items() if key not in known],
        }
        told = entries(entry("ingest", "made", run))
        store.write(Batch({name: arrow.rows(name, of) for name, of in tables.items()} | told))


def make_nights(db: Path, *nights: Any) -> None:
    """Write the runs n0, n1, and so on: what each has of the program train/jit_step."""
    for day, night in enumerate(nights):
        make_run(db, f"n{day}", {"train/jit_step": night}, day=day)


def check(
    db: Path, run: str, *, toml: str | None = None, accept: str | None = None, **options: Any
) -> tuple[str, dict[str, Verdict]]:
    """Judge a run: the outcome, and the verdicts by module; `toml` is the text of limits.toml."""
    if toml is not None:
        options["limits"] = db.parent / "limits.toml"
        options["limits"].write_text(toml)
    with memhouse.open(db, read_only=accept is None) as warehouse:
        found = warehouse.check(run, **options)
        if accept is not None:
            found = warehouse.accept(found, accept)
    return found.outcome, {verdict.name: verdict for verdict in found.verdicts}
