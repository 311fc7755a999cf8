"""The data dictionary: every table and view with every column, as Markdown.

`python -m memhouse.queries.dictionary` prints what stands in `docs/data-dictionary.md`;
a test keeps the two the same.
"""

from collections.abc import Sequence

from sqlalchemy import Column

from ..schema.tables import metadata
from .catalogue import public_views

_INTRODUCTION = """\
# Data dictionary

Generated from the comments in `schema/` and `queries/` by `make docs`; they are stored in
the warehouse too. Sizes and offsets are bytes; times are positions in a module's flattened
schedule, and both ends of a live range are inclusive.
"""
_INTERNAL = {"view_set"}


def data_dictionary() -> str:
    """The whole dictionary."""
    parts = [_INTRODUCTION, "## Tables\n"]
    for table in metadata.tables.values():
        if table.name not in _INTERNAL:
            parts.append(f"### {table.name}\n\n{table.comment}\n")
            columns = [(f"`{c.name}`", _type_name(c), c.comment or "") for c in table.columns]
            parts.append(_rows(("column", "type", "meaning"), columns))
    parts.append("## Views\n")
    for view in public_views().values():
        parts.append(f"### {view.name}\n\n{view.answers}\n\n{view.description}\n")
        meanings = [(f"`{name}`", meaning) for name, meaning in view.columns.items()]
        parts.append(_rows(("column", "meaning"), meanings))
    return "\n".join(parts)


def _rows(heading: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _type_name(column: "Column[object]") -> str:
    required = "" if column.nullable else ", not null"
    return f"{column.type.compile()}{required}".lower()


if __name__ == "__main__":
    print(data_dictionary(), end="")
