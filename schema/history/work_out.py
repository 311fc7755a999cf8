"""The tables `lineages`, `history`, `causes` and `gone`, worked out from the stored dumps."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa

from .. import arrow
from ..ids import series_id
from .chains import Chain, Compared, Dump, Followed, Group, Link, follow

# The rows of `history`, `causes` and `gone` for lineages that were followed.

# Tells why the second dump of each pair differs from the first: the rows of `find_causes`.
Causes = Callable[[Sequence[tuple[int, int]]], pa.Table]
Pair = tuple[int, int]


@dataclass
class Lineage:
    """The runs of a branch and suite by number, and what follows which from the run `first` on."""

    branch: str
    suite: str
    runs: Mapping[int, str]
    first: int
    followed: Followed = field(default_factory=lambda: Followed([]))

    @property
    def changed_runs(self) -> list[str]:
        """The runs that were followed."""
        return [run for number, run in self.runs.items() if number >= self.first]


def history_rows(
    lineages: Sequence[Lineage], causes: Causes, stored_causes: Mapping[Pair, Mapping[str, Any]]
) -> dict[str, pa.Table]:
    """The rows of `history` and `causes`, by table.

    stored_causes: rows of `find_causes` that need not be worked out again.
    """
    links = [(lineage, link) for lineage in lineages for link in lineage.followed.links]
    pairs = [_pair(link) for _, link in links]
    new_pairs = [pair for pair in pairs if pair is not None and pair not in stored_causes]
    new_causes = dict(zip(new_pairs, causes(new_pairs).to_pylist(), strict=True))
    cause_of = {**stored_causes, **new_causes}
    ids = _series_ids(lineages)
    last = {chain.last.dump_id for lineage in lineages for chain in lineage.followed.chains}
    rows = [
        {
            "dump_id": link.dump.dump_id,
            "series_id": ids[lineage.branch, lineage.suite, link.born, link.number],
            "series_number": link.number,
            "chain_index": link.chain_index,
            "previous_dump_id": link.previous and link.previous.dump_id,
            "compared_dump_id": link.compared and link.compared.dump_id,
            "level_index": link.level_index,
            "matched_by": link.matched_by,
            "missed_runs": link.missed_runs,
            "is_new": link.is_new,
            "is_last": link.dump.dump_id in last,
            "cause": cause_of[pair]["cause"] if pair is not None else None,
        }
        for (lineage, link), pair in zip(links, pairs, strict=True)
    ]
    ledgers = [cause_of[pair] for pair in pairs if pair is not None]
    return {"history": arrow.rows("history", rows), "causes": _ledger_rows(ledgers)}


def _ledger_rows(causes: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The rows of `causes`, from rows of `find_causes`."""
    rows = [
        {"dump_id": pair["b_dump_id"], "rank": rank, **term}
        for pair in causes
        for rank, term in enumerate(pair["terms"] or (), 1)
    ]
    return arrow.rows("causes", rows)


def gone_rows(lineages: Sequence[Lineage]) -> pa.Table:
    """The rows of `gone`."""
    ids = _series_ids(lineages)
    rows = [
        {
            "run_id": lineage.runs[number],
            "series_id": ids[lineage.branch, lineage.suite, chain.born, chain.number],
            "last_dump_id": last.dump_id,
        }
        for lineage in lineages
        for number, chain, last in lineage.followed.gone
    ]
    return arrow.rows("gone", rows)


def _pair(link: Link) -> Pair | None:
    return None if link.before is None else (link.before.dump_id, link.dump.dump_id)


def _series_ids(lineages: Sequence[Lineage]) -> dict[tuple[str, str, Group, int], int]:
    return {
        (lineage.branch, lineage.suite, chain.born, chain.number): series_id(
            lineage.branch, lineage.suite, *chain.born, chain.number
        )
        for lineage in lineages
        for chain in lineage.followed.chains
    }


def whether_last(lineages: Sequence[Lineage]) -> dict[bool, list[int]]:
    """The dumps before those that were followed: whether they are the last of their chains."""
    continued = [
        link.previous.dump_id
        for lineage in lineages
        for link in lineage.followed.links
        if link.previous is not None and link.previous.run_number < lineage.first
    ]
    ended = [
        chain.last.dump_id
        for lineage in lineages
        for chain in lineage.followed.chains
        if chain.last.run_number < lineage.first
    ]
    return {True: ended, False: continued}


# The tables `lineages`, `history`, `causes` and `gone`, worked out from the stored dumps.
#
# After a change only the runs from the first changed one on are followed again: no dump before it
# can follow another than it did.

