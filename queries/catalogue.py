"""The canned views: a `.sql` file each, whose header says what it answers.

A header is the file's leading comment, in paragraphs: a line that says what the view
answers; how to read it; and last a line `column: meaning` for each column, in order.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

import sqlalchemy as sa

from ..schema.stores.duckdb import driver
from ..schema.tables import view_set

# Views in the order in which they are created: each uses only tables and views before it.
# One whose name starts with an underscore is a helper of others, and not listed.
_ORDER = (
    "peaks",
    "_buffers",
    "peak_buffers",
    "timeline",
    "fragmentation",
    "padding",
    "memory_by_op",
    "memory_by_source",
    "memory_by_scope",
    "long_lived",
    "missed_donations",
    "trends",
    "regressions",
    "runs_summary",
)
_COLUMN = re.compile(r"^(?P<name>[a-z_0-9]+): (?P<meaning>.+)$")


@dataclass(frozen=True)
class View:
    """A canned view: `columns` are the meanings by name, in the view's order."""

    name: str
    answers: str
    description: str
    columns: dict[str, str]
    sql: str


@cache
def views() -> dict[str, View]:
    """All canned views by name, in an order in which they can be created."""
    folder = resources.files(__package__) / "views"
    return {name: _parse(name, (folder / f"{name}.sql").read_text()) for name in _ORDER}


def public_views() -> dict[str, View]:
    """The canned views that are listed: all but the helpers."""
    return {name: view for name, view in views().items() if not name.startswith("_")}


def command_query(name: str) -> str:
    """The query behind a command, a file in `statements/`."""
    return (resources.files(__package__) / "statements" / f"{name}.sql").read_text()


def _parse(name: str, text: str) -> View:
    lines = text.splitlines()
    count = next(i for i, line in enumerate(lines) if not line.startswith("--"))
    header = "\n".join(line.removeprefix("--").strip() for line in lines[:count])
    answers, *description, meanings = header.split("\n\n")
    columns: dict[str, str] = {}
    for line in meanings.splitlines():
        if match := _COLUMN.match(line):
            columns[match["name"]] = match["meaning"]
        else:
            columns[list(columns)[-1]] += " " + line
    prose = " ".join(" ".join(description).split())
    return View(name, answers, prose, columns, "\n".join(lines[count:]).strip())


def use_views(connection: sa.Connection, *, read_only: bool) -> None:
    """Give the warehouse the views of this memhouse version.

    They are stored with their comments; where that cannot be, in a warehouse that another
    version wrote and that is open for reading, they stand in for the stored ones.
    """
    digest = hashlib.sha256("\n".join(view.sql for view in views().values()).encode()).hexdigest()
    if digest in connection.scalars(sa.select(view_set.c.digest)).all():
        return
    kind = "TEMPORARY VIEW" if read_only else "VIEW"
    script = []
    for view in views().values():
        script.append(f"CREATE OR REPLACE {kind} {view.name} AS\n{view.sql}")
        script += [] if read_only else _comments(view)
    driver(connection).execute(";\n".join(script))
    if not read_only:
        connection.execute(view_set.delete())
        connection.execute(view_set.insert(), {"digest": digest})


def _comments(view: View) -> list[str]:
    def text(comment: str) -> str:
        return "'" + comment.replace("'", "''") + "'"

    return [
        f"COMMENT ON VIEW {view.name} IS {text(view.answers)}",
        *(
            f"COMMENT ON COLUMN {view.name}.{column} IS {text(meaning)}"
            for column, meaning in view.columns.items()
        ),
    ]
