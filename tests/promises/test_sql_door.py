"""A user's SQL reads the warehouse alone: no other file, no setting, no network, no change."""

import os
import re
import shutil

import duckdb
import pytest

import memhouse
from memhouse.schema.errors import QueryError, RefusedError, UsageError

from ..support.command import run_memhouse

# The warehouse is {db}; in its folder lie a secret, and links to it and to the warehouse.
READS = [
    f"{start}({file}){end}"
    for start, end in [("FROM read_text", ""), ("SELECT * FROM read_blob", " AS t")]
    for file in ("'{there}/secret.csv'", "'{there}/soft.csv'", "'{there}/*'", "'{hard}'", "'{db}'")
] + [
    *(
        f"SELECT * FROM {name}('{{there}}/secret.csv')"
        for name in (
            *("read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson"),
            *("read_json_objects", "read_parquet", "parquet_scan", "parquet_metadata"),
            *("parquet_schema", "parquet_file_metadata", "parquet_kv_metadata", "sniff_csv"),
            *("glob", "read_duckdb", "query_table"),
        )
    ),
    "FROM '{there}/secret.csv'",
    'FROM "{there}/secret.csv"',
    "FROM '{there}/soft.csv'",
    "FROM '{hard}'",
    "FROM glob('/etc/*')",
    "FROM glob('{there}/../*')",
    "FROM query('FROM read_text(''{there}/secret.csv'')')",
    "SELECT (SELECT content FROM read_text('{there}/secret.csv'))",
    "SELECT * FROM runs, LATERAL (FROM read_text('{there}/secret.csv'))",
    "SELECT * FROM runs WHERE run_id IN (SELECT content FROM read_text('{there}/secret.csv'))",
    "WITH a AS (FROM read_text('{there}/secret.csv')) FROM a",
    "WITH a AS MATERIALIZED (FROM '{there}/secret.csv') FROM a",
    """WITH "{there}/secret.csv" AS (SELECT 1) FROM '{there}/secret.csv'""",
    "SELECT 1 UNION ALL SELECT size FROM read_text('{there}/secret.csv')",
    "SUMMARIZE '{there}/secret.csv'",
    "DESCRIBE '{there}/secret.csv'",
    "DESCRIBE (FROM read_text('{there}/secret.csv'))",
    "EXPLAIN ANALYZE FROM read_text('{there}/secret.csv')",
    "PIVOT '{there}/secret.csv' ON a",
    "PIVOT '{hard}' ON a USING COUNT(*)",
    "PIVOT (FROM read_text('{there}/secret.csv')) ON filename USING COUNT(*)",
    "WITH a AS (FROM glob('/etc/*')) PIVOT a ON file USING COUNT(*)",
    "FROM (PIVOT (FROM read_blob('{there}/secret.csv')) ON size USING COUNT(*))",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''/etc/hosts'')'))",
    "FROM arrow_scan(1, 2, 3)",
    "FROM pandas_scan(1)",
    "FROM 'https://127.0.0.1:9/x.csv'",
    "FROM read_csv('s3://bucket/x.csv')",
    "ATTACH '{hard}' AS h (READ_WRITE)",
    "ATTACH '{hard}' AS h; DELETE FROM h.runs",
    "ATTACH '{there}/other.duckdb' AS o",
    "ATTACH ':memory:' AS m",
    "ATTACH 'https://127.0.0.1:9/x.duckdb'",
    "DETACH memory",
    "USE memory",
]
WRITES = [
    *(
        f"COPY (SELECT 1 AS x) TO '{file}'{options}"
        for file in (
            *("{db}", "{db}.wal", "{db}.tmp", "{hard}", "{there}/out.csv", "{there}/soft.csv"),
            *("{db}/_delta_log/00000000000000000099.json", "{db}/relation=runs/x.parquet"),
        )
        for options in (" (FORMAT csv)", " (FORMAT parquet)")
    ),
    "COPY runs TO '{there}/out' (FORMAT parquet, PARTITION_BY (run_id))",
    "COPY runs FROM '{there}/secret.csv'",
    "COPY FROM DATABASE memory TO memory",
    "EXPORT DATABASE '{there}/out'",
    "EXPORT DATABASE '{db}'",
    "IMPORT DATABASE '{there}'",
    "EXPLAIN ANALYZE COPY runs TO '{there}/out.csv'",
    "explain /* x */ analyze COPY (SELECT 1) TO '{db}'",
    "WITH c AS (COPY runs TO '{db}') SELECT 1",
    "WITH c AS (COPY runs TO '{there}/out.csv') FROM c",
    "SELECT 1; COPY runs TO '{there}/out.csv'",
    "PREPARE p AS COPY runs TO '{there}/out.csv'; EXECUTE p",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM '{there}'",
    "LOAD httpfs",
    "LOAD '{there}/x.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "CREATE SECRET s (TYPE s3)",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "SELECT * FROM enable_profiling(save_location := '{there}/out.json')",
    "SELECT * FROM enable_logging(storage := 'file', storage_path := '{there}/logs')",
    "CALL enable_logging(storage := 'file', storage_path := '{there}/logs')",
    "PRAGMA enable_profiling = 'json'",
    "SET profiling_output = '{there}/out.json'",
    "SET log_query_path = '{there}/log.txt'",
    "PRAGMA log_query_path = '{there}/log.txt'",
    "SET temp_directory = '{there}/spill'",
    "SET extension_directory = '{there}/extensions'",
    "SET secret_directory = '{there}/secrets'",
    "SET home_directory = '{there}'",
]
SETTINGS = [
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET GLOBAL enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET allowed_paths = ['{there}/secret.csv']",
    "SET lock_configuration = false",
    "SET memory_limit = '100GB'",
    "SET threads = 64",
    "RESET ALL",
    "SET VARIABLE x = 1",
    "PRAGMA database_list",
    "PRAGMA version",
    "CALL pragma_version()",
    "CALL force_checkpoint()",
    "FROM duckdb_settings()",
    "FROM duckdb_secrets()",
    "FROM duckdb_databases()",
    "FROM pg_settings",
    "SELECT current_setting('temp_directory')",
    "SELECT getenv('HOME')",
    "SELECT write_log('x')",
    "BEGIN",
    "COMMIT",
    "CHECKPOINT",
    "VACUUM",
    "",
    ";",
]
CHANGES = [
    "DELETE FROM runs",
    "TRUNCATE runs",
    "DROP TABLE runs",
    "DROP VIEW peaks",
    "UPDATE runs SET run_id = 'x'",
    "INSERT INTO run_labels VALUES ('a', 'b', 'c')",
    "MERGE INTO runs USING runs AS b ON TRUE WHEN MATCHED THEN DELETE",
    "ALTER TABLE runs ADD COLUMN mood TEXT",
    "COMMENT ON TABLE runs IS 'x'",
    "CREATE TABLE mine AS SELECT 1",
    "CREATE TEMP TABLE mine AS SELECT 1",
    "CREATE OR REPLACE VIEW peaks AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "CREATE SCHEMA s",
    "WITH gone AS (DELETE FROM runs RETURNING *) FROM gone",
    "SELECT 1; DROP TABLE runs",
]
# With --write these stay refused: each would open a file.
WITH_WRITE = [
    *(query for query in [*READS, *WRITES] if not query.startswith('WITH "')),
    "INSERT INTO run_labels SELECT content, '', '' FROM read_text('{there}/secret.csv')",
    "CREATE TABLE mine AS FROM '{there}/secret.csv'",
    "CREATE TABLE mine AS FROM \"read_text\" /* x */ ('{db}')",
    "INSERT INTO run_labels WITH c AS (COPY runs TO '{db}') SELECT '', '', ''",
    "CREATE VIEW mine AS FROM read_text('{there}/secret.csv')",
    "CREATE MACRO mine() AS TABLE FROM read_blob('{there}/secret.csv')",
    "UPDATE runs SET source = (SELECT content FROM read_text('{there}/secret.csv'))",
    # What DuckDB itself has beside a database is not kept from it.
    *(
        f"WITH c AS (COPY {table} TO '{{db}}{ending}' (FORMAT csv)) SELECT * FROM c"
        for table in ("runs", '"runs"', '"main"."runs"', "/* x */ _ordered_runs")
        for ending in (".wal", ".wal.recovery", ".wal.checkpoint")
    ),
    'CREATE PERSISTENT SECRET "s" (TYPE s3)',
]
# No statement at all, and no text.
NOTHING = ["", " ", "-- x", "/* x */", ";", "SELECT '\udcff'"]