# A lineage: branch and suite.
_Key = tuple[str, str]
# A run: the place of its lineage, its id, its number, and whether it is one of those asked for.
_Run = tuple[int | None, str, int, bool]
_SQL = resources.files(__package__)


def worked_out(connection: duckdb.DuckDBPyConnection, causes: Causes) -> dict[str, pa.Table]:
    """The rows of `lineages`, `history`, `causes` and `gone` from scratch, by table."""
    runs = _rows(connection, "lineages")
    lineages = [Lineage(*key, of_lineage, 1) for key, of_lineage in _by_lineage(runs).items()]
    _follow_lineages(connection, lineages)
    return {
        "lineages": runs,
        **history_rows(lineages, causes, {}),
        "gone": gone_rows(lineages),
    }


def refresh(
    connection: duckdb.DuckDBPyConnection, changed_runs: Sequence[str], causes: Causes
) -> None:
    """Make the stored tables what the dumps give, within the transaction of a change.

    changed_runs: the runs whose dumps, modules, or labels that causes read, changed. Runs that
    were added or removed, or changed their place or lineage, are recognised here.
    """
    runs = _rows(connection, "lineages")
    stored = connection.sql("SELECT * FROM lineages").to_arrow_table()
    lineages = _changed_lineages(_by_lineage(runs), _by_lineage(stored), changed_runs)
    if not lineages:
        return
    # With nothing stored nothing can be forgotten.
    if len(stored):
        connection.execute("DELETE FROM lineages")
    _insert(connection, "lineages", runs)
    _follow_lineages(connection, lineages)
    followed_runs = [run_id for lineage in lineages for run_id in lineage.changed_runs]
    stored_causes = _stored_causes(connection, followed_runs, changed_runs)
    rows = {**history_rows(lineages, causes, stored_causes), "gone": gone_rows(lineages)}
    if len(stored):
        for forget in ("forget", "forget_causes", "forget_gone"):
            connection.execute(_sql(forget), [followed_runs])
    for last, dumps in whether_last(lineages).items():
        if dumps:
            connection.execute(_sql("set_whether_last"), [last, dumps])
    for name, table in rows.items():
        _insert(connection, name, table)


def paired(connection: duckdb.DuckDBPyConnection, a_run_id: str, b_run_id: str) -> pa.Table:
    """Which dump of run B follows which of run A, by the rule of the chains for these two runs.

    Columns: a_dump_id and b_dump_id, null where a dump has no partner, and matched_by.
    """
    dumps = _dumps(connection, [(0, a_run_id, 1, True), (0, b_run_id, 2, True)], []).get(0, [])
    links = follow(dumps, [1, 2]).links
    matches = [(link.previous, link.dump, link.matched_by) for link in links if link.previous]
    partners = {dump.dump_id for pair in matches for dump in pair[:2] if dump is not None}
    alone = [dump for dump in dumps if dump.dump_id not in partners]
    rows: list[tuple[int | None, int | None, str | None]] = [
        (a.dump_id, b.dump_id, how) for a, b, how in matches
    ]
    rows += [
        (dump.dump_id, None, None) if dump.run_number == 1 else (None, dump.dump_id, None)
        for dump in alone
    ]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(
        [
            pa.array(columns[0], pa.int64()),
            pa.array(columns[1], pa.int64()),
            pa.array(columns[2], pa.string()),
        ],
        names=["a_dump_id", "b_dump_id", "matched_by"],
    )


# -- Following ---------------------------------------------------------------------------------


def _by_lineage(runs: pa.Table) -> dict[_Key, dict[int, str]]:
    """The runs of each branch and suite by their numbers."""
    by_lineage: dict[_Key, dict[int, str]] = {}
    columns = ("run_number", "branch", "suite", "run_id")
    rows = zip(*(runs[name].to_pylist() for name in columns), strict=True)
    for number, branch, suite, run_id in sorted(rows):
        by_lineage.setdefault((branch, suite), {})[number] = run_id
    return by_lineage


def _changed_lineages(
    now: Mapping[_Key, Mapping[int, str]],
    stored: Mapping[_Key, Mapping[int, str]],
    changed_runs: Collection[str],
) -> list[Lineage]:
    """The lineages with a run that changed or is not the stored one: from the first of these on."""
    changed = set(changed_runs)
    lineages = []
    for key in sorted(now.keys() | stored.keys()):
        new, old = now.get(key, {}), stored.get(key, {})
        differing = [
            number
            for number in new.keys() | old.keys()
            if new.get(number) != old.get(number) or new.get(number) in changed
        ]
        if differing:
            lineages.append(Lineage(*key, new, min(differing)))
    return lineages


