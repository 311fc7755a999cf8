"""`memhouse runs`: the runs."""

from dataclasses import replace

from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Wait

EXAMPLE = "memhouse runs"


def runs(db: Db = DEFAULT_DB, output: AsFormat = Format.table, wait: Wait = DEFAULT_WAIT) -> None:
    """List the runs: when, how many dumps and modules, the largest peak, branch, hosts."""
    import pyarrow as pa

    from ...queries import lists
    from ...queries.folding import listed
    from ..opening import reading
    from ..render.rows import print_rows

    with reading(db, wait=wait) as store:
        found = lists.runs(store)
    if output in (Format.table, Format.markdown):
        given = found.table
        unused = [name for name in ("branch", "hosts") if given[name].null_count == len(given)]
        # A hundred hosts take the room of all else.
        short = [text and listed(text.split(", ")) for text in given["hosts"].to_pylist()]
        place = given.column_names.index("hosts")
        given = given.set_column(place, "hosts", pa.array(short, pa.string()))
        found = replace(found, table=given.drop_columns(unused))
    print_rows(found, output)
