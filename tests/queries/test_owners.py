"""`memhouse owners` and `buffers`: sums that hold, at any time and in any grouping."""

import random

import pytest

import memhouse
from memhouse.queries.owners import OWNERS

from ..support.warehouse import reading, rows, writing


@pytest.fixture(scope="session", params=["dumps", "nightly"])
def either(request):
    """A warehouse of all sample dumps, and one of the ten nights."""
    if request.param == "dumps":
        return request.getfixturevalue("filled")
    return request.getfixturevalue("history")


@pytest.fixture(scope="module")
def opened(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        yield warehouse


def total(found) -> int:
    return sum(found.table["counted_bytes"].to_pylist())


# --- sums ---------------------------------------------------------------------------------


def test_counted_bytes_are_what_is_occupied_at_ten_times(either):
    """In every module and memory space."""
    chosen = random.Random(13)
    spaces = rows(
        either,
        "SELECT module_id, memory_space, schedule_length FROM module_memory "
        "INNER JOIN modules USING (module_id) WHERE peak_bytes > 0 ORDER BY ALL",
    )
    assert len(spaces) > 30
    with reading(either) as store:
        for module_id, space, length in spaces:
            times = [chosen.randrange(length) for _ in range(10)]
            found = store.rows(
                "SELECT times.time, ANY_VALUE(occupied.bytes) AS occupied, "
                "COALESCE(SUM(counted_bytes), 0)::BIGINT AS counted "
                "FROM (SELECT UNNEST($3::INTEGER[]) AS time) AS times "
                "LEFT JOIN (SELECT start_time, occupied_bytes AS bytes FROM occupancy "
                "WHERE module_id = $1 AND memory_space = $2) AS occupied "
                "ON occupied.start_time = (SELECT MAX(start_time) FROM occupancy "
                "WHERE module_id = $1 AND memory_space = $2 AND start_time <= times.time) "
                "LEFT JOIN (SELECT time, counted_bytes FROM _counted_buffers "
                "WHERE module_id = $1 AND memory_space = $2 AND NOT is_peak "
                "AND time IN (SELECT UNNEST($3::INTEGER[]))) AS there ON there.time = times.time "
                "GROUP BY times.time",
                [module_id, space, sorted(set(times))],
            ).to_pylist()
            assert len(found) == len(set(times))
            for row in found:
                assert row["counted"] == (row["occupied"] or 0), (module_id, space, row)


@pytest.mark.parametrize("by", OWNERS)
@pytest.mark.parametrize("at", [None, 10, 300])
@pytest.mark.parametrize("limit", [None, 1, 3])
def test_the_rows_add_up_however_they_are_grouped(opened, by, at, limit):
    found = opened.owners("llama-v5e/", by=by, at=at, limit=limit)
    whole = opened.buffers("llama-v5e/", at=at)
    assert total(found) == total(whole) > 0
    assert sum(found.table["buffers"].to_pylist()) == len(whole)
    assert sum(found.table["share"].to_pylist()) == pytest.approx(1)
    assert found.table.column_names[3] == OWNERS[by]
    if limit:
        assert len(found) <= limit + 1


def test_the_rest_is_one_row(opened):
    whole = opened.owners("llama-v5e/").table.to_pylist()
    shown = opened.owners("llama-v5e/", limit=5).table.to_pylist()
    assert shown[:5] == [dict(row) for row in whole[:5]]
    assert shown[5]["source"] == f"{len(whole) - 5} more"
    assert shown[5]["counted_bytes"] == sum(row["counted_bytes"] for row in whole[5:])
    assert opened.owners("llama-v5e/", limit=len(whole)).table.to_pylist() == whole


def test_the_rest_of_the_buffers_is_one_row(opened):
    whole = opened.buffers("llama-v5e/").table.to_pylist()
    shown = opened.buffers("llama-v5e/", limit=4).table.to_pylist()
    assert [row["value"] for row in shown[:4]] == [row["value"] for row in whole[:4]]
    assert shown[4]["op_name"] == f"{len(whole) - 4} more"
    assert sum(row["counted_bytes"] for row in shown) == sum(row["counted_bytes"] for row in whole)
    assert sum(row["padding_bytes"] for row in shown) == sum(row["padding_bytes"] for row in whole)


def test_the_views_say_the_same(opened, filled):
    for by, view, column in (
        ("role", "memory_by_role", "role"),
        ("op", "memory_by_op", "operation"),
    ):
        found = opened.owners("llama-v5e/", by=by).table.to_pylist()
        shown = {row[column]: row["counted_bytes"] for row in found}
        stored = rows(
            filled,
            f"SELECT COALESCE({column}, '(not known)'), counted_bytes FROM {view} "
            "INNER JOIN dumps USING (module_id) "
            "WHERE workload = 'llama-v5e' AND memory_space = 0",
        )
        assert shown == dict(stored)


# --- callers ------------------------------------------------------------------------------


def test_callers_tell_the_uses_of_a_line_apart(opened):
    found = opened.owners("llama-v5e/", callers=2).table.to_pylist()
    of_line = [row for row in found if row["source"].endswith("zoo.py:35")]
    assert len(of_line) == 2
    assert of_line[1]["called_by"] == "loss at zoo.py:40, train_step at zoo.py:46"
    (plain,) = [
        row
        for row in opened.owners("llama-v5e/").table.to_pylist()
        if row["source"].endswith("zoo.py:35")
    ]
    assert plain["counted_bytes"] == sum(row["counted_bytes"] for row in of_line)
    assert "called_by" not in plain


def test_a_stack_ends_at_its_root(opened):
    found = opened.owners("llama-v5e/", callers=100).table.to_pylist()
    stacks = [row["called_by"] for row in found if row["called_by"]]
    assert stacks
    assert all(stack.split(" at ")[-2].endswith("<module>") for stack in stacks)
    assert total(opened.owners("llama-v5e/", callers=100)) == total(opened.owners("llama-v5e/"))


def test_a_buffers_callers(opened):
    first = opened.buffers("llama-v5e/", callers=1, limit=1).table.to_pylist()[0]
    assert (first["source"], first["called_by"]) == ("zoo.py:43", "train_step at zoo.py:46")


# --- roles of one's own -------------------------------------------------------------------


def test_roles_of_your_own_come_first(opened):
    roles = {"kv cache": ["cache*"], "queries": "p['layers'][*]['q']", "never": "cache[0]*"}
    found = opened.owners("decode-h100", roles=roles).table.to_pylist()
    shown = {row["role"]: (row["buffers"], row["counted_bytes"]) for row in found}
    assert shown["kv cache"] == (4, 64 << 20)
    assert shown["queries"] == (2, 2 << 20)
    assert "never" not in shown
    assert shown["weight"][1] == (35 << 20) + 8192 - (2 << 20) - 4096


def test_a_file_of_roles(opened, tmp_path):
    file = tmp_path / "roles.toml"
    file.write_text('[roles]\nattention = "btd,dhk*"\n"100%_" = ["100%_"]\n')
    found = opened.owners("llama-v5e/", roles=file).table.to_pylist()
    (attention,) = [row for row in found if row["role"] == "attention"]
    scopes = opened.owners("llama-v5e/", by="scope").table.to_pylist()
    assert attention["counted_bytes"] >= 3 * 8 << 20
    assert attention["counted_bytes"] == sum(
        row["counted_bytes"] for row in scopes if row["scope"].startswith("btd,dhk")
    )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", 'write a table [roles] with lines such as "kv cache" = ["cache*"]'),
        ("roles = 1", "write a table [roles]"),
        ("[roles]", "write a table [roles]"),
        ("[roles]\na = 1", "role 'a' needs a pattern or a list of patterns"),
        ("[roles]\na = []", "role 'a' needs a pattern or a list of patterns"),
        ("[roles]\na = [1]", "role 'a': 1 is not a pattern such as 'cache*'"),
        ('[roles]\na = ""', "role 'a': '' is not a pattern"),
        ("[role]\na = 'x'", "unknown setting 'role': use the table [roles]"),
        ("[roles", "Expected ']'"),
    ],
)
def test_a_wrong_file_of_roles_is_told_in_a_line(opened, tmp_path, text, wrong):
    file = tmp_path / "roles.toml"
    file.write_text(text)
    with pytest.raises(memhouse.UsageError) as error:
        opened.owners("llama-v5e/", roles=file)
    assert str(error.value).startswith(f"{file}: {wrong}")
    assert "\n" not in str(error.value)
    assert error.value.argument == "roles"


