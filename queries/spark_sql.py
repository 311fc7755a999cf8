"""The SQL of memhouse as Spark's SQL: `to_spark`. A function for each thing that sqlglot leaves.

The SQL is written for DuckDB. Where both engines can be given the same SQL, the SQL is written
so; what is here has no such spelling.
"""

from collections.abc import Callable

import sqlglot
from sqlglot import exp


def to_spark(sql: str) -> str:
    """A query in DuckDB's SQL as Spark's: for Spark 3.5 and later.

    The session's time zone must be UTC, as DuckDB's is. Raises sqlglot's ParseError,
    and UnsupportedError where Spark has no counterpart.
    """
    return spark_text(sqlglot.parse_one(sql, read="duckdb"))


def spark_text(query: exp.Expr) -> str:
    """The same of a query that is parsed; the tree is changed."""
    for change in _CHANGES:
        change(query)
    return query.sql(dialect="spark", comments=False)


def _without_materialized(query: exp.Expr) -> None:
    """Spark has no MATERIALIZED: it is about time alone."""
    for table in query.find_all(exp.CTE):
        table.set("materialized", None)


def _numbers_of_rows_are_long(query: exp.Expr) -> None:
    """ROW_NUMBER and its like are BIGINT in DuckDB, but INT in Spark."""
    for window in list(query.find_all(exp.Window)):
        if isinstance(window.this, exp.RowNumber | exp.Rank | exp.DenseRank):
            window.replace(exp.cast(window.copy(), "BIGINT"))


def _unnested_together(query: exp.Expr) -> None:
    """Spark unnests only one list in a SELECT: several are zipped to one list of rows."""
    for select in list(query.find_all(exp.Select)):
        columns = select.expressions
        lists = [column.this for column in columns if isinstance(column.this, exp.Explode)]
        if len(lists) > 1 and len(lists) == len(columns):
            zipped = exp.func("ARRAYS_ZIP", *(unnest.this for unnest in lists))
            names = [exp.to_identifier(column.alias) for column in columns]
            rows = exp.Aliases(this=exp.Inline(this=zipped), expressions=names)
            select.set("expressions", [rows])


def _series_may_be_empty(query: exp.Expr) -> None:
    """GENERATE_SERIES(1, 0) is empty and BIGINT in DuckDB; SEQUENCE(1, 0) counts down in Spark."""
    for series in list(query.find_all(exp.GenerateSeries)):
        start, end = series.args["start"], series.args["end"]
        longs = exp.func("SEQUENCE", exp.cast(start.copy(), "BIGINT"), exp.cast(end, "BIGINT"))
        series.replace(exp.func("IF", exp.GT(this=start, expression=end.copy()), "ARRAY()", longs))


def _elements_may_be_missing(query: exp.Expr) -> None:
    """list[9] is null in DuckDB if the list is shorter; in Spark it is an error, but not GET."""
    for element in list(query.find_all(exp.Bracket)):
        (place,) = element.expressions
        # GET counts from 0. sqlglot has counted down only what it knows to be a number.
        if not place.is_type(*exp.DataType.INTEGER_TYPES):
            place = exp.Sub(this=place, expression=exp.Literal.number(1))
        element.replace(exp.Anonymous(this="GET", expressions=[element.this, place]))


def _texts_in_order(query: exp.Expr) -> None:
    """STRING_AGG is LISTAGG in sqlglot, which Spark 3.5 lacks and which fails in Spark 4 views.

    Without any text it is null.
    """
    for joined in list(query.find_all(exp.GroupConcat)):
        texts, keys = joined.this, []
        if isinstance(texts, exp.Order):
            texts, keys = texts.this, texts.expressions
        if isinstance(texts, exp.Distinct):
            # DuckDB takes no other key than the text itself.
            (text,) = texts.expressions
            gathered = exp.func("COLLECT_SET", text.copy())
            if keys:
                gathered = exp.func("SORT_ARRAY", gathered, _upwards(keys))
        else:
            text = texts
            listed = exp.Order(this=text.copy(), expressions=keys) if keys else text.copy()
            gathered = exp.ArrayAgg(this=listed)
        separator = joined.args.get("separator") or exp.Literal.string(",")
        some = exp.GT(this=exp.Count(this=text.copy()), expression=exp.Literal.number(0))
        joined.replace(
            exp.func("IF", some, exp.func("ARRAY_JOIN", gathered, separator), exp.null())
        )


def _upwards(keys: list[exp.Expression]) -> exp.Boolean:
    """The direction of the keys for SORT_ARRAY. Raises UnsupportedError if they differ."""
    downwards = {bool(key.args.get("desc")) for key in keys}
    if len(downwards) > 1:
        raise sqlglot.UnsupportedError("Spark sorts a list by all keys up, or by all keys down")
    return exp.false() if downwards == {True} else exp.true()


def _lists_in_order(query: exp.Expr) -> None:
    """LIST(x ORDER BY y) is no aggregate of Spark: pairs are gathered, sorted and taken apart.

    A list of nothing is null in DuckDB.
    """
    for gathered in list(query.find_all(exp.ArrayAgg)):
        order = gathered.this
        if not isinstance(order, exp.Order):
            continue
        keys = [key.this for key in order.expressions]
        pairs = exp.func("STRUCT", *keys, exp.alias_(order.this, "listed"))
        listed = exp.ArrayAgg(this=pairs)
        inner: exp.Expr = listed
        outer: exp.Expr = gathered
        if isinstance(gathered.parent, exp.Filter):
            outer = gathered.parent
            inner = exp.Filter(this=listed, expression=outer.expression)
        taken = exp.Lambda(
            this=exp.Dot(this=exp.to_identifier("pair"), expression=exp.to_identifier("listed")),
            expressions=[exp.to_identifier("pair")],
        )
        keys_up = _upwards(order.expressions)
        in_order = exp.func("TRANSFORM", exp.func("SORT_ARRAY", inner, keys_up), taken)
        there = exp.GT(this=exp.func("SIZE", inner.copy()), expression=exp.Literal.number(0))
        outer.replace(exp.func("IF", there, in_order, exp.Null()))


def _rows_are_structs(query: exp.Expr) -> None:
    """A table's name as a value is its row in DuckDB; in Spark it is STRUCT(table.*)."""
    for select in query.find_all(exp.Select):
        joins = select.args.get("joins") or ()
        tables = {table.this.alias_or_name for table in (select.args.get("from_"), *joins) if table}
        for column in list(select.find_all(exp.Column)):
            if column.table or column.name not in tables or column.parent is select:
                continue
            if column.find_ancestor(exp.Select) is select and isinstance(column.parent, _OF_ROWS):
                row = exp.Column(this=exp.Star(), table=exp.to_identifier(column.name))
                column.replace(exp.func("STRUCT", row))


# What takes whole rows.
_OF_ROWS = (exp.ArgMax, exp.ArgMin, exp.ArrayAgg, exp.Order, exp.PropertyEQ)

_CHANGES: tuple[Callable[[exp.Expr], None], ...] = (
    _without_materialized,
    _numbers_of_rows_are_long,
    _unnested_together,
    _series_may_be_empty,
    _elements_may_be_missing,
    _rows_are_structs,
    _texts_in_order,
    _lists_in_order,
)
