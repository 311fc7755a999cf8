"""Runs with made-up figures, for what no real dump shows: a creep, branches, many hosts."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from memhouse.schema import arrow
from memhouse.schema.journal import entries, entry
from memhouse.schema.stores.base import Batch

from .command import run_memhouse
from .warehouse import writing

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
    part = {"run_id": run, "host": "", "source": run, "entered_at": _FIRST}
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
            "origin": made.get("origin", "dumped") if figures else None,
        }
        if figures:
            whole = {
                "total_bytes": figures.get("peak_bytes"),
                "alias_bytes": 0,
                "argument_bytes": 0,
            }
            memory[module_id] = {"module_id": module_id, "memory_space": 0} | whole | figures
    with writing(db) as store:
        known = set(
            store.connection.sql("SELECT module_id FROM modules")
            .to_arrow_table()["module_id"]
            .to_pylist()
        )
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


def check(db: Path, run: str, *args: str) -> tuple[int, dict[str, dict]]:
    """Judge a run by the command: the exit status, and the rows by module."""
    done = run_memhouse("check", "--db", db, "--run", run, "-f", "json", *args)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, {row["module"]: row for row in json.loads(done.stdout)}
