"""What is damaged in a lake, and what goes so that the rest is whole.

The log tells of each data file its size, its rows and the least and greatest ids; its name tells
its content's SHA-256. Which rows a lost file held is worked out from the files that are there: all
rows that a module has in a relation are in one file, so it held those of modules that have none
elsewhere.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .. import arrow
from ..journal import entries, entry, numbered
from . import storage
from .commits import Actions, commit
from .data_files import DataFile, fault, write_file
from .lake_errors import lake_errors
from .lake_tables import LARGE_VIEWS, SMALL_VIEWS, connect, hold, show
from .layout import HISTORY, relations
from .removals import Removals
from .snapshot import Lake, Snapshot
from .stored import may_hold

# Which modules have rows in a relation that not all have rows in: another relation and a condition.
_HAVE_ROWS = {
    "alias_sets": ("values", "alias_set IS NOT NULL"),
    "calls": ("computations", "NOT is_entry"),
    "computations": ("instructions", "computation IS NOT NULL"),
    "entry_shapes": ("modules", "entry_signature IS NOT NULL"),
    "operands": ("instructions", "computation IS NOT NULL"),
    "reported_peak": ("modules", "reported_peak_bytes IS NOT NULL"),
    "residuals": ("values", "residual_id IS NOT NULL"),
    "scopes": ("instructions", "scope_id IS NOT NULL"),
    "stack_frames": ("instructions", "stack_frame_id IS NOT NULL"),
    "traits": ("instructions", "computation IS NOT NULL"),
}
# What may refer to nothing, and the key of its rows: a dump has no flags then, a message no dump.
_REFERENCES = {("dumps", "flags_id"): "dump_id", ("oom_reports", "dump_id"): "oom_id"}
_RUNS = """SELECT run_id FROM runs UNION SELECT run_id FROM dumps
    UNION SELECT run_id FROM run_labels"""
_MODULES = """SELECT module_id FROM modules
    UNION SELECT module_id FROM dumps WHERE module_id IS NOT NULL"""
# `check` judges what entered last, which must not be an older run for want of an entry.
_ENTERED_LAST = """SELECT run_id, host, entered_at FROM run_parts
    WHERE run_id NOT IN (
        SELECT run_id FROM journal
        WHERE run_id IS NOT NULL AND action IN ('ingest', 'replace', 'import')
    )
    AND entered_at > COALESCE(
        (SELECT MAX(entered_at) FROM journal WHERE action IN ('ingest', 'replace', 'import')),
        'epoch'
    )
    ORDER BY entered_at"""


@dataclass(frozen=True)
class Damage:
    """A data file that is damaged or gone, the relation of its rows, and what is wrong.

    runs: whose rows it held, or may have held, as far as what is there tells.
    """

    file: str
    relation: str
    what: str
    rows: int
    runs: Sequence[str]


@dataclass(frozen=True)
class Checked:
    """What a check of a lake's data files found.

    files: how many there are; unchecked: how many of these have no checksum, or were not read.
    """

    files: int
    unchecked: int
    damaged: Sequence[Damage]


@dataclass(frozen=True)
class Repaired:
    """What a repair dropped: files, and for want of their rows runs, dumps and modules.

    incomplete_runs: runs that stay and lost rows: dumps, labels or what users said of them.
    """

    files: Sequence[str] = ()
    runs: Sequence[str] = ()
    dumps: int = 0
    modules: int = 0
    incomplete_runs: Sequence[str] = ()


def check(lake: Lake, *, read_data: bool = False) -> Checked:
    """Look at each data file: whether it is there and as long as it was written.

    With `read_data` read them, and hold each against its SHA-256. Raises WarehouseError.
    """
    files = [file for files in lake.refresh().files.values() for file in files]
    faults = _faults(lake.place, files, read_data=read_data)
    unchecked = sum(
        file.path not in faults and (not read_data or file.sha256 is None) for file in files
    )
    if not faults:
        return Checked(len(files), unchecked, [])
    with lake_errors(lake.place), _Rest(lake.place, lake.snapshot, faults) as rest:
        damaged = [
            Damage(file.path, file.relation, faults[file.path], file.rows, rest.runs_of(file))
            for file in rest.lost
        ]
    return Checked(len(files), unchecked, damaged)


def repair(lake: Lake, damaged: Collection[str]) -> Repaired:
    """Drop these files by their paths, and what is not whole without their rows; one commit.

    Raises WarehouseError.
    """
    done = Repaired()

    def plan(snapshot: Snapshot) -> Actions:
        nonlocal done
        faults = dict.fromkeys(snapshot.paths & set(damaged), "")
        if not faults:
            done = Repaired()
            return Actions()
        with lake_errors(lake.place), _Rest(lake.place, snapshot, faults) as rest:
            actions, done = rest.actions()
        return actions

    lake.refresh()
    commit(lake, plan)
    return done


def _faults(place: str, files: Iterable[DataFile], *, read_data: bool) -> dict[str, str]:
    with lake_errors(place):
        sizes = storage.sizes(place)
        found = {
            file.path: fault(place, file, sizes.get(file.path), read=read_data) for file in files
        }
    return {path: what for path, what in found.items() if what is not None}


class _Rest:
    """The rows that are there without the lost files, and what of them is not whole."""

    def __init__(self, place: str, snapshot: Snapshot, faults: Mapping[str, str]) -> None:
        self.place = place
        self.snapshot = snapshot
        self.lost = [
            file
            for _, files in sorted(snapshot.files.items())
            for file in files
            if file.path in faults
        ]
        kept = {
            name: tuple(file for file in files if file.path not in faults)
            for name, files in snapshot.files.items()
        }
        self.kept = Snapshot(snapshot.version, kept)
        self.connection = connect(place)

    def __enter__(self) -> "_Rest":
        hold(self.connection, self.place, self.kept)
        show(self.connection, self.place, self.kept, (*SMALL_VIEWS, *LARGE_VIEWS))
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    # -- What a lost file held -------------------------------------------------------------

    def runs_of(self, file: DataFile) -> list[str]:
        """The runs whose rows a lost file held, or may have held."""
        name = file.relation
        columns = arrow.schema(name).names if name in relations() else []
        if name in HISTORY:
            return []
        if "run_id" in columns:
            return sorted(_within(file, "run_id", self._set(_RUNS)))
        key = next((key for key in ("module_id", "dump_id", "flags_id") if key in columns), None)
        if key is None:
            return []
        of = {"module_id": self.modules_of, "dump_id": self.dumps_of, "flags_id": self._flags_of}
        query = f"SELECT DISTINCT run_id FROM dumps WHERE {key} IN (SELECT UNNEST($1))"
        return sorted(self._set(query, sorted(of[key](file))))

    def modules_of(self, file: DataFile) -> set[int]:
        """The modules whose rows a lost file held."""
        modules = _within(file, "module_id", self._set(_MODULES))
        modules -= self._set(f'SELECT DISTINCT module_id FROM "{file.relation}"')
        other, condition = _HAVE_ROWS.get(file.relation, ("", ""))
        # Those whose rows in the other relation are lost as well are found by these.
        if other:
            modules &= self._set(f'SELECT DISTINCT module_id FROM "{other}" WHERE {condition}')
        return modules

    def dumps_of(self, file: DataFile) -> set[int]:
        """The dumps whose rows a lost file held; every dump has files, and few are accepted."""
        dumps = _within(file, "dump_id", self._set("SELECT dump_id FROM dumps"))
        if file.relation == "dump_files":
            dumps -= self._set("SELECT dump_id FROM dump_files")
        return dumps

    def _flags_of(self, file: DataFile) -> set[int]:
        flags = self._set("SELECT flags_id FROM dumps WHERE flags_id IS NOT NULL")
        return _within(file, "flags_id", flags - self._set("SELECT flags_id FROM compiler_flags"))

    # -- What goes -------------------------------------------------------------------------

    def actions(self) -> tuple[Actions, Repaired]:
        """The commit that leaves what is whole, and what it drops."""
        lost_modules, lost_dumps, touched = set[int](), set[int](), set[str]()
        may_lack_dumps = set[str]()
        for file in self.lost:
            touched.update(self.runs_of(file))
            if file.relation == "dumps":
                may_lack_dumps.update(self.runs_of(file))
            elif file.relation == "dump_files":
                lost_dumps |= self.dumps_of(file)
            elif _has(file.relation, "module_id"):
                lost_modules |= self.modules_of(file)
        dumps = self._table("SELECT dump_id, run_id, module_id, flags_id FROM dumps").to_pylist()
        runs = self._set("SELECT run_id FROM runs")
        modules = self._set("SELECT module_id FROM modules")
        kept = [
            row
            for row in dumps
            if row["run_id"] in runs
            and row["dump_id"] not in lost_dumps
            and row["module_id"] not in lost_modules
            and (row["module_id"] is None or row["module_id"] in modules)
        ]
        had_dumps = {row["run_id"] for row in dumps} | may_lack_dumps
        # A night of which nothing is left is not a night in which nothing was compiled.
        emptied = had_dumps - {row["run_id"] for row in kept}
        whole: dict[str, set[int | str]] = {
            "run_id": runs - emptied,
            "dump_id": {row["dump_id"] for row in kept},
            "module_id": {row["module_id"] for row in kept},
            "flags_id": {row["flags_id"] for row in kept},
        }
        removals = self._what_goes(whole)
        adds = self._without_references(removals, whole)
        removes, rest = removals.without(self.connection, self.place, self.kept.files, set())
        # Of the history any part tells of all runs: it is worked out anew.
        old = [file for name in HISTORY for file in self.kept.of(name)]
        every = runs | had_dumps | touched
        gone = every - whole["run_id"]
        touched |= {row["run_id"] for row in dumps if row["dump_id"] not in whole["dump_id"]}
        done = Repaired(
            [file.path for file in self.lost],
            sorted(gone),
            len(dumps) - len(kept) + sum(f.rows for f in self.lost if f.relation == "dumps"),
            len((modules | lost_modules) - whole["module_id"]),
            sorted(touched - gone),
        )
        adds.append(write_file(self.place, "journal", self._entries(done, whole["run_id"])))
        return Actions([*rest, *adds], [*removes, *old, *self.lost], sorted(every)), done

    def _entries(self, done: Repaired, runs: set[int | str]) -> pa.Table:
        """What the journal says of the repair, and again which runs entered last if it was lost."""
        lost = any(file.relation == "journal" for file in self.lost)
        again = [
            {
                **entry("ingest", "its entry was lost", row["run_id"]),
                **row,
                "host": row["host"] or None,
            }
            for row in (self._table(_ENTERED_LAST).to_pylist() if lost else [])
            if row["run_id"] in runs
        ]
        detail = f"{len(done.files)} files dropped, with {done.dumps} dumps, {done.modules} modules"
        told = [entry("repair", detail), *(entry("repair", detail, run) for run in done.runs)]
        ((last,),) = self.connection.sql("SELECT COALESCE(MAX(entry), 0) FROM journal").fetchall()
        return numbered(entries(*again, *told)["journal"], last)

    def _what_goes(self, whole: Mapping[str, set[int | str]]) -> Removals:
        """The rows of which the run, the dump, the module or the flag set is not there."""
        removals = Removals()
        keys = [
            (name, key)
            for name in relations()
            for key in whole
            if name not in (*HISTORY, "journal")
            and _has(name, key)
            and (name, key) not in _REFERENCES
        ]
        for name, key in keys:
            ids = self._set(f'SELECT DISTINCT {key} FROM "{name}" WHERE {key} IS NOT NULL')
            removals.drop(key, ids - whole[key], only=(name,))
        orphans = "SELECT oom_id FROM oom_buffers ANTI JOIN oom_reports USING (oom_id)"
        removals.drop("oom_id", self._set(orphans), only=("oom_buffers",))
        return removals

    def _without_references(
        self, removals: Removals, whole: Mapping[str, set[int | str]]
    ) -> list[DataFile]:
        """Files of rows that stay without what they refer to; they replace their old rows."""
        adds = []
        whole = {**whole, "flags_id": self._set("SELECT flags_id FROM compiler_flags")}
        for (name, key), own in _REFERENCES.items():
            rows = self._table(f"SELECT * FROM {name} WHERE {key} IS NOT NULL")
            goes = [
                row["run_id"] in whole["run_id"]
                and row[key] not in whole[key]
                and (name != "dumps" or row["dump_id"] in whole["dump_id"])
                for row in rows.to_pylist()
            ]
            rows = rows.filter(pa.array(goes, pa.bool_()))
            if len(rows):
                removals.drop(own, rows[own].to_pylist(), only=(name,))
                place = rows.schema.get_field_index(key)
                nulls = pa.nulls(len(rows), rows.schema.field(key).type)
                adds.append(write_file(self.place, name, rows.set_column(place, key, nulls)))
        return adds

    def _table(self, query: str) -> pa.Table:
        return self.connection.sql(query).to_arrow_table()

    def _set(self, query: str, *parameters: object) -> set[Any]:
        """The values of a query's one column."""
        found = self.connection.sql(query, params=list(parameters)).to_arrow_table()
        return set(found.column(0).to_pylist())


def _has(relation: str, key: str) -> bool:
    return relation in relations() and key in arrow.schema(relation).names


def _within(file: DataFile, key: str, ids: set[Any]) -> set[Any]:
    """The ids that a file may have rows of, as far as the log tells."""
    return {id_ for id_ in ids if may_hold(file, key, [id_])}
