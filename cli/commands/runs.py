"""`memhouse runs`: the runs."""

from dataclasses import replace

from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Wait

EXAMPLE = "memhouse runs"


def runs(db: Db = DEFAULT_DB, output: AsFormat = Format.table, wait: Wait = DEFAULT_WAIT) -> None:
    """List the runs: when, how many dumps and modules, the largest peak, and the branch."""
    from ...queries import lists
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db, wait=wait) as store:
        found = lists.runs(store)
    branches = found.table["branch"]
    if output in (Format.table, Format.markdown) and branches.null_count == len(branches):
        found = replace(found, table=found.table.drop_columns(["branch"]))
    print_rows(found, output)
