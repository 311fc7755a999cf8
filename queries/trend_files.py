"""Trends as CSV files in a folder, which get the rows that they lack night after night.

A metric has a long file, `peak.csv`, and a wide one made from it, `peak_wide.csv`: a row a run and
a column a program, which keeps its name and place. `programs.csv` lists the columns' programs.
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

_RUN = ["date", "run", "branch"]
_LONG = [*_RUN, "workload", "module", "space", "value", "unit", "change", "cause"]
_PROGRAMS = ["column", "workload", "module", "platform", "series"]
_Line = dict[str, str]
_Program = tuple[str, str, str]


def append_rows(folder: Path, rows: Iterable[Mapping[str, Any]], *, wide: bool) -> int:
    """Add rows to the files of their metrics, and make the files that are missing.

    A line of a file stays as it is, unless it has no value and the row has one.

    Args:
        rows: of the statement `export`, ordered by metric.
    Returns:
        The number of rows that were added, or gave a line its value.
    Raises:
        FileError: a file has other columns, and then none is changed, or cannot be written.
    """
    files: dict[Path, tuple[list[str], list[_Line]]] = {}
    programs_file = folder / "programs.csv"
    known_programs = _lines(programs_file, _PROGRAMS) if wide else []
    programs = {line["column"]: line for line in known_programs}
    count = 0
    for metric, metric_rows in groupby(rows, key=lambda row: str(row["metric"])):
        name = metric.removesuffix("_bytes")
        file, wide_file = folder / f"{name}.csv", folder / f"{name}_wide.csv"
        lines = {_key(line): line for line in _lines(file, _LONG)}
        newest: dict[_Program, Mapping[str, Any]] = {}
        for row in metric_rows:
            line = _line(row)
            newest[_program(line)] = row
            before = lines.get(_key(line))
            if before is None or (line["value"] and not before["value"]):
                lines[_key(line)] = line
                count += 1
        files[file] = _LONG, list(lines.values())
        if wide:
            columns = _columns(lines.values())
            header = _wide_header(wide_file, [*_RUN, *columns.values()])
            files[wide_file] = header, _by_run(lines.values(), columns)
            for program, row in newest.items():
                column = columns[program]
                identity = row["workload"], row["module_name"], row["platform"], row["series_id"]
                programs[column] = _texts(_PROGRAMS, column, *identity)
    if wide and files:
        files[programs_file] = _PROGRAMS, list(programs.values())
    _write(folder, files)
    return count


def _line(row: Mapping[str, Any]) -> _Line:
    number = "" if row["number"] == 1 else f" {row['number']}"
    cause = cause_of(row["cause"], row["metric"], row["memory_space"])
    return _texts(
        _LONG,
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


def _texts(names: list[str], *values: object) -> _Line:
    texts = ("" if value is None else str(value) for value in values)
    return dict(zip(names, texts, strict=True))


def _program(line: _Line) -> _Program:
    return line["workload"], line["module"], line["space"]


def _key(line: _Line) -> tuple[str, ...]:
    return line["run"], line["branch"], *_program(line)


def _columns(lines: Iterable[_Line]) -> dict[_Program, str]:
    """The name of each program's column, in order of the programs' first lines."""
    names: dict[_Program, str] = {}
    for workload, module, space in map(_program, lines):
        name = f"{workload}/{module}"
        if (workload, module, space) not in names:
            taken = name in names.values()
            names[workload, module, space] = f"{name} {space}" if taken else name
    return names


def _by_run(lines: Iterable[_Line], columns: Mapping[_Program, str]) -> list[_Line]:
    """A line a run, in order of the runs' first lines."""
    runs: dict[tuple[str, str], _Line] = {}
    for line in lines:
        run = runs.setdefault((line["run"], line["branch"]), {name: line[name] for name in _RUN})
        run[columns[_program(line)]] = line["value"]
    return list(runs.values())


def _wide_header(file: Path, columns: list[str]) -> list[str]:
    """The columns in the order of the file, then those that it lacks. Raises FileError."""
    header = next(iter(_read(file)), _RUN)
    if header[: len(_RUN)] != _RUN or not {*header} <= {*columns}:
        raise _other_columns(file)
    return list(dict.fromkeys([*header, *columns]))


def _lines(file: Path, header: list[str]) -> list[_Line]:
    """The lines of a file; none if there is no such file. Raises FileError."""
    cells = _read(file)
    if cells and (cells[0] != header or {*map(len, cells)} != {len(header)}):
        raise _other_columns(file)
    return [dict(zip(header, line, strict=True)) for line in cells[1:]]


def _read(file: Path) -> list[list[str]]:
    try:
        # Excel begins UTF-8 with a mark.
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


def _write(folder: Path, files: Mapping[Path, tuple[list[str], list[_Line]]]) -> None:
    """Write the files that change. Raises FileError."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(with_remedy(f"cannot make {folder}: {error.strerror}")) from error
    for file, (header, lines) in files.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, header, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        content = text.getvalue().encode()
        if not (file.is_file() and file.read_bytes() == content):
            with whole_file(file) as partial:
                partial.write_bytes(content)