def _follow_lineages(connection: duckdb.DuckDBPyConnection, lineages: Sequence[Lineage]) -> None:
    """Follow lineages, each from its first changed run to its end."""
    before = [
        (place, run_id, number, False)
        for place, lineage in enumerate(lineages)
        for number, run_id in lineage.runs.items()
        if number < lineage.first
    ]
    stored = _stored_chains(connection, before)
    stored_dump_ids = {
        stored_id
        for rows in stored.values()
        for row in rows
        for name, stored_id in row.items()
        if name.endswith("_id") and name != "series_id" and stored_id is not None
    }
    runs = before + [
        (place, run_id, number, True)
        for place, lineage in enumerate(lineages)
        for number, run_id in lineage.runs.items()
        if number >= lineage.first
    ]
    by_place = _dumps(connection, runs, sorted(stored_dump_ids))
    for place, lineage in enumerate(lineages):
        dumps = by_place.get(place, [])
        earlier = {dump.dump_id: dump for dump in dumps if dump.run_number < lineage.first}
        chains = [_chain(row, earlier) for row in stored.get(place, [])]
        window = range(lineage.first, len(lineage.runs) + 1)
        lineage.followed = follow(dumps[len(earlier) :], window, chains)


def _dumps(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[_Run], others: Sequence[int]
) -> dict[int, list[Dump]]:
    """The dumps of the changed runs, and these dumps of the others, in order by lineage."""
    with _registered(connection, followed_runs=_run_table(runs)):
        rows = connection.execute(_sql("lineage_dumps"), [list(others)]).fetchall()
    by_lineage: dict[int, list[Dump]] = {}
    for place, *values in rows:
        by_lineage.setdefault(place, []).append(Dump(*values))
    return by_lineage


def _stored_chains(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[_Run]
) -> dict[int, list[dict[str, int]]]:
    """The chains before the changed runs by lineage."""
    by_lineage: dict[int, list[dict[str, int]]] = {}
    if all(is_changed for *_, is_changed in runs):
        return by_lineage
    with _registered(connection, followed_runs=_run_table(runs)):
        rows = connection.sql(_sql("stored_chains")).to_arrow_table().to_pylist()
    for row in rows:
        by_lineage.setdefault(row.pop("lineage"), []).append(row)
    return by_lineage


def _run_table(runs: Sequence[_Run]) -> pa.Table:
    types = (pa.int32(), pa.string(), pa.int32(), pa.bool_())
    columns = zip(*runs, strict=True) if runs else ((),) * len(types)
    return pa.table(
        [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)],
        names=["lineage", "run_id", "run_number", "is_changed"],
    )


def _chain(row: Mapping[str, int], dumps: Mapping[int, Dump]) -> Chain:
    compared = {
        grade: Compared(dumps[row[f"grade{grade}_id"]], row[f"grade{grade}_level_index"])
        for grade in range(3)
        if row[f"grade{grade}_id"] is not None
    }
    return Chain(
        born=dumps[row["born_dump_id"]].group,
        number=row["number"],
        last=dumps[row["last_dump_id"]],
        length=row["length"],
        compared=compared,
    )


def _stored_causes(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[str], changed_runs: Sequence[str]
) -> dict[Pair, Mapping[str, Any]]:
    """The stored causes of these runs; not of pairs with a dump of a changed run."""
    if set(runs) <= set(changed_runs):
        return {}
    stored = connection.sql(_sql("stored_causes"), params=[list(runs), list(changed_runs)])
    rows = stored.to_arrow_table().to_pylist()
    return {(row["a_dump_id"], row["b_dump_id"]): row for row in rows}


# -- SQL ---------------------------------------------------------------------------------------


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, **tables: pa.Table) -> Iterator[None]:
    """The tables as views of the connection, for the queries within."""
    for name, table in tables.items():
        connection.register(name, table)
    try:
        yield
    finally:
        # After an error the transaction is aborted, and only its end unregisters.
        with suppress(duckdb.Error):
            for name in tables:
                connection.unregister(name)


def _insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    if len(rows):
        with _registered(connection, incoming=rows):
            connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    return connection.sql(_sql(name)).to_arrow_table()


def _sql(name: str) -> str:
    return (_SQL / f"{name}.sql").read_text()
