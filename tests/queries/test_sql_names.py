"""A name that a function is given and the warehouse does not know is told: no rows would be."""

import duckdb
import pytest

import memhouse
from memhouse.schema.errors import QueryError

LLAMA = "module('llama-v5e')"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT module('llama-v5')", "no module 'llama-v5': did you mean 'llama-v5e'?"),
        ("SELECT * FROM runs WHERE 1 = (SELECT module('x'))", "no module 'x': see"),
        ("FROM timeline_of(3)", "no module_id '3': see `memhouse modules`"),
        ("FROM history_of(3)", "no series_id '3'"),
        (f"FROM buffers_at({LLAMA}, 'hmb', NULL)", "no memory space 'hmb': did you mean 'hbm'?"),
        (f"FROM owners_of({LLAMA}, 'role', in_space := 77)", "no memory space '77'"),
        (f"FROM callers_of({LLAMA}, 'llama.py:9999')", "no line 'llama.py:9999'"),
        (
            "SELECT run_id FROM trends JOIN dumps USING (dump_id)",
            "'dumps.run_id'); or join USING (…, run_id)",
        ),
    ],
)
def test_an_unknown_name_is_told(history, query, says):
    with memhouse.open(history, read_only=True) as warehouse, pytest.raises(QueryError) as error:
        warehouse.sql(query)
    assert says in str(error.value)


def test_known_names_are_answered(history):
    with memhouse.open(history, read_only=True) as warehouse:
        for space in ("'hbm'", "0", "'0'", "NULL"):
            assert len(warehouse.sql(f"FROM buffers_at({LLAMA}, {space}, NULL)"))
        for metric in ("peak_bytes", "flops"):
            assert len(warehouse.sql(f"FROM trends WHERE metric = '{metric}'"))
        ((file, line),) = (
            warehouse.sql(
                f"""SELECT file, line FROM stack_frames WHERE module_id = {LLAMA}
            AND stack_frame_id IN (SELECT stack_frame_id FROM callers_of({LLAMA}, NULL)) LIMIT 1"""
            )
            .table.to_pandas()
            .itertuples(index=False)
        )
        for path in (file, file.rpartition("/")[2]):
            assert len(warehouse.sql(f"FROM callers_of({LLAMA}, '{path}:{line}')"))


def test_plain_duckdb_refuses_a_memory_space_that_there_is_not(history):
    with duckdb.connect(str(history), read_only=True) as connection:
        for function in ("buffers_at", "holes_at"):
            with pytest.raises(duckdb.Error, match="there is no memory space hmb"):
                connection.execute(f"FROM {function}({LLAMA}, 'hmb', NULL)").fetchall()
            named, numbered, every = (
                {*connection.execute(f"FROM {function}({LLAMA}, {space}, NULL)").fetchall()}
                for space in ("'hbm'", "0", "NULL")
            )
            assert named == numbered
            assert named
            assert named <= every
