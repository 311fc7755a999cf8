"""Joins of every two public relations: no crash, and no row twice unless the join says so.

Each relation has a key, which its page of the dictionary names. Where a join's columns have the key
of one side, that side adds columns to the other's rows, and repeats none. A table of modules has a
row for all dumps of a module: it counts here as often as dumps have it, as a view does.
"""

import itertools
import os
import random
import re

import pytest

import memhouse
from memhouse.queries.catalogue import public_views
from memhouse.schema.arrow import public_tables, stored_keys

from ..support.rounds import rounds

# The columns by which rows of two relations are of one thing.
SHARED = re.compile(
    "run_id|workload|module_name|dump_id|module_id|series_id|flags_id|oom_id|value_id"
    "|instruction_id|allocation_index|computation|stack_frame_id|scope_id|residual_id"
    "|memory_space|metric|rank|depth|scope|fold|pass|role|operation|element_type|source_file"
    "|source_line|parameter_number|parameter_shape_index|start_time|host|key"
)
# Joined at random beside all by which two relations can be joined.
RANDOM = 8
AGGREGATES = ("COUNT", "MIN", "MAX", "ANY_VALUE", "MODE", "APPROX_COUNT_DISTINCT")


def keys():
    """The key of each public relation."""
    of_tables = {name: stored_keys()[name] for name in public_tables()}
    return of_tables | {view.name: view.key for view in public_views().values()}


@pytest.mark.parametrize("made", ["history", "filled", "hosts"])
def test_no_join_crashes_or_repeats_rows(made, request):
    """The ten nights, the samples, and eight hosts on two branches."""
    seed = random.randrange(2**32) if "MEMHOUSE_TEST_ROUNDS" in os.environ else 30
    chosen = random.Random(f"{seed} {made}")
    with memhouse.open(request.getfixturevalue(made), read_only=True) as warehouse:
        # A crash is answered by a second try, which must not hide it here.
        ask = warehouse.store.connection.execute
        relations = columns(ask)
        dumped = {}
        for name, key in keys().items():
            # Worked out once: dozens of pairs read each view.
            ask(f"""CREATE TEMP TABLE "all {name}" AS FROM "{name}" """)
            of_module = "module_id" in relations[name] and "dump_id" not in relations[name]
            times = " JOIN (SELECT module_id FROM dumps) USING (module_id)" * of_module
            ((dumped[name],),) = ask(f"""SELECT COUNT(*) FROM "all {name}"{times}""").fetchall()
            twice = f"""FROM "all {name}" GROUP BY {", ".join(key)} HAVING COUNT(*) > 1"""
            assert ask(f"SELECT COUNT(*) {twice}").fetchall() == [], twice
        pairs = 0
        for left, right in itertools.combinations(relations, 2):
            shared = {c for c in {*relations[left]} & {*relations[right]} if SHARED.fullmatch(c)}
            others = [b for a, b in ((left, right), (right, left)) if {*keys()[a]} <= shared]
            if others:
                join = (
                    f"""FROM "all {left}" JOIN "all {right}" USING ({", ".join(sorted(shared))})"""
                )
                ((repeated,),) = ask(f"SELECT COUNT(*) {join}").fetchall()
                assert repeated <= min(dumped[name] for name in others), join
                pairs += 1
        assert pairs > 300
        for _ in range(rounds(RANDOM)):
            left, right = chosen.sample(sorted(relations), 2)
            if shared := sorted({*relations[left]} & {*relations[right]}):
                by = chosen.sample(shared, chosen.randint(1, len(shared)))
                ask(f"""SELECT r."{chosen.choice(relations[right])}",
                    {chosen.choice(AGGREGATES)}(l."{chosen.choice(relations[left])}")
                    FROM "{left}" AS l JOIN "{right}" AS r
                    USING ({", ".join(by)}) GROUP BY 1""").fetchall()


def columns(ask):
    """The columns of each public table and view."""
    query = """SELECT table_name, column_name FROM duckdb_columns()
        WHERE schema_name = 'main' AND NOT internal"""
    found: dict[str, list[str]] = {}
    for relation, column in sorted(ask(query).fetchall()):
        if relation in keys() and column[0] != "_":
            found.setdefault(relation, []).append(column)
    return found
