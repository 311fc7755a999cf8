"""Queries that crashed DuckDB by an INTERNAL Error: `.venv/bin/python benchmarks/crashing_joins.py`

DuckDB 2.0.0 fails on the second of these joins: `dict-surviving cache: global dictionary column 0
changed identity`. It passes without the optimizer `build_side_probe_side`, which a store switches
off after such an error; once a newer DuckDB passes as it is, CAUTIOUS in
`schema/stores/duckdb.py` can go. Needs a checkout: the warehouse is made of its samples.
"""

import tarfile
import tempfile
from pathlib import Path

import duckdb
import zstandard

import memhouse

_NIGHTS = Path(__file__).parents[1] / "tests" / "data" / "nightly.tar.zst"
# The view `peak_buffers` as it was once written.
_OLD = Path(__file__).parents[1] / "tests" / "data" / "crashing_view.sql"
_JOIN = "SELECT program_id, SUM(padding_bytes) FROM {} JOIN latest USING (module_id) GROUP BY 1"


def crashes(db: Path, query: str, setting: str = "") -> bool:
    """Whether a query is an internal error of the plain DuckDB that is installed."""
    with duckdb.connect(str(db)) as connection:
        try:
            if setting:
                connection.execute(setting)
            connection.execute(query).fetchall()
        except (duckdb.InternalException, duckdb.FatalException):
            return True
    return False


def main() -> None:
    """Say of each query whether it crashes."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "nights.duckdb")
        with _NIGHTS.open("rb") as packed:
            reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed)
            with tarfile.open(fileobj=reader, mode="r|") as tar:
                tar.extractall(folder, filter="data")
        with memhouse.open(db) as warehouse:
            for night in sorted(Path(folder, "nightly").iterdir()):
                warehouse.ingest(night)
            warehouse.sql(_OLD.read_text(), write=True)
        off = "SET disabled_optimizers = 'build_side_probe_side'"
        print(f"DuckDB {duckdb.__version__}")
        for name, setting in [
            ("_module_peak_buffers", ""),
            ("old_peak_buffers", ""),
            ("old_peak_buffers", off),
        ]:
            said = "crashes" if crashes(db, _JOIN.format(name), setting) else "passes"
            print(f"{said}: {_JOIN.format(name)} {setting and f'-- {setting}'}")


if __name__ == "__main__":
    main()
