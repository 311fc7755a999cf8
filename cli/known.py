"""What a shell completes of a warehouse: the names behind options and arguments."""

from collections.abc import Callable

import typer

Completer = Callable[[typer.Context, str], list[str]]


def completer(kind: str) -> Completer:
    """Completes names of a kind, as `known_names` has them; `exported` are views and tables."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from ..queries.known_names import known_names, view_names

        names = view_names() if kind in ("views", "exported") else []
        if kind != "views":
            names += known_names(str(ctx.params["db"]), "tables" if kind == "exported" else kind)
        return [name for name in names if name.startswith(incomplete)]

    return complete
