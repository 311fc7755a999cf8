"""The parameters that commands share, each declared once, and the completion of their values."""

import re
from collections.abc import Callable
from typing import Annotated, Literal

import typer
from typer.models import OptionInfo

from .formats import Format

DEFAULT_DB = "memhouse.duckdb"
# A nightly ingest ends within ten minutes; a prompt that someone left open may not.
DEFAULT_WAIT = 600

_COMPLETED = {
    "runs": "SELECT run_id AS name FROM runs ORDER BY run_at DESC, run_seq DESC",
    "workloads": "SELECT DISTINCT workload AS name FROM dumps ORDER BY ALL",
    "modules": "SELECT DISTINCT workload || '/' || module_name AS name FROM dumps ORDER BY ALL",
    "branches": "SELECT value AS name FROM run_labels WHERE key = 'branch' GROUP BY 1 ORDER BY 1",
}
# Typer's scripts put names on the command line without quotes.
_UNQUOTED = re.compile(r"[\w.+,/%@][\w.+,/%@:=-]*")


def completer(kind: str) -> Callable[[typer.Context, str], list[str]]:
    """Completes runs, workloads, modules, branches, tables, views, or `exported`: both of these."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from ..schema.errors import MemhouseError

        try:
            names = _names(kind, str(ctx.params.get("db") or DEFAULT_DB))
        except MemhouseError:
            names = []
        return [name for name in names if name.startswith(incomplete) and _UNQUOTED.fullmatch(name)]

    return complete


def _names(kind: str, db: str) -> list[str]:
    from ..queries.catalogue import public_names
    from ..queries.own_macros import listed_macros
    from ..schema.arrow import public_tables
    from .opening import reading
    from .settings import find_settings

    if kind in _COMPLETED:
        with reading(db) as store:
            return list(store.rows(_COMPLETED[kind])["name"].to_pylist())
    if kind == "tables":
        return sorted(public_tables())
    others = public_tables() if kind == "exported" else listed_macros(find_settings().macros)
    return sorted([*public_names(), *others])


def spellings(option: OptionInfo, name: str) -> tuple[str, ...]:
    """The spellings of an option; `name` is that of its parameter.

    Typer takes the first of those in `Annotated` for a default.
    """
    first = (option.default,) if isinstance(option.default, str) else ()
    return (*first, *(option.param_decls or ())) or (f"--{name.replace('_', '-')}",)


def parse_labels(labels: list[str], entry: tuple[str, ...] = ()) -> dict[str, str]:
    """The labels of KEY=VALUE; an empty value removes one.

    entry: entry programs, from memhouse.toml, unless a label `entry` is among the labels.
    """
    pairs = [label.partition("=") for label in labels]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise typer.BadParameter("a label is KEY=VALUE", param_hint="--label")
    return ({"entry": ",".join(entry)} if entry else {}) | {key: value for key, _, value in pairs}


# What a command asks of.

Db = Annotated[
    str,
    typer.Option("--db", metavar="FILE", envvar="MEMHOUSE_DB", help="The warehouse, a file."),
]
Wait = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Wait at most SECONDS while another process uses the warehouse.",
    ),
]
Module = Annotated[
    str,
    typer.Argument(
        metavar="MODULE",
        help="A workload, module name, WORKLOAD/NAME, unique part of one, or module id.",
        show_default=False,
        autocompletion=completer("modules"),
    ),
]
AnyModule = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODULE]",
        help="A workload, module name, WORKLOAD/NAME, unique part of one, or module id"
        " [default: all modules].",
        show_default=False,
        autocompletion=completer("modules"),
    ),
]
RunOrModule = Annotated[
    str,
    typer.Argument(
        help="A run, or a module as RUN/WORKLOAD/NAME or a unique part of it.",
        show_default=False,
        autocompletion=completer("runs"),
    ),
]
Run = Annotated[str | None, typer.Option(help="Only this run.", autocompletion=completer("runs"))]
RunOfModule = Annotated[
    str | None,
    typer.Option(
        help="The run of the module [default: the latest].", autocompletion=completer("runs")
    ),
]
Workload = Annotated[
    str | None, typer.Option(help="Only this workload.", autocompletion=completer("workloads"))
]
Branch = Annotated[
    str | None,
    typer.Option(
        help="The runs of this branch [default: main, master or those without a branch].",
        autocompletion=completer("branches"),
    ),
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only runs since this date or time, in UTC.")
]
Space = Annotated[int, typer.Option("--space", help="The memory space's number; 0 is HBM.")]
ScheduleTime = Annotated[
    int | None,
    typer.Option(metavar="TIME", help="A position in the schedule [default: the peak]."),
]
Owner = Literal["source", "innermost", "scope", "op", "dtype", "pass", "category", "role"]
By = Annotated[
    Owner | None,
    typer.Option(help="The kind of owner [default: source; role with --roles]."),
]
Metric = Annotated[
    str, typer.Option(help="Metric: peak, total, temp, argument, output, padding and so on.")
]
MetricOrWork = Annotated[
    str, typer.Option(help="Metric: peak, total, temp, argument, output and so on, or flops.")
]

# How the answer is shown.

AsFormat = Annotated[
    Format, typer.Option("--format", "-f", help="Output format.", show_choices=True)
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, help="Show at most N rows.", metavar="N")
]
Wide = Annotated[
    bool, typer.Option("--wide", "-v", help="Show all columns, and no text truncated.")
]
All = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Show auxiliary programs too, and equal programs of several workloads one by one.",
    ),
]
Callers = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Show N callers of each line, from the Python stack."),
]

# What commands that fill a warehouse share.

UserCode = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        envvar="MEMHOUSE_USER_CODE",
        help="Files that are your code wherever they are, for example '*/my_package/*'.",
        show_default=False,
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Replace the dumps of the run NAME if they differ.")
]
At = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="When the run was compiled, in ISO form, UTC unless it has a zone [default: a date in"
        " the run's name, or now].",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Label the run, for example branch=main; KEY= omits a label.",
    ),
]