@pytest.fixture(params=["read", "written to"])
def opened(request, history, tmp_path):
    """A warehouse, and how the statements name what is there."""
    there = tmp_path / "there"
    there.mkdir()
    (there / "secret.csv").write_text("a,b\n1,SECRET\n")
    (there / "soft.csv").symlink_to(there / "secret.csv")
    db = there / "nights"
    shutil.copy(history, db)
    hard = there / "hard.duckdb"
    os.link(db, hard)
    with memhouse.open(db, read_only=request.param == "read") as warehouse:
        yield warehouse, {"db": db, "there": there, "hard": hard}


def content(there):
    return {path: path.read_bytes() for path in there.rglob("*") if path.is_file()}


def refused(warehouse, query, **options):
    """The line that says why; None if the statement was answered, without the secret."""
    try:
        rows = warehouse.sql(query, **options).arrow().to_pylist()
    except QueryError as error:
        rows, line = [], str(error)
    else:
        line = ""
    assert "SECRET" not in f"{rows}{line}", query
    assert "\n" not in line
    return line or None


def test_no_statement_leaves_the_warehouse(opened, monkeypatch):
    warehouse, names = opened
    monkeypatch.chdir(names["there"])
    before = content(names["there"])
    statements = [*READS, *WRITES, *SETTINGS, *CHANGES]
    answered = [query for query in statements if refused(warehouse, query.format(**names)) is None]
    assert answered == []
    assert content(names["there"]) == before
    assert len(warehouse.runs()) == 10


