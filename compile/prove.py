"""Compiles a program with other options, and reads what memory it needs then."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..ingest.pipeline import ingest
from ..ingest.sources.lowered import forget_folder
from ..ingest.workers import Workers
from ..schema.store import open_file
from .fit_axes import Asked, Value
from .fit_compiler import FitError, dump_one

_MEMORY = """
SELECT module_memory.peak_bytes, module_memory.reserved_bytes
FROM dumps
INNER JOIN module_memory USING (module_id)
WHERE dumps.run_id = $1 AND module_memory.memory_space = 0
ORDER BY module_memory.reserved_bytes DESC
LIMIT 1
"""


@dataclass(frozen=True)
class Memory:
    """What a compiled program needs of the device's main memory."""

    peak_bytes: int
    reserved_bytes: int


def compiled_memory(
    asked: Asked,
    topology: str,
    *,
    flags: str = "",
    donated: Sequence[str] = (),
    keywords: Mapping[str, Value] | None = None,
    tool_version: str,
) -> Memory:
    """The memory of a program that is compiled with flags, with more arguments donated, and built
    with other keywords.

    Raises FitError if it cannot be compiled.
    """
    with tempfile.TemporaryDirectory(prefix="memhouse-prove-") as made:
        folder, db = Path(made) / "dump", Path(made) / "proof.duckdb"
        folder.mkdir()
        changed = replace(asked, flags=flags, axes={**asked.axes, **(keywords or {})})
        dump_one(changed, topology, donated, folder)
        forget_folder(folder)
        store = open_file(str(db), create=True)
        try:
            with Workers(1) as workers:
                ingest(store, folder, tool_version=tool_version, workers=workers, run_id="proof")
            rows = store.rows(_MEMORY, ["proof"]).to_pylist()
        finally:
            store.close()
    if not rows or rows[0]["peak_bytes"] is None:
        raise FitError(f"{asked.name} for {topology}: XLA dumped nothing that has a peak")
    return Memory(**rows[0])
