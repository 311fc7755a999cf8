"""Trends as CSV files in a folder: each night the rows are added that they lack.

A metric has a long file, `peak.csv`. A wide one beside it, `peak_wide.csv`, is made of the long
one's rows: a row a run and a column a program, which keeps its name and place. `programs.csv` says
which program a column is. A row that is in a file stays, unless it has no value and now gets one.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from ..schema.errors import FileError, with_remedy
from ..schema.private_folder import whole_file
from .result import cause_of
from .series import happened

_LONG = [
    *("date", "run", "branch", "workload", "module"),
    *("space", "value", "unit", "change", "cause"),
]
_PROGRAMS = ["column", "workload", "module", "platform", "series"]
_OF_RUN = _LONG[:3]
_Line = dict[str, str]


def append_rows(folder: Path, rows: Iterable[Mapping[str, Any]], *, wide: bool) -> int:
    """Add rows to the files of their metrics, which are made where they are missing.

    Args:
        rows: of the statement `export`, in the order of the metrics, and of the files to be.
    Returns:
        How many rows were added, or got the value that they lacked.
    Raises:
        FileError for a file that has other columns, and then none is changed; and for one that
        cannot be written.
    """
    written: dict[Path, tuple[list[str], list[_Line]]] = {}
    programs_file = folder / "programs.csv"
    known_programs = _lines(programs_file, _PROGRAMS) if wide else []
    programs = {line["column"]: line for line in known_programs}
    count = 0
    for metric, of_metric in groupby(rows, key=lambda row: str(row["metric"])):
        name = metric.removesuffix("_bytes")
        file, wide_file = folder / f"{name}.csv", folder / f"{name}_wide.csv"
        lines = {_key(line): line for line in _lines(file, _LONG)}
        platforms = {}
        for row in of_metric:
            line = _line(row)
            platforms[_program(line)] = row
            known = lines.get(_key(line))
            if known is None or (line["value"] and not known["value"]):
                lines[_key(line)] = line
                count += 1
        written[file] = _LONG, list(lines.values())
        if wide:
            columns = _columns(lines.values())
            header = list(dict.fromkeys([*_header(wide_file), *columns.values()]))
            written[wide_file] = header, _by_run(lines.values(), columns)
            for program, row in platforms.items():
                column = columns[program]
                texts = row["workload"], row["module_name"], row["platform"], row["series_id"]
                programs[column] = dict(zip(_PROGRAMS, map(_text, (column, *texts)), strict=True))
    if wide and written:
        written[programs_file] = _PROGRAMS, list(programs.values())
    if written:
        _write(folder, written)
    return count


def _line(row: Mapping[str, Any]) -> _Line:
    number = "" if row["number"] == 1 else f" {row['number']}"
    # The stored cause is of the main memory's peak.
    cause = cause_of(row["cause"], row["metric"], row["memory_space"])
    values = (
        row["run_at"].strftime("%Y-%m-%d %H:%M:%S"),
        row["run_id"],
        row["branch"],
        row["workload"],
        row["module_name"] + number,
        row["space"],
        row["value"],
        row["unit"],
        row["change"],
        happened(row) if cause is None else cause,
    )
    return dict(zip(_LONG, map(_text, values), strict=True))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _program(line: _Line) -> tuple[str, ...]:
    return line["workload"], line["module"], line["space"]


def _key(line: _Line) -> tuple[str, ...]:
    return line["run"], line["branch"], *_program(line)


def _columns(lines: Iterable[_Line]) -> dict[tuple[str, ...], str]:
    """The name of each program's column, in the order in which the programs came."""
    names: dict[tuple[str, ...], str] = {}
    for program in dict.fromkeys(map(_program, lines)):
        workload, module, space = program
        name = f"{workload}/{module}"
        names[program] = f"{name} {space}" if name in names.values() else name
    return names


def _by_run(lines: Iterable[_Line], columns: Mapping[tuple[str, ...], str]) -> list[_Line]:
    """A line a run, in the order in which the runs came."""
    runs: dict[tuple[str, str], _Line] = {}
    for line in lines:
        of_run = {name: line[name] for name in _OF_RUN}
        run = runs.setdefault((line["run"], line["branch"]), of_run)
        run[columns[_program(line)]] = line["value"]
    return list(runs.values())


def _header(file: Path) -> list[str]:
    """The columns of a wide file, or those that it begins with. Raises FileError."""
    header = next(iter(_read(file)), _OF_RUN)
    if header[: len(_OF_RUN)] != _OF_RUN:
        raise _other_columns(file)
    return header


def _lines(file: Path, header: list[str]) -> list[_Line]:
    """The lines of a file; none if there is no such file. Raises FileError."""
    found = _read(file)
    if found and (found[0] != header or {*map(len, found)} != {len(header)}):
        raise _other_columns(file)
    return [dict(zip(header, line, strict=True)) for line in found[1:]]


def _read(file: Path) -> list[list[str]]:
    try:
        # A spreadsheet may have put a mark before the first column.
        with file.open(newline="", encoding="utf-8-sig") as text:
            return [line for line in csv.reader(text) if line]
    except FileNotFoundError:
        return []
    except (UnicodeDecodeError, csv.Error):
        raise _other_columns(file) from None
    except OSError as error:
        raise FileError(with_remedy(f"cannot read {file}: {error.strerror}")) from error


def _other_columns(file: Path) -> FileError:
    return FileError(f"{file} has other columns: move it away, or name another folder")


def _write(folder: Path, written: Mapping[Path, tuple[list[str], list[_Line]]]) -> None:
    """Write the files whose text is another one now. Raises FileError."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(with_remedy(f"cannot make {folder}: {error.strerror}")) from error
    for file, (header, lines) in written.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, header, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        content = text.getvalue().encode()
        if not (file.is_file() and file.read_bytes() == content):
            with whole_file(file) as partial:
                partial.write_bytes(content)
