"""The facts from which causes are told, against what the views say of the same modules."""

from ...support.dumps import copy_dump
from ...support.warehouse import fill, rows

TRAITS = "FROM internal.traits INNER JOIN dumps USING (module_id)"


def amounts(db, trait: str, workload: str, run: str) -> dict[str, int]:
    where = f"WHERE trait = '{trait}' AND workload = '{workload}' AND run_id = '{run}'"
    return dict(rows(db, f"SELECT name, amount {TRAITS} {where}"))


def test_the_parts_of_the_peak_are_those_of_the_view(history):
    """By category, role, pass, shape and line; numbers in owners are folded, small parts summed."""
    query = """
        SELECT module_id, category, COALESCE(role, ''), COALESCE(pass, ''), split(shape, '{')[1],
            split(source_file, '/')[-1] || ':' || source_line, COUNT(*), SUM(counted_bytes)
        FROM internal.peak_buffers WHERE memory_space = 0 AND shape NOT LIKE '(%' GROUP BY ALL"""
    expected = {tuple(key): amounts for *key, _, amounts in rows(history, query)}
    found = rows(
        history,
        """SELECT module_id, category, COALESCE(role, ''), COALESCE(pass, ''), shape, source,
            SUM(counted_bytes) FROM internal.peak_parts WHERE shape IS NOT NULL GROUP BY ALL""",
    )
    assert len(found) > 300
    assert {key: amount for *parts, amount in found if (key := tuple(parts))} == {
        key: expected[key] for *parts, _ in found if (key := tuple(parts))
    }


def test_the_parts_add_up_to_the_peak(history, filled):
    query = """SELECT module_id, peak_bytes, SUM(counted_bytes) FROM module_memory
        LEFT JOIN internal.peak_parts USING (module_id)
        WHERE memory_space = 0 AND peak_bytes > 0 GROUP BY ALL"""
    for db in (history, filled):
        found = rows(db, query)
        assert len(found) > 10
        assert [row for row in found if row[1] != row[2]] == []


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
