"""The facts from which causes are told, against what the views say of the same modules."""

from ...support.dumps import copy_dump
from ...support.warehouse import fill, rows

TRAITS = "FROM traits INNER JOIN dumps USING (module_id)"


def amounts(db, trait: str, workload: str, run: str) -> dict[str, int]:
    where = f"WHERE trait = '{trait}' AND workload = '{workload}' AND run_id = '{run}'"
    return dict(rows(db, f"SELECT name, amount {TRAITS} {where}"))


def test_what_is_saved_is_the_sum_of_the_residuals(history):
    """By line, and in total. A residual with a copy in another memory space counts once."""
    query = """
        SELECT workload, run_id, made.line, SUM(made.size) FROM (
            SELECT module_id, line, made_instruction_id, MAX(size) AS size FROM (
                SELECT
                    residuals.module_id, made_instruction_id, memory_space,
                    split(source_file, '/')[-1] || ':' || source_line AS line,
                    SUM(size_bytes) AS size
                FROM residuals
                INNER JOIN "values" USING (module_id, value_id)
                INNER JOIN instructions AS made
                    ON made.module_id = residuals.module_id
                        AND made.instruction_id = made_instruction_id
                GROUP BY ALL
            ) GROUP BY ALL
        ) AS made INNER JOIN dumps USING (module_id) GROUP BY ALL
    """
    expected = {tuple(key): amount for *key, amount in rows(history, query)}
    found = rows(history, f"SELECT workload, run_id, name, amount {TRAITS} WHERE trait = 'saved'")
    assert len(found) > 100
    totals = {(workload, run): amount for workload, run, line, amount in found if not line}
    for *module, line, amount in found:
        of_module = [size for key, size in expected.items() if list(key[:2]) == module]
        assert amount == (expected[*module, line] if line else sum(of_module))
    # Lines of less than 0.2 % are left out.
    kept = {tuple(key) for *key, _ in found}
    for key, amount in expected.items():
        assert (key in kept) == (amount >= 0.002 * totals[key[:2]])


def test_lines_at_the_peak_are_those_of_the_view(history):
    query = (
        "SELECT dumps.workload, dumps.run_id, split(source_file, '/')[-1] || ':' || source_line, "
        "SUM(counted_bytes) FROM peak_buffers INNER JOIN dumps USING (module_id) "
        "WHERE memory_space = 0 AND COALESCE(pass, '') <> 'argument' AND source_line IS NOT NULL "
        "AND category IN ('temp', 'output') GROUP BY ALL"
    )
    expected = {tuple(key): amount for *key, amount in rows(history, query)}
    found = rows(history, f"SELECT workload, run_id, name, amount {TRAITS} WHERE trait = 'peak'")
    named = [row for row in found if ":" in row[2]]
    assert len(named) > 100
    for *key, amount in named:
        assert expected[tuple(key)] == amount


def test_what_is_recomputed_follows_the_policy(history):
    """Everything, everything but products, nothing."""
    for run, recomputed, products in (
        ("2026-10-01", True, 19),
        ("2026-10-03", True, 4),
        ("2026-10-10", False, None),
    ):
        found = amounts(history, "recomputed", "llama-v5e", run)
        assert bool(found) == recomputed
        assert found.get("dot_general") == products


def test_an_unchanged_program_has_the_same_traits(history):
    """Lost donation changes instructions; what is recomputed, and in which types, stays."""
    same = ("2026-10-07", "2026-10-09")
    changed = ("2026-10-07", "2026-10-08")
    for trait in ("program_shapes", "program_layouts", "program_order", "collectives"):
        a, b = (amounts(history, trait, "llama-v5e", run) for run in same)
        assert a == b != {}
    a, b = (amounts(history, "program_shapes", "llama-v5e", run) for run in changed)
    assert a != b


def test_lines_and_names_do_not_change_the_hashes(tmp_path, db):
    """What drifts from one compilation to the next is not part of the program."""
    for run in ("a", "b"):
        folder = copy_dump("gpu/decode-h100/module*", tmp_path / run / "decode")
        if run == "b":
            for file in folder.glob("*.txt"):
                file.write_text(file.read_text().replace("fusion.", "fusion.1"))
    fill(db, tmp_path / "a", tmp_path / "b")
    assert rows(db, "SELECT COUNT(DISTINCT module_id) FROM dumps") == [(2,)]
    for trait in ("program_shapes", "program_layouts", "program_order"):
        assert amounts(db, trait, "decode", "a") == amounts(db, trait, "decode", "b") != {}


def test_a_module_has_few_traits_each_once(filled):
    counts = rows(
        filled, "SELECT COUNT(*), COUNT(DISTINCT (trait, name)) FROM traits GROUP BY module_id"
    )
    assert max(count for count, _ in counts) < 200
    assert all(count == distinct for count, distinct in counts)
