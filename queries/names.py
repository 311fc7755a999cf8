"""The names of all commands, and which of them are questions to a warehouse.

A question is the function of its name in the file of its name in this folder; the other commands
are written by hand, in `cli/commands/`.
"""

import re
from pathlib import Path

# The panels of `memhouse --help`, in order.
GROUPS = {
    "Fill a warehouse": ("demo", "record", "fit", "ingest", "doctor"),
    "Ask about a module": (
        "runs",
        "modules",
        "peaks",
        "owners",
        "buffers",
        "timeline",
        "saved",
        "donations",
        "kernels",
        "passes",
        "fragmentation",
        "oom",
        "advise",
    ),
    "Follow the history": ("trends", "since", "diff", "check", "label", "log"),
    "Query and share": ("report", "sql", "shell", "mcp", "views", "tables", "export"),
    "Look after a warehouse": ("verify", "prune", "compact", "merge", "publish"),
}
# They have a grammar of their own, ask something else than a warehouse, or do not ask.
BY_HAND = {
    *("demo", "record", "fit", "ingest", "doctor"),
    *("oom", "label"),
    *("report", "sql", "shell", "mcp", "views", "export"),
    *("compact", "merge", "publish"),
}
QUESTIONS = tuple(name for names in GROUPS.values() for name in names if name not in BY_HAND)


# Names that a warehouse knows, for a shell that completes them. Only a file is asked, by DuckDB
# alone: a store takes longer to import than a user waits for TAB.

_ASK = {
    "runs": "SELECT run_id FROM runs ORDER BY run_at DESC, run_seq DESC",
    "workloads": "SELECT DISTINCT workload FROM dumps ORDER BY ALL",
    "modules": "SELECT DISTINCT workload, module_name FROM dumps ORDER BY ALL",
    "branches": "SELECT DISTINCT value FROM run_labels WHERE key = 'branch' ORDER BY ALL",
    "tables": """SELECT ltrim(table_name, '_') FROM duckdb_tables()
        WHERE schema_name = 'main' AND table_name <> '_instruction_kinds' ORDER BY ALL""",
}
# Names that mean nothing to any shell, or whose blanks can be escaped.
_HARMLESS = re.compile(r"[\w.+,/%@][\w.+,/%@:=-]*( [\w.+,/%@:=-]+)*")
_HERE = Path(__file__).parent
_LISTED = re.compile(r"^CREATE (?:VIEW|MACRO) ([a-z]\w*)", re.MULTILINE)


def known_names(db: str, kind: str) -> list[str]:
    """The names of runs, workloads, modules, branches or tables; none of what is no file.

    A module is named by its workload, if this has no other, or by WORKLOAD/NAME. Names that a
    shell could take for more than names are left out. Raises duckdb.Error, for example for a
    file that is in use.
    """
    path = Path(db.removeprefix("duckdb:///")).expanduser()
    if not path.is_file():
        return []
    import duckdb

    with duckdb.connect(str(path), read_only=True, config={"threads": 1}) as connection:
        found = connection.execute(_ASK[kind]).fetchall()
    names = _module_names(found) if kind == "modules" else [str(name) for (name,) in found]
    return [name for name in names if _HARMLESS.fullmatch(name)]


def view_names() -> list[str]:
    """The canned views and macros that are listed."""
    families = (
        file.read_text() for file in (*_HERE.glob("views/*.sql"), *_HERE.glob("macros/*.sql"))
    )
    return sorted(name for family in families for name in _LISTED.findall(family))


def _module_names(found: list[tuple[str, str]]) -> list[str]:
    workloads = [workload for workload, _ in found]
    alone = {workload for workload in workloads if workloads.count(workload) == 1}
    return [workload if workload in alone else f"{workload}/{module}" for workload, module in found]
