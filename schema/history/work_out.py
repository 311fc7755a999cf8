"""The tables `lineages`, `history` and `gone`, worked out from the stored dumps.

After a change only the runs from the first changed one on are followed anew: nothing before it
can follow another dump than it did.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import resources

import duckdb
import pyarrow as pa

from .chains import Chain, Compared, follow
from .history_rows import Causes, Lineage, Pair, gone_rows, history_rows, whether_last
from .pairing import Dump


def worked_out(connection: duckdb.DuckDBPyConnection, causes: Causes) -> dict[str, pa.Table]:
    """The rows of `lineages`, `history` and `gone` from scratch, by table."""
    runs = _rows(connection, "lineages")
    everything = dict.fromkeys(_by_lineage(runs), 1)
    lineages = _follow_lineages(connection, runs, everything)
    return {
        "lineages": runs,
        "history": history_rows(lineages, causes, {}),
        "gone": gone_rows(lineages),
    }


def refresh(
    connection: duckdb.DuckDBPyConnection, changed_runs: Sequence[str], causes: Causes
) -> None:
    """Make the stored tables what the dumps give, within the transaction of a change.

    changed_runs: the runs whose dumps, modules, or labels that causes read, changed. Runs that
    came, went, moved or changed their lineage are found out.
    """
    runs = _rows(connection, "lineages")
    with _registered(connection, new_lineages=runs):
        firsts = connection.sql(_sql("first_changes"), params=[list(changed_runs)]).fetchall()
        if not firsts:
            return
        connection.execute("DELETE FROM lineages")
        connection.execute("INSERT INTO lineages BY NAME SELECT * FROM new_lineages")
    starts = {(branch, suite): first for branch, suite, first in firsts}
    lineages = _follow_lineages(connection, runs, starts)
    followed_runs = [run_id for lineage in lineages for run_id in lineage.changed_runs]
    told = _told_causes(connection, followed_runs, changed_runs)
    history, gone = history_rows(lineages, causes, told), gone_rows(lineages)
    connection.execute(_sql("forget"), [followed_runs])
    connection.execute(_sql("forget_gone"), [followed_runs])
    for last, dumps in whether_last(lineages).items():
        connection.execute(_sql("set_whether_last"), [last, dumps])
    with _registered(connection, new_history=history, new_gone=gone):
        connection.execute("INSERT INTO history BY NAME SELECT * FROM new_history")
        connection.execute("INSERT INTO gone BY NAME SELECT * FROM new_gone")


def paired(connection: duckdb.DuckDBPyConnection, a_run_id: str, b_run_id: str) -> pa.Table:
    """Which dump of run B follows which of run A, by the rule of the chains for these two runs.

    Columns: a_dump_id and b_dump_id, null where a dump has no partner, and matched_by.
    """
    both = pa.table({"run_id": [a_run_id, b_run_id], "run_number": pa.array([1, 2], pa.int32())})
    dumps = _dumps(connection, both, 1, [])
    links = follow(dumps, [1, 2]).links
    found = [(link.previous, link.dump, link.matched_by) for link in links if link.previous]
    partners = {dump.dump_id for pair in found for dump in pair[:2] if dump is not None}
    alone = [dump for dump in dumps if dump.dump_id not in partners]
    rows: list[tuple[int | None, int | None, str | None]] = [
        (a.dump_id, b.dump_id, how) for a, b, how in found
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


def _by_lineage(runs: pa.Table) -> dict[tuple[str, str], dict[int, str]]:
    """The runs of each branch and suite by their numbers."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for row in runs.sort_by("run_number").to_pylist():
        runs_of = found.setdefault((row["branch"], row["suite"]), {})
        runs_of[row["run_number"]] = row["run_id"]
    return found


def _follow_lineages(
    connection: duckdb.DuckDBPyConnection, runs: pa.Table, starts: Mapping[tuple[str, str], int]
) -> list[Lineage]:
    """Follow these lineages, each from the run of this number on."""
    found = []
    by_lineage = _by_lineage(runs)
    for (branch, suite), first in starts.items():
        of_lineage = by_lineage.get((branch, suite), {})
        table = pa.table(
            {
                "run_id": pa.array(of_lineage.values(), pa.string()),
                "run_number": pa.array(of_lineage.keys(), pa.int32()),
            }
        )
        before = table.slice(0, first - 1)
        stored = _stored_chains(connection, before) if len(before) else []
        wanted = {
            stored_id
            for row in stored
            for name, stored_id in row.items()
            if name.endswith("_id") and name != "series_id" and stored_id is not None
        }
        dumps = _dumps(connection, table, first, sorted(wanted))
        earlier = {dump.dump_id: dump for dump in dumps if dump.run_number < first}
        chains = [_chain(row, earlier) for row in stored]
        followed = follow(
            dumps[len(earlier) :],
            [number for number in of_lineage if number >= first],
            chains,
            Counter(chain.born for chain in chains),
        )
        found.append(Lineage(branch, suite, of_lineage, first, followed))
    return found


def _dumps(
    connection: duckdb.DuckDBPyConnection, runs: pa.Table, first: int, others: Sequence[int]
) -> list[Dump]:
    """The dumps of these runs from a number on, and these dumps before, in order."""
    with _registered(connection, followed_runs=runs):
        query = _sql("lineage_dumps")
        found = connection.sql(query, params=[first, list(others)]).to_arrow_table()
    columns = [column.to_pylist() for column in found.select(Dump._fields).columns]
    return [Dump(*values) for values in zip(*columns, strict=True)]


def _stored_chains(connection: duckdb.DuckDBPyConnection, runs: pa.Table) -> list[dict[str, int]]:
    with _registered(connection, followed_runs=runs):
        found = connection.sql(_sql("stored_chains")).to_arrow_table()
    return list(found.to_pylist())


def _chain(row: Mapping[str, int], dumps: Mapping[int, Dump]) -> Chain:
    compared = {
        is_estimated: Compared(dumps[row[f"{origin}_id"]], row[f"{origin}_level_index"])
        for is_estimated, origin in ((False, "dumped"), (True, "estimated"))
        if row[f"{origin}_id"] is not None
    }
    return Chain(
        born=dumps[row["born_dump_id"]].group,
        number=row["number"],
        last=dumps[row["last_dump_id"]],
        length=row["length"],
        compared=compared,
    )


def _told_causes(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[str], changed_runs: Sequence[str]
) -> dict[Pair, str | None]:
    """The stored causes of these runs; not of pairs with a dump of a changed run."""
    found = connection.sql(_sql("told_causes"), params=[list(runs), list(changed_runs)])
    return {(before, dump): cause for before, dump, cause in found.fetchall()}


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


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    return connection.sql(_sql(name)).to_arrow_table()


def _sql(name: str) -> str:
    return (resources.files(__package__) / f"{name}.sql").read_text()
