"""`owners` and `buffers`: sums that hold, at any time and in any grouping."""

import doctest
import random
import re

import pytest

import memhouse
from memhouse import UsageError
from memhouse.queries import stacks as stacks_module
from memhouse.queries.owners import OWNERS
from memhouse.queries.stacks import WAYS, collapsed, peak_rows, peak_stacks, speedscope

from ..support.command import run_memhouse
from ..support.rounds import rounds
from ..support.warehouse import reading, rows, writing

LLAMA = "llama-v5e/"


@pytest.fixture(scope="module")
def opened(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        yield warehouse


def listed(found):
    return found.table.to_pylist()


def total(found):
    return sum(found.table["counted_bytes"].to_pylist())


# --- sums ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["filled", "history"])
def test_counted_bytes_are_what_is_occupied_at_any_time(name, request):
    """At some times in some modules and memory spaces of all samples, and of the ten nights."""
    chosen = random.Random(13)
    with reading(request.getfixturevalue(name)) as store:
        spaces = store.connection.sql(
            "SELECT module_id, memory_space, schedule_length FROM module_memory "
            "INNER JOIN modules USING (module_id) WHERE peak_bytes > 0 ORDER BY ALL"
        ).fetchall()
        assert len(spaces) > 30
        for module_id, space, length in chosen.sample(spaces, min(rounds(8), len(spaces))):
            times = sorted({chosen.randrange(length) for _ in range(5)})
            found = store.rows(
                "SELECT times.time, ANY_VALUE(occupied.bytes) AS occupied, "
                "COALESCE(SUM(counted_bytes), 0)::BIGINT AS counted "
                "FROM (SELECT UNNEST($3::INTEGER[]) AS time) AS times "
                "LEFT JOIN (SELECT start_time, occupied_bytes AS bytes FROM occupancy "
                "WHERE module_id = $1 AND memory_space = $2) AS occupied "
                "ON occupied.start_time = (SELECT MAX(start_time) FROM occupancy "
                "WHERE module_id = $1 AND memory_space = $2 AND start_time <= times.time) "
                "LEFT JOIN buffers_at($1, $2, times.time) ON TRUE "
                "GROUP BY times.time",
                [module_id, space, times],
            ).to_pylist()
            assert len(found) == len(times)
            for row in found:
                assert row["counted"] == (row["occupied"] or 0), (module_id, space, row)


def test_the_rows_add_up_however_they_are_grouped(opened):
    """By each owner, and beside it at some time and with some limit."""
    cases = [(by, None, None) for by in OWNERS]
    cases += zip(OWNERS, [10, 300] * 4, [1, 3, None] * 3, strict=False)
    whole = {at: opened.buffers(LLAMA, schedule_time=at) for at in (None, 10, 300)}
    for by, at, limit in cases:
        found = opened.owners(LLAMA, by=by, schedule_time=at, limit=limit)
        assert total(found) == total(whole[at]) > 0
        assert sum(found.table["buffers"].to_pylist()) == len(whole[at])
        assert sum(found.table["share"].to_pylist()) == pytest.approx(1)
        assert found.table.column_names[3] == OWNERS[by]
        assert limit is None or len(found) <= limit + 1


def test_beyond_the_limit_the_rest_is_one_row(opened):
    whole = listed(opened.owners(LLAMA))
    sizes = [row["counted_bytes"] for row in whole]
    assert sizes == sorted(sizes, reverse=True)
    shown = listed(opened.owners(LLAMA, limit=5))
    assert shown[:5] == whole[:5]
    rest = shown[5]
    assert rest["source"].split()[0] == str(len(whole) - 5)
    assert rest["counted_bytes"] == sum(sizes[5:])
    assert rest["buffers"] == sum(row["buffers"] for row in whole[5:])
    assert ("called_by" in rest, rest["is_guess"]) == (False, False)
    categories = {name for row in whole[5:] for name in row["categories"].split(", ")}
    assert rest["categories"] == ", ".join(sorted(categories))
    assert listed(opened.owners(LLAMA, limit=len(whole))) == whole
    assert listed(opened.owners(LLAMA, limit=len(whole) - 1)) == whole
    whole = listed(opened.buffers(LLAMA))
    shown = listed(opened.buffers(LLAMA, limit=4))
    assert [row["value"] for row in shown[:4]] == [row["value"] for row in whole[:4]]
    assert shown[4]["op_name"].split()[0] == str(len(whole) - 4)
    for column in ("counted_bytes", "padding_bytes"):
        assert sum(row[column] for row in shown) == sum(row[column] for row in whole)


def test_the_views_say_the_same(opened, filled):
    for by in ("role", "op", "dtype", "category", "pass"):
        shown = {
            row[OWNERS[by]]: row["counted_bytes"] for row in listed(opened.owners(LLAMA, by=by))
        }
        query = f"""SELECT owner, SUM(counted_bytes)::BIGINT FROM owners
            WHERE workload = 'llama-v5e' AND kind = '{by}' GROUP BY 1"""
        assert shown == dict(rows(filled, query))


# --- callers ------------------------------------------------------------------------------


def test_callers_tell_the_uses_of_a_line_apart(opened):
    plain = listed(opened.owners(LLAMA))
    found = listed(opened.owners(LLAMA, callers=2))
    of_line = [row for row in found if row["source"].endswith("zoo.py:35")]
    assert len(of_line) == 2
    assert of_line[1]["called_by"] == "loss at zoo.py:40, train_step at zoo.py:46"
    (whole,) = [row for row in plain if row["source"].endswith("zoo.py:35")]
    assert whole["counted_bytes"] == sum(row["counted_bytes"] for row in of_line)
    assert "called_by" not in whole
    # A stack ends at its root.
    found = opened.owners(LLAMA, callers=100)
    stacks = [row["called_by"] for row in listed(found) if row["called_by"]]
    assert stacks
    assert all(stack.split(" at ")[-2].endswith("<module>") for stack in stacks)
    assert total(found) == sum(row["counted_bytes"] for row in plain)
    first = listed(opened.buffers(LLAMA, callers=1, limit=1))[0]
    assert (first["source"], first["called_by"]) == ("zoo.py:43", "train_step at zoo.py:46")
    # The rest is of no caller.
    assert listed(opened.owners(LLAMA, callers=2, limit=1))[1]["called_by"] is None


# --- roles of one's own -------------------------------------------------------------------


def test_roles_of_your_own_come_first(opened, tmp_path):
    roles = {"kv cache": ["cache*"], "queries": "p['layers'][*]['q']", "never": "cache[0]*"}
    found = listed(opened.owners("decode-h100", roles=roles))
    shown = {row["role"]: (row["buffers"], row["counted_bytes"]) for row in found}
    assert shown["kv cache"] == (4, 64 << 20)
    assert shown["queries"] == (2, 2 << 20)
    assert "never" not in shown
    assert shown["weight"][1] == (35 << 20) + 8192 - (2 << 20) - 4096
    file = tmp_path / "roles.toml"
    file.write_text('[roles]\nattention = "btd,dhk*"\n"100%_" = ["100%_"]\n')
    found = {row["role"]: row["counted_bytes"] for row in listed(opened.owners(LLAMA, roles=file))}
    scopes = listed(opened.owners(LLAMA, by="scope"))
    of_scopes = [row["counted_bytes"] for row in scopes if row["scope"].startswith("btd,dhk")]
    assert found["attention"] == sum(of_scopes) >= 3 * 8 << 20


def test_a_wrong_file_of_roles_is_told_in_a_line(opened, tmp_path):
    file = tmp_path / "roles.toml"
    for content, fact in (
        (b"", "[roles]"),
        (b"roles = 1", "[roles]"),
        (b"[roles]", "[roles]"),
        (b"[roles]\na = 1", "'a'"),
        (b"[roles]\na = []", "'a'"),
        (b"[roles]\na = [1]", "'a': 1"),
        (b'[roles]\na = ""', "'a': ''"),
        (b"[role]\na = 'x'", "'role'"),
        (b"[roles", ""),
        (b"\xff\xfe", ""),
        (None, ""),
    ):
        file.unlink(missing_ok=True) if content is None else file.write_bytes(content)
        with pytest.raises(UsageError) as error:
            opened.owners(LLAMA, roles=file)
        told = str(error.value)
        assert (told.startswith(f"{file}: "), "\n" in told, fact in told) == (True, False, True)
        assert error.value.argument == "roles"


@pytest.mark.parametrize(
    ("arguments", "argument", "fact"),
    [
        ({"by": "line"}, "by", "'line'"),
        ({"by": "op", "callers": 1}, "callers", "by='source'"),
        ({"by": "op", "roles": {"a": "b"}}, "roles", "by='role'"),
        ({"roles": {}}, "roles", "a table"),
    ],
)
def test_what_does_not_fit_together(opened, arguments, argument, fact):
    with pytest.raises(UsageError, match=fact) as error:
        opened.owners(LLAMA, **arguments)
    assert error.value.argument == argument


# --- guesses ------------------------------------------------------------------------------


def test_guesses_have_a_mark_and_one_line_that_explains_it(copied):
    with memhouse.open(copied) as warehouse:
        warehouse.store.execute(
            "UPDATE \"values\" SET origin_rule = 'operand' WHERE (module_id, value_id) IN ("
            "SELECT (module_id, value_id) FROM peak_buffers_by_space AS peak_buffers "
            "WHERE workload = 'llama-v5e' AND memory_space = 0 AND rank = 1)"
        )
        found = warehouse.owners(LLAMA)
        guessed = [row for row in listed(found) if row["is_guess"]]
        assert [row["counted_bytes"] for row in guessed] == [64 << 20]
        # What tells sizes or categories is no guess.
        for by in ("dtype", "category"):
            assert not any(row["is_guess"] for row in listed(warehouse.owners(LLAMA, by=by)))
        html = found._repr_html_()
        assert "zoo.py:43?<" in html
        assert html.count("? is a guess") == 1
        assert "is_guess" not in html
        sums = warehouse.sql(
            "SELECT SUM(counted_bytes) AS guessed FROM owners "
            "WHERE workload = 'llama-v5e' AND kind = 'source' AND is_guess"
        )
        assert sums.table.to_pydict() == {"guessed": [64 << 20]}


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
    counted = "SELECT COUNT(*) FROM peak_buffers_by_space WHERE counted_bytes > 0"
    assert rows(copied, counted)[0][0] > 500
    no_scope = "SELECT COUNT(*) FROM owners WHERE kind = 'scope' AND owner = '(no scope)'"
    assert rows(copied, no_scope)[0][0] > 10
    assert rows(copied, "SELECT COUNT(*), COUNT(idle_time) FROM long_lived")[0][1] == 0


def test_the_stacks_of_a_flame_graph_add_up_to_the_peak(filled):
    """A line of text is frames apart by `;`, a blank, and bytes; speedscope's own is JSON."""
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.sql(
            "SELECT module_id, ANY_VALUE(peak_bytes) AS peak_bytes,"
            " CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes"
            " FROM peak_buffers_by_space AS peak_buffers INNER JOIN modules USING (module_id)"
            " INNER JOIN module_memory USING (module_id, memory_space)"
            " WHERE memory_space = 0 GROUP BY module_id"
        )
        assert len(found) > 20
        with_stacks = 0
        for number, row in enumerate(listed(found)):
            by = WAYS[number % 3 == 2]
            stacks = peak_stacks(peak_rows(warehouse.store, row["module_id"], 0), by)
            parsed = [re.fullmatch(r"(.+) (\d+)", line) for line in collapsed(stacks)]
            assert sum(int(match[2]) for match in parsed) == row["counted_bytes"]
            file = speedscope(stacks, "a module")
            (profile,) = file["profiles"]
            frames = file["shared"]["frames"]
            assert sum(profile["weights"]) == profile["endValue"] == row["counted_bytes"]
            assert len(profile["samples"]) == len(profile["weights"])
            assert {at for stack in profile["samples"] for at in stack} == set(range(len(frames)))
            with_stacks += any(frame.get("file", "").endswith(".py") for frame in frames)
        assert with_stacks > 5


def test_the_examples_of_stacks_hold():
    assert doctest.testmod(stacks_module) == (0, 3)


def test_a_flame_graph_is_of_the_peak(filled):
    done = run_memhouse("owners", LLAMA, "-f", "collapsed", "--schedule-time", "3", "--db", filled)
    assert (done.returncode, done.stdout) == (2, "")
    assert "shows stacks at the peak" in done.stderr
