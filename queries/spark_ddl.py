"""SQL that registers a lake in Spark's catalog."""

from ..schema import arrow
from ..schema.lake.data_files import relations
from .spark_views import spark_views

_TABLE = "memhouse_lake"
_HEAD = """\
-- The lake {place} in Spark: its Delta table, a view for each
-- table of memhouse, and memhouse's own views. Give it in a schema of its own, to a Spark that
-- has Delta's package; where it does not know s3://, write s3a://. Spark may only read the lake:
-- memhouse writes, compacts and cleans it.
-- The views reckon times in UTC: SET TIME ZONE 'UTC' in each session."""


def ddl(place: str) -> str:
    """The statements, each ended by a semicolon.

    The history in Spark is as it was stored last, after an ingest. Raises MissingPackageError
    without sqlglot.
    """
    literal = place if "://" in place else f"file://{place}"
    statements = [
        f"CREATE TABLE IF NOT EXISTS {_TABLE} USING delta LOCATION {_quoted(literal)}",
        *(_view(name, _relation(name)) for name in relations()),
        *(_view(name, query) for name, query in spark_views().items()),
    ]
    return "\n\n".join([_HEAD.format(place=place), *(f"{text};" for text in statements)]) + "\n"


def _view(name: str, query: str) -> str:
    return f"CREATE OR REPLACE VIEW `{name}` AS\n{query}"


def _relation(name: str) -> str:
    columns = ", ".join(f"`{column}`" for column in arrow.schema(name).names)
    return f"SELECT {columns}\nFROM {_TABLE}\nWHERE relation = {_quoted(name)}"


def _quoted(text: str) -> str:
    """A text in Spark's SQL, where a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
