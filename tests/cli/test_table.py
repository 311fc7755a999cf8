"""Tables for people: fitted to the terminal, whole in a pipe; numbers and sizes as they read."""

import io
import os
import re
import sys
from datetime import datetime
from unittest.mock import patch

import pyarrow as pa
import pytest
from rich.cells import cell_len

import memhouse.cli
from memhouse.queries.result import Column, fitted_lines, human, text_columns
from memhouse.schema.readable import human_bytes

from ..support.command import run_memhouse
from ..support.console import on_terminal as on_real_terminal
from ..support.dumps import copy_dump
from ..support.warehouse import fill, rows

STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(*args: object, columns: int = 80) -> tuple[str, str]:
    """The command on a terminal of so many columns: what it shows, what it says on stderr."""
    shown, said = Terminal(), io.StringIO()
    environment = {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    arguments = ["memhouse", *map(str, args)]
    with (
        patch.dict(os.environ, environment),
        patch.multiple(sys, argv=arguments, stdout=shown, stderr=said),
    ):
        assert memhouse.cli.run() in (0, 1)
    return shown.getvalue(), said.getvalue()


def plain(text: str) -> str:
    return STYLE.sub("", text)


# --- sizes and other values -----------------------------------------------------------------


def test_a_size_has_a_unit():
    sizes = {
        0: "0 B",
        1: "1 B",
        1023: "1023 B",
        1024: "1.00 KiB",
        1536: "1.50 KiB",
        321896448: "306.98 MiB",
        80 * 2**30: "80.00 GiB",
        3 * 2**40: "3.00 TiB",
        5 * 2**50: "5.00 PiB",
        2**63 - 1: "8192.00 PiB",
        -138307584: "-131.90 MiB",
    }
    assert {size: human_bytes(size) for size in sizes} == sizes


def test_a_value_reads_as_its_column_says():
    values = [
        ("peak_bytes", 1536, "1.50 KiB"),
        ("peak_bytes", None, ""),
        ("change_bytes", 1536, "+1.50 KiB"),
        ("change_bytes", -1536, "-1.50 KiB"),
        ("change_bytes", 0, "0 B"),
        ("change_ratio", 0.12345, "+12.3 %"),
        ("change_ratio", -0.0001, "-0.0 %"),
        ("share", 0.2085, "20.8%"),
        ("wasted", 1.0, "100.0%"),
        ("mean", 1234.56789, "1234.57"),
        ("mean", 123456789.25, "123456789"),
        ("mean", 1.5e-7, "1.5e-07"),
        ("times_logical", 10.66666, "10.67"),
        ("oom", True, "yes"),
        ("oom", False, ""),
        ("run_at", datetime(2026, 10, 1, 3, 4, 5), "2026-10-01 03:04"),
        ("dumps", 1234567, "1234567"),
        ("workload", "größe/模型", "größe/模型"),
        ("workload", "a\x1b[31mb\tc\nd\x07", "a�[31mb�c�d�"),
        ("workload", "a\u202eb\u200bc", "a�b�c"),
    ]
    assert [(column, value, human(column, value)) for column, value, _ in values] == values


# --- on a terminal --------------------------------------------------------------------------


def test_no_line_is_longer_than_the_terminal(filled, tmp_path):
    asked = [["modules"], ["runs"], ["trends"], ["buffers", "llama-v5e"], ["tables"]]
    for command in asked:
        shown, _ = on_terminal(*command, "--db", filled)
        lines = plain(shown).splitlines()
        assert len(lines) > 4
        assert [line for line in lines if len(line) > 80] == []
    for columns in (40, 120):
        shown, _ = on_terminal("peaks", "--db", filled, columns=columns)
        assert max(map(len, plain(shown).splitlines())) <= columns
    # On a real terminal, which tells its width.
    real = on_real_terminal(f"memhouse peaks --db {filled} 2> said", tmp_path, 40)
    narrow, _ = on_terminal("peaks", "--db", filled, columns=40)
    assert plain(real).replace("\r\n", "\n") == plain(narrow)


def test_what_a_row_is_about_is_the_last_to_go():
    rows = pa.table(
        {
            "counted_bytes": [408 << 20],
            "share": [0.322],
            "buffers": [34],
            "source": ["/train/train.py:19"],
            "via": ["flax/linen/attention.py:146"],
        }
    )
    for width, left_out in (
        (60, []),
        (40, ["buffers", "via"]),
        (20, ["counted_bytes", "share", "buffers", "via"]),
    ):
        columns = [Column(field, cells) for field, cells in text_columns(rows)]
        lines, dropped = fitted_lines(columns, width)
        assert dropped == left_out
        assert "train.py:19" in lines[1]
        assert max(map(len, lines)) <= width


def test_numbers_are_whole(filled):
    shown, _ = on_terminal("peaks", "--all", "--db", filled, columns=100)
    lines = plain(shown).splitlines()
    found = rows(
        filled,
        "SELECT peak_bytes, total_bytes, headroom_bytes FROM peaks_by_space AS peaks "
        "ORDER BY memory_space, peak_bytes DESC NULLS LAST, run_at, workload, module_name",
    )
    assert len(lines) == len(found) + 1
    for line, sizes in zip(lines[1:], found, strict=True):
        for size in sizes:
            assert size is None or human_bytes(size) in line


def test_what_has_no_room_is_said(filled):
    _, said = on_terminal("peaks", "--db", filled)
    names = ("padding_bytes", "peak_instruction", "memory_space", "fragmentation_bytes")
    for left_out in (*names, "--format csv"):
        assert left_out in " ".join(plain(said).split())
    _, said = on_terminal("peaks", "--db", filled, columns=200)
    assert "--format csv" not in plain(said)


def test_check_is_a_table_and_doctor_names_no_option_that_it_lacks(history, tmp_path):
    shown, _ = on_terminal("check", "--db", history, "--all")
    assert "###" not in shown
    assert "before_bytes" in plain(shown)
    assert "### memhouse" in run_memhouse("check", "--db", history, "--all").stdout
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt").write_text("x")
    _, said = on_terminal("doctor", tmp_path, columns=30)
    assert "(| cat shows all)" in " ".join(plain(said).split())


def test_a_shape_is_whole_and_what_has_no_room_is_a_flag_away(filled):
    shown, said = on_terminal("buffers", "llama-v5e", "--db", filled)
    found = rows(
        filled,
        "SELECT REGEXP_REPLACE(shape, '\\{.*', '') FROM peak_buffers_by_space AS peak_buffers "
        "WHERE workload = 'llama-v5e' AND memory_space = 0 AND rank <= 20 ORDER BY rank",
    )
    lines = plain(shown).splitlines()
    for line, (shape,) in zip(lines[1:], found, strict=False):
        assert f" {shape} " in line
    assert "--wide" in plain(said).splitlines()[-1]
    shown, said = on_terminal("buffers", "llama-v5e", "--db", filled, "--wide")
    assert "bf16[8,1024,4096]" in plain(shown)
    assert "{2,1,0:T(8,128)(2,1)}" in plain(shown)
    assert "all-gather.19" in plain(shown)
    assert "…" not in plain(shown)
    assert "--wide" not in plain(said)


def test_prose_wraps(filled):
    text, _ = on_terminal("tables", "allocations", "--db", filled)
    assert "…" not in plain(text)
    assert max(map(len, plain(text).splitlines())) <= 80
    whole = run_memhouse("tables", "allocations", "--db", filled).stdout
    assert max(map(len, whole.splitlines())) > 80


def test_wide_characters_count_for_two_columns(db, tmp_path):
    copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "夜" / ("模型训练" * 5))
    fill(db, tmp_path / "夜")
    shown, _ = on_terminal("peaks", "--db", db)
    lines = plain(shown).splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    assert len(lines) == 2


