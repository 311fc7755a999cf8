"""What a shell completes of a warehouse: the names behind options and arguments."""

from collections.abc import Callable

import typer

Completer = Callable[[typer.Context, str], list[str]]


def _known(kind: str) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from ..queries.known_names import known_names

        names = known_names(str(ctx.params["db"]), kind)
        return [name for name in names if name.startswith(incomplete)]

    return complete


known_runs = _known("runs")
known_workloads = _known("workloads")
known_modules = _known("modules")
known_branches = _known("branches")
known_tables = _known("tables")


def known_views(ctx: typer.Context, incomplete: str) -> list[str]:
    """The canned views."""
    from ..queries.known_names import view_names

    return [name for name in view_names() if name.startswith(incomplete)]


def known_views_and_tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """What can be exported."""
    return known_views(ctx, incomplete) + known_tables(ctx, incomplete)
