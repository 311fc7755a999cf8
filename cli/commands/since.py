"""`memhouse since`: since when a module's memory is what it is."""

from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Branch,
    Db,
    Figure,
    Format,
    Module,
    Space,
    Tolerance,
    Wait,
)

EXAMPLE = "memhouse since llama-v5e"


def since(
    module: Module,
    db: Db = DEFAULT_DB,
    branch: Branch = None,
    space: Space = 0,
    figure: Figure = "peak",
    tolerance: Tolerance = None,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Name the run in which a module's memory last changed, and the cause.

    csv, json and markdown have a row for each level: the runs between two changes.
    """
    from ...queries.since import since as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_prose

    with reading(db, wait=wait) as store:
        found = find(store, module, figure, space, tolerance, branch=branch)
    if output is not Format.table or not found.answer:
        print_rows(found.rows, output)
        return
    for sentence in found.answer:
        print_prose(sentence)