# --- in a pipe ------------------------------------------------------------------------------


def test_in_a_pipe_nothing_is_cut(filled):
    for env in ({}, {"COLUMNS": "20"}):
        done = run_memhouse("buffers", "llama-v5e", "--db", filled, "-n", "500", env=env)
        assert "…" not in done.stdout
        lines = done.stdout.splitlines()
        assert len(lines) > 100
        scope = "jit(train_step)/transpose(jvp())/while/body/closed_call/checkpoint/dot_general"
        assert scope in lines[2]
        assert "--wide" not in done.stderr
    done = run_memhouse("timeline", "llama-v5e", "--db", filled)
    assert done.stdout.split()[:4] == ["start_time", "end_time", "occupied_bytes", "live_bytes"]


def test_in_a_pipe_wide_characters_are_whole_and_columns_line_up(filled):
    name = "模型训练" * 30
    query = f"SELECT '{name}' AS workload, 7 AS n UNION ALL SELECT 'short', 12345 ORDER BY n"
    done = run_memhouse("sql", query, "--db", filled)
    heading, wide, short = done.stdout.splitlines()
    assert name in wide
    assert "…" not in done.stdout
    assert cell_len(heading) == cell_len(wide) == cell_len(short)


def test_a_cut_text_fits_its_cells():
    for column, text, shown in (
        ("workload", "模型" * 10, "模型模型…"),
        ("op_name", "模型" * 10, "…模型模型"),
        ("workload", "a" + "模型" * 10, "a模型模型…"),
        ("workload", "abcdefghijklm", "abcdefghi…"),
        ("op_name", "abcdefghijklm", "…efghijklm"),
        ("workload", "模型模型模", "模型模型模"),
    ):
        table_column = Column(pa.field(column, pa.string()), [text])
        table_column.width = 10
        assert table_column.lines(text) == [shown]
        assert cell_len(shown) <= 10


