"""Names that would do harm on a page that took them for HTML, a script, a link or a template."""

from collections.abc import Sequence
from pathlib import Path

from .warehouse import writing

# Whatever runs sets `window.hacked`; whatever loads asks this machine, where nobody listens.
NAMES = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=2>",
    "${window.hacked = 3}`+(window.hacked=3)+`",
    "{{ window.hacked }}{% raw %}",
    '" autofocus onfocus="window.hacked=5" x="',
    "'+(window.hacked=6)+'",
    "javascript:window.hacked=7",
    "<svg/onload=window.hacked=8>",
    "</title></style></textarea><script>window.hacked = 9</script>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<base href=http://127.0.0.1:9/><link rel=stylesheet href=http://127.0.0.1:9/a.css>",
    "<iframe srcdoc='<script>parent.hacked=12</script>'></iframe>",
    "<!--",
    "]]>&lt;b&gt;&#x3c;i&#x3e;",
    "@{name}{safe} $name @$name",
    "\\u003cscript\\u003ewindow.hacked=16\\u003c/script\\u003e\\",
    "\u202eright to left\u2066",
    "line\u2028separator",
    "__proto__",
    "constructor",
    "http://127.0.0.1:9/",
)
# What memhouse itself puts there, from a list of its own.
_OURS = frozenset(f"{kind}shape_index" for kind in ("", "parameter_", "output_", "operand_")) | {
    "action",
    "allocation_type",
    "attribute",
    "branch",
    "cause",
    "digest",
    "kind",
    "layout",
    "liveness_difference",
    "matched_by",
    "metric",
    "opcode",
    "origin",
    "origin_rule",
    "pass",
    "platform",
    "role",
    "sha256",
    "status",
}


def poison(db: Path, hostile_names: Sequence[str] = NAMES) -> None:
    """Add a hostile name to every text of a warehouse; equal texts stay equal."""
    names = f"[{', '.join(map(_quoted, hostile_names))}]"
    with writing(db) as store:
        duck = store.connection
        columns = duck.sql(
            """SELECT table_name, column_name, data_type FROM duckdb_columns()
            WHERE data_type IN ('VARCHAR', 'VARCHAR[]')
                AND table_name IN
                    (SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main')"""
        ).fetchall()
        names_of_columns = {(table, column) for table, column, _ in columns}
        for table, column, kind in columns:
            # Where a shape is in two parts, the whole is made of these.
            is_made = (table, f"_short_{column}") in names_of_columns
            if column in _OURS or is_made:
                continue
            is_list = kind.endswith("[]")
            text = "text" if is_list else column
            hostile = (
                f"{text} || ' ' || {names}[1 + (hash({text}) % {len(hostile_names)})::INTEGER]"
            )
            changed = f"list_transform({column}, lambda text: {hostile})" if is_list else hostile
            duck.execute(f'UPDATE "{table}" SET {column} = {changed}')


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