def test_a_file_of_roles_that_is_not_there_or_not_text(opened, tmp_path):
    with pytest.raises(memhouse.UsageError, match=r"gone\.toml: No such file or directory"):
        opened.owners("llama-v5e/", roles=tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(memhouse.UsageError, match=r"bytes\.toml: "):
        opened.owners("llama-v5e/", roles=tmp_path / "bytes.toml")


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"by": "line"}, "invalid owner 'line': use source, scope, op"),
        ({"by": "op", "callers": 1}, "callers need by='source'"),
        ({"by": "op", "roles": {"a": "b"}}, "roles need by='role'"),
        ({"roles": {}}, "write a table"),
    ],
)
def test_what_does_not_fit_together(opened, arguments, wrong):
    with pytest.raises(memhouse.UsageError, match=wrong):
        opened.owners("llama-v5e/", **arguments)


# --- guesses ------------------------------------------------------------------------------


def test_guesses_have_a_mark_and_one_line_that_explains_it(copied):
    with memhouse.open(copied) as warehouse:
        warehouse._store.execute(
            "UPDATE \"values\" SET origin_rule = 'operand' WHERE (module_id, value_id) IN ("
            "SELECT (module_id, value_id) FROM peak_buffers INNER JOIN dumps USING (module_id) "
            "WHERE workload = 'llama-v5e' AND memory_space = 0 AND rank = 1)"
        )
        found = warehouse.owners("llama-v5e/")
        guessed = [row for row in found.table.to_pylist() if row["is_guess"]]
        assert [row["counted_bytes"] for row in guessed] == [64 << 20]
        html = found._repr_html_()
        assert "zoo.py:43?<" in html
        assert html.count("? is a guess") == 1
        sums = warehouse.sql(
            "SELECT SUM(guess_bytes)::BIGINT AS guessed FROM memory_by_source "
            "INNER JOIN dumps USING (module_id) "
            "WHERE workload = 'llama-v5e' AND memory_space = 0"
        )
        assert sums.table.to_pydict() == {"guessed": [64 << 20]}
        assert "is_guess" not in html