@pytest.mark.parametrize("opened", ["written to"], indirect=True)
def test_writing_opens_no_files_either(opened, monkeypatch):
    warehouse, names = opened
    monkeypatch.chdir(names["there"])
    before = content(names["there"])
    answered = [
        query
        for query in WITH_WRITE
        if refused(warehouse, query.format(**names), write=True) is None
    ]
    assert answered == []
    assert content(names["there"]) == before


def test_what_is_no_statement_is_wrong(own):
    with memhouse.open(own) as warehouse:
        for query in NOTHING:
            for write in (False, True):
                with pytest.raises(QueryError):
                    warehouse.sql(query, write=write)


def test_no_file_of_the_warehouse_is_written_over(opened, history, tmp_path):
    """Not by --files without --write, and not by an export."""
    warehouse, names = opened
    before = content(names["there"])
    for file in (names["db"], names["hard"]):
        with pytest.raises(RefusedError):
            warehouse.sql(f"COPY (SELECT 1) TO '{file}' (FORMAT csv)", files=True)
    link = names["there"] / "out.csv"
    link.symlink_to(names["db"])
    with pytest.raises(UsageError, match=re.escape(str(link))):
        warehouse.export("runs", link)
    link.unlink()
    assert content(names["there"]) == before


def test_what_a_warehouse_holds_opens_no_files(history, tmp_path):
    """A warehouse that somebody else made may have views and macros of theirs."""
    secret, db = tmp_path / "secret.csv", tmp_path / "nights.duckdb"
    secret.write_text("SECRET")
    shutil.copy(history, db)
    theirs = f"CREATE VIEW theirs AS FROM read_text('{secret}')"
    macro = f"CREATE MACRO told() AS (SELECT content FROM read_text('{secret}'))"
    with memhouse.open(db) as warehouse:
        warehouse.sql(theirs, write=True, files=True)
        warehouse.sql(macro, write=True, files=True)
        for query in ("FROM theirs", "SELECT told()"):
            with pytest.raises(RefusedError, match="--files"):
                warehouse.sql(query)
        assert "SECRET" in str(warehouse.sql("FROM theirs", files=True).arrow().to_pylist())


