"""Compiles a program with other options, and reads what memory it needs then."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..schema.stores.duckdb import open_file
from .batches import Workers
from .fit import Asked, FitError, dump_one
from .pipeline import ingest
from .sources.lowered import forget_folder

_MEMORY = """
SELECT module_memory.peak_bytes, module_memory.total_bytes
FROM dumps
INNER JOIN module_memory USING (module_id)
WHERE dumps.run_id = $1 AND module_memory.memory_space = 0
ORDER BY module_memory.total_bytes DESC
LIMIT 1
"""


@dataclass(frozen=True)
class Memory:
    """What a compiled program needs of the device's main memory."""

    peak_bytes: int
    total_bytes: int


def compiled_memory(
    asked: Asked, topology: str, *, flags: str = "", donated: Sequence[str] = (), tool_version: str
) -> Memory:
    """The memory of a program that is compiled with flags, and with more arguments donated.

    Raises FitError if it cannot be compiled.
    """
    with tempfile.TemporaryDirectory(prefix="memhouse-prove-") as made:
        folder, db = Path(made) / "dump", Path(made) / "proof.duckdb"
        folder.mkdir()
        dump_one(replace(asked, flags=flags), topology, donated, folder)
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
