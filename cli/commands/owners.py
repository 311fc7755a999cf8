"""`memhouse owners`: which lines of Python own a module's peak."""

from ..options import DEFAULT_DB, AsFormat, Db, Format, Limit, Module, RunOfModule, Space


def owners(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    space: Space = 0,
    limit: Limit = 20,
    output: AsFormat = Format.table,
) -> None:
    """Show which lines of Python own a module's peak."""
    from ...queries.owners import owners as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note

    with reading(db) as store:
        found = find(store, module, run, space, limit)
    print_note(found.caption)
    print_rows(found, output)