def test_with_files_files_open_and_the_warehouse_stays(opened):
    warehouse, names = opened
    found = warehouse.sql(
        "SELECT b FROM read_csv($1)", [str(names["there"] / "secret.csv")], files=True
    )
    assert found.arrow().to_pylist() == [{"b": "SECRET"}]
    out = names["there"] / "out.csv"
    warehouse.sql(f"COPY (SELECT run_id FROM runs ORDER BY 1) TO '{out}'", files=True)
    assert out.read_text().splitlines()[1] == "2026-10-01"
    with pytest.raises(QueryError):
        warehouse.sql("DELETE FROM runs", files=True)
    # It is closed to files again.
    assert refused(warehouse, "FROM '{there}/secret.csv'".format(**names))
    assert len(warehouse.sql("FROM runs")) == 10


def test_the_command_says_what_lets_it(own):
    before = own.read_bytes()
    copy = f"COPY (SELECT 1 AS x) TO '{own}' (FORMAT csv)"
    for query, option in [(copy, "--files"), ("DELETE FROM runs", "--write")]:
        run = run_memhouse("sql", query, "--db", own)
        assert (run.returncode, run.stdout) == (2, "")
        assert run.stderr.count("\n") == 1
        assert option in run.stderr
    assert own.read_bytes() == before
    both = f"CREATE TABLE mine AS FROM read_text('{__file__}')"
    assert run_memhouse("sql", both, "--db", own, "--write").returncode == 2
    assert run_memhouse("sql", both, "--db", own, "--write", "--files").returncode == 0
    assert "1" in run_memhouse("sql", "SELECT COUNT(*) AS n FROM mine", "--db", own).stdout


def test_the_where_of_an_export_is_sql_too(own, tmp_path):
    (tmp_path / "secret.csv").write_text("SECRET")
    where = f"run_id IN (SELECT content FROM read_text('{tmp_path}/secret.csv'))"
    run = run_memhouse("export", "runs", tmp_path / "out.csv", "--db", own, "--where", where)
    assert run.returncode == 2
    assert "read_text" in run.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_query_that_crashes_duckdb_is_answered(own, monkeypatch):
    """By a second try: no query is known today on which DuckDB fails by a mistake of its own."""
    crashes = [duckdb.InternalException("INTERNAL Error: a mistake")]
    with memhouse.open(own) as warehouse:
        fetched = warehouse.store._fetched

        def crashing(*asked):
            if crashes:
                raise QueryError("INTERNAL Error") from crashes.pop()
            return fetched(*asked)

        monkeypatch.setattr(warehouse.store, "_fetched", crashing)
        assert len(warehouse.sql("SELECT workload FROM peaks")) > 10
        assert crashes == []


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("SELECT * FROM \"values\" WHERE role = 'activations'", "role activations activation"),
        ("FROM buffers AS b WHERE b.pass IN ('forward', 'Backward')", "pass Backward backward"),
        ("FROM trends WHERE 'peak' <> metric", "metric peak peak_bytes"),
        ("FROM dump_files WHERE status = 'missing'", ""),
        ("WITH a AS (SELECT 'b' AS role FROM runs) FROM a WHERE role = 'c'", ""),
    ],
)
def test_a_word_that_a_closed_list_lacks_is_an_error_that_names_its_words(filled, query, wrong):
    with memhouse.open(filled, read_only=True) as warehouse:
        if not wrong:
            warehouse.sql(query)
            return
        with pytest.raises(QueryError) as raised:
            warehouse.sql(query)
    assert all(word in str(raised.value) for word in wrong.split())
