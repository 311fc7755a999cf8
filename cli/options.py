"""Options that several commands take, and the names that a shell completes for them."""

from collections.abc import Callable
from typing import Annotated, Literal

import typer
from typer.models import OptionInfo

from .settings import find_settings

# How rows are printed; a command that prints something else too names that beside these.
Format = Literal["table", "csv", "json", "markdown"]
# Formats of plain values: nothing is folded, rounded or cut in them.
FOR_SCRIPTS = ("csv", "json")
Db = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="MEMHOUSE_DB",
        help="The warehouse: a file's path, or a lake's folder or URL such as s3://bucket/memhouse.",
    ),
]
Lake = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="LAKE",
        envvar="MEMHOUSE_DB",
        help="The lake: its folder, or a URL such as s3://bucket/memhouse.",
        show_default=False,
    ),
]
AsFormat = Annotated[
    Format, typer.Option("--format", "-f", help="How to print the rows.", show_choices=True)
]
Wait = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Wait at most SECONDS while another process uses the warehouse.",
    ),
]
All = Annotated[
    bool,
    typer.Option(
        "--all", help="Show helpers too, and the same program of several workloads one by one."
    ),
]
Wide = Annotated[
    bool, typer.Option("--wide", "-v", help="Show all columns, and no text cut short.")
]
Mine = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        envvar="MEMHOUSE_MINE",
        help="Files that are your code wherever they lie, for example '*/my_package/*'.",
        show_default=False,
    ),
]
DEFAULT_DB = "memhouse.duckdb"
# A night's ingest is over by then; a prompt that someone left open may not be.
DEFAULT_WAIT = 600


def spellings(option: OptionInfo, name: str) -> tuple[str, ...]:
    """How an option is written; `name` is that of its parameter.

    Typer takes the first of those in `Annotated` for a default.
    """
    first = (option.default,) if isinstance(option.default, str) else ()
    return (*first, *(option.param_decls or ())) or (f"--{name.replace('_', '-')}",)


def parse_labels(labels: list[str]) -> dict[str, str]:
    """The labels given as KEY=VALUE; an empty value removes one.

    `entry` is that of memhouse.toml, unless it is given.
    """
    entry = ",".join(find_settings().entry)
    pairs = [label.partition("=") for label in labels]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise typer.BadParameter("a label is KEY=VALUE", param_hint="--label")
    return ({"entry": entry} if entry else {}) | {key: value for key, _, value in pairs}


# What a shell completes of a warehouse: the names behind options and arguments.

Completer = Callable[[typer.Context, str], list[str]]


def completer(kind: str) -> Completer:
    """Completes names of a kind, as `known_names` has them; `exported` are views and tables."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from ..queries.known_names import known_names, view_names

        names = view_names() if kind in ("views", "exported") else []
        if kind == "views":
            from ..queries.own_macros import listed_macros

            names += listed_macros(find_settings().macros)
        if kind != "views":
            names += known_names(str(ctx.params["db"]), "tables" if kind == "exported" else kind)
        return [name for name in names if name.startswith(incomplete)]

    return complete