# --- control characters ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A warehouse whose run, workload and module have control characters in their names."""
    folder = tmp_path_factory.mktemp("hostile")
    for run, pattern in (
        ("one\x1b[2J", "cpu/jax-0.4.35/module_0019*"),
        ("two\x1b[2J", "cpu/jax-0.10.2/module_0018*"),
    ):
        workload = copy_dump(pattern, folder / run / "work\x1b[31m\x07load")
        for file in workload.iterdir():
            _, rest = file.name.split(".jit_mixed.")
            file.rename(workload / f"module_0001.jit_\x1b]0;title\x07.{rest}")
        fill(folder / "hostile.duckdb", folder / run)
    return folder / "hostile.duckdb"


def test_control_characters_do_not_reach_the_terminal(hostile):
    for command in (
        ["runs"],
        ["peaks"],
        ["buffers", "jit_"],
        ["trends"],
        ["diff", "one\x1b[2J", "two\x1b[2J"],
        ["check"],
        ["modules", "--format", "markdown"],
    ):
        shown, said = on_terminal(*command, "--db", hostile)
        assert len(plain(shown)) > 40, command
        for text in (plain(shown), plain(said)):
            assert not [c for c in text if not c.isprintable() and c != "\n"], command


def test_control_characters_of_a_damaged_file_do_not_reach_the_terminal(tmp_path, db):
    folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night" / "\x1b[2Jred")
    (text,) = folder.glob("*after_optimizations.txt")
    text.write_text("HloModule m\n\x1b]0;title\x07\n")
    shown, said = on_terminal("ingest", tmp_path / "night", "--db", db)
    assert "after_optimizations.txt:2: " in plain(said)
    for output in (plain(shown), plain(said)):
        assert not [c for c in output if not c.isprintable() and c != "\n"]


def test_csv_and_json_keep_names_as_they_are(hostile):
    found = rows(hostile, "SELECT DISTINCT workload FROM dumps")
    assert found == [("work\x1b[31m\x07load",)]
    assert (
        "work\x1b[31m\x07load" in run_memhouse("peaks", "--db", hostile, "--format", "csv").stdout
    )
    assert (
        r"work\u001b[31m\u0007load" in run_memhouse("peaks", "--db", hostile, "-f", "json").stdout
    )
