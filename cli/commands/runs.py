"""`memhouse runs`: the runs."""

from ..options import DEFAULT_DB, AsFormat, Db, Format


def runs(db: Db = DEFAULT_DB, output: AsFormat = Format.table) -> None:
    """List the runs: when, how many dumps and modules, the largest peak."""
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db) as store:
        found = lists.runs(store)
    print_rows(found, output)