# --- without HLO text -----------------------------------------------------------------------


def test_without_hlo_text_a_buffer_is_its_own_instructions(copied):
    """Every column of an origin is null then; instructions are still known."""
    with writing(copied) as store:
        store.execute(
            'UPDATE "values" SET origin_instruction_id = NULL, origin_rule = NULL, pass = NULL, '
            "role = NULL, alias_set = NULL, residual_id = NULL, last_use_time = NULL; "
            "UPDATE instructions SET scope_id = NULL, pass = NULL; "
            "DELETE FROM scopes; DELETE FROM alias_sets; DELETE FROM residuals"
        )
    found = rows(
        copied,
        "SELECT DISTINCT op_name IS NOT DISTINCT FROM made_op_name, "
        "source_line IS NOT DISTINCT FROM made_source_line, origin_instruction = instruction, "
        "scope, pass, role FROM peak_buffers WHERE instruction IS NOT NULL",
    )
    assert found == [(True, True, True, None, None, None)]
    assert rows(copied, "SELECT COUNT(*) FROM peak_buffers WHERE counted_bytes > 0")[0][0] > 500
    assert rows(copied, "SELECT COUNT(*) FROM memory_by_scope WHERE scope = ''")[0][0] > 10
    assert rows(copied, "SELECT COUNT(*), COUNT(idle_time) FROM long_lived")[0][1] == 0
