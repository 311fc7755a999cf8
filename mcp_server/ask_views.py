"""The tools on the warehouse itself: its views and tables, and SQL on them."""

from typing import Annotated

import pyarrow as pa

from .. import Warehouse
from ..queries.catalogue import (
    listed_views,
    named_view,
    public_macros,
    public_views,
    view_columns,
    view_sql,
)
from ..queries.own_macros import listed_macros
from ..queries.questions import Kind
from ..schema.errors import UsageError
from .bounded import Answer, Part


def views(
    warehouse: Warehouse,
    name: Annotated[str | None, Kind("a view or table; else all are listed")] = None,
    show: Annotated[
        str,
        Kind("of a view: its columns, or its SQL to copy from", choices=("columns", "sql")),
    ] = "columns",
) -> Answer:
    """Which views and tables `sql` can ask, and the columns of one with what they mean.

    Views answer common questions: WHERE is_latest keeps the newest dump of each name. Tables of
    modules join `latest` with USING (module_id). `saved_for_backward`, `timeline`,
    `missed_donations` and `padding` have no tool of their own. Sizes are bytes; times are positions
    in a module's schedule. Names with parentheses are functions: FROM live_at(module('NAME'), 9).
    """
    own = listed_macros(warehouse.macros)
    if name is None:
        return Answer(
            [f"tables: {', '.join(_tables(warehouse))}"],
            {"views": Part(listed_views(own).table)},
            "give name",
        )
    if name in {*public_views(), *public_macros(), *own}:
        view = named_view(name, own)
        if show == "sql":
            stripped = (line.strip() for line in view_sql(view).splitlines())
            lines = pa.table({"sql": [line for line in stripped if line[:2] not in ("", "--")]})
            return Answer([view.answers], {"sql": Part(lines, exact=True)}, "copy what you need")
        return Answer(
            [view.answers, view.description],
            {"columns": Part(view_columns(view).table)},
            "DESCRIBE in `sql` has their types",
        )
    if name not in _tables(warehouse):
        raise UsageError(f"there is no view or table {name!r}: ask `views` without a name", "name")
    columns = warehouse.tables(name)
    return Answer(parts={"columns": Part(columns.table)}, narrow="DESCRIBE in `sql` has all")


def _tables(warehouse: Warehouse) -> list[str]:
    """The tables' names, but for what the warehouse notes for itself."""
    names = warehouse.tables().table["table"].to_pylist()
    return sorted(set(names) - {"schema_version", "view_set"})
