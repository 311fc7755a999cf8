"""Queries of the warehouse on Spark: with their parameters, and beside DuckDB's answers."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from memhouse.queries.spark_sql import spark_text

from .spark import frame


def show(spark: Any, name: str, table: pa.Table, folder: Path) -> None:
    """Rows as a view of the session."""
    frame(spark, name, table, folder).createOrReplaceTempView(name)


def with_parameters(query: str, parameters: Sequence[object]) -> str:
    """A query in Spark's SQL, with its parameters in their places."""
    tree = sqlglot.parse_one(query, read="duckdb")
    unnumbered = iter(range(len(parameters)))
    for mark in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        number = int(mark.name) - 1 if mark.name.isdigit() else next(unnumbered)
        mark.replace(_literal(parameters[number]))
    for limit in list(tree.find_all(exp.Limit)):
        # Spark's LIMIT takes no null.
        if isinstance(limit.expression, exp.Null) and limit.parent is not None:
            limit.parent.set("limit", None)
    return spark_text(tree)


def _literal(value: object) -> exp.Expr:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**31:
        return exp.cast(exp.convert(value), "BIGINT")
    if isinstance(value, list | tuple):
        return exp.Array(expressions=[_literal(item) for item in value])
    return exp.convert(value)


def plain(value: Any) -> Any:
    """A value that both engines give alike: times in UTC, rows as mappings, JSON as values.

    Spark leaves nulls out of JSON, and writes times otherwise.
    """
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, str) and value[:2] == '{"':
        return _without_nulls(json.loads(value))
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if each is not None}
        return {name: _without_nulls(each) for name, each in kept.items()}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    if isinstance(value, str) and value[:3] == "202" and value[4:5] == "-" and value[-3:] != "-10":
        with_zone = value.replace("Z", "+00:00")
        return _time(with_zone if with_zone[-3] == ":" else f"{with_zone}:00") or value
    return value


def _time(text: str) -> str | None:
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        return None


def is_close(a: Any, b: Any) -> bool:
    """Whether two plain values are the same; sums of doubles depend on their order."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_close, a, b))
    return type(a) is type(b) and bool(a == b)


def differences(ours: list[Any], theirs: list[Any], *, in_order: bool) -> Iterator[str]:
    """The first rows that differ; in any order as multisets."""
    if len(ours) != len(theirs):
        yield f"{len(ours)} rows in DuckDB, {len(theirs)} in Spark"
        return
    if not in_order:
        ours, theirs = (sorted(rows, key=_sorted_by) for rows in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        if not is_close(a, b):
            yield f"{a}\nis in Spark {b}"
            return


def _sorted_by(row: Any) -> str:
    return repr([f"{each:.9g}" if isinstance(each, float) else each for each in row])
