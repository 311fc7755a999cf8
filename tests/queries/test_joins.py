"""Joins of pairs of tables and views by keys that both have: no crash, and no row twice.

Where a relation has one row for each value of the shared keys, a join with it keeps the rows of the
other. Where neither has, the join is of many rows with many by nature: `ONE_ROW` says which have.
"""

import itertools
import os
import random

import pytest

import memhouse
from memhouse.queries.catalogue import public_views
from memhouse.schema.tables import INTERNAL, KEYS, metadata

from ..support.rounds import rounds

# A row a key; of other relations and keys a join repeats rows.
ONE_ROW = KEYS | {
    "runs": ("run_id",),
    "runs_summary": ("run_id",),
    "dumps": ("dump_id",),
    "modules": ("module_id",),
    "latest": ("module_id",),
    "peaks": ("dump_id", "memory_space"),
    "peak_buffers": ("module_id", "memory_space", "rank"),
}
ALONE = ("module_id", "dump_id", "run_id", "series_id", "flags_id", "oom_id")
OF_MODULES = (
    *("value_id", "instruction_id", "allocation_index", "computation", "stack_frame_id"),
    *("scope_id", "residual_id", "memory_space"),
)
# Of more than two thousand of each warehouse.
PAIRS = 40


@pytest.mark.parametrize("made", ["history", "filled", "hosts"])
def test_no_join_crashes_or_repeats_rows(made, request):
    """The ten nights, the samples, and eight hosts on two branches."""
    seed = random.randrange(2**32) if "MEMHOUSE_TEST_ROUNDS" in os.environ else 30
    chosen = random.Random(f"{seed} {made}")
    with memhouse.open(request.getfixturevalue(made), read_only=True) as warehouse:
        # A crash is answered by a second try, which must not hide it here.
        ask = warehouse._store.connection.execute
        found = columns(ask)
        every = list(joins(found))
        for left, right, keys in chosen.sample(every, min(rounds(PAIRS), len(every))):
            of, added = chosen.choice(["COUNT", "MIN", "MAX"]), chosen.choice(found[left])
            query = f"""SELECT r."{chosen.choice(found[right])}", {of}(l."{added}"), COUNT(*)
                FROM "{left}" AS l INNER JOIN "{right}" AS r USING ({", ".join(keys)}) GROUP BY 1"""
            rows = sum(row[2] for row in ask(query).fetchall())
            for kept, other in ((left, right), (right, left)):
                if set(ONE_ROW.get(other, {"none"})) <= set(keys):
                    ((most,),) = ask(f'SELECT COUNT(*) FROM "{kept}"').fetchall()
                    assert rows <= most, (seed, query)


def columns(ask):
    """The columns of each public table and view."""
    query = "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    names = {*metadata.tables, *public_views()} - INTERNAL
    found: dict[str, list[str]] = {}
    for relation, column in sorted(ask(query).fetchall()):
        if relation in names and column[0] != "_":
            found.setdefault(relation, []).append(column)
    return found


def joins(found):
    """Every two relations with keys that both have."""
    for left, right in itertools.permutations(found, 2):
        shared = {*found[left]} & {*found[right]}
        yield from ((left, right, (key,)) for key in ALONE if key in shared)
        if "module_id" in shared:
            yield from ((left, right, ("module_id", key)) for key in OF_MODULES if key in shared)
