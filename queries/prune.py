"""Drops runs, and what no other run points to; nothing else."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from ..schema.delete import delete_modules
from ..schema.tables import (
    accepted_changes,
    compiler_flags,
    dump_files,
    dumps,
    modules,
    run_labels,
    runs,
)


def runs_before(connection: sa.Connection, time: datetime) -> list[str]:
    """The runs of before `time`, the oldest first."""
    query = sa.select(runs.c.run_id).where(runs.c.run_at < time).order_by(runs.c.run_at)
    return list(connection.scalars(query).all())


def prune(connection: sa.Connection, run_ids: Sequence[str]) -> dict[str, int]:
    """Delete these runs; how many rows of runs, dumps and modules went."""
    gone = sa.select(dumps.c.dump_id).where(dumps.c.run_id.in_(run_ids))
    counts = {
        "runs": connection.scalars(
            sa.select(sa.func.count()).select_from(runs).where(runs.c.run_id.in_(run_ids))
        ).all()[0],
        "dumps": connection.scalars(sa.select(sa.func.count()).select_from(gone.subquery())).all()[
            0
        ],
    }
    connection.execute(dump_files.delete().where(dump_files.c.dump_id.in_(gone)))
    for table in (dumps, run_labels, accepted_changes, runs):
        connection.execute(table.delete().where(table.c.run_id.in_(run_ids)))
    kept = sa.select(dumps.c.module_id).where(dumps.c.module_id.is_not(None))
    orphans = list(
        connection.scalars(
            sa.select(modules.c.module_id).where(modules.c.module_id.not_in(kept))
        ).all()
    )
    delete_modules(connection, orphans)
    flags = sa.select(dumps.c.flags_id).where(dumps.c.flags_id.is_not(None))
    connection.execute(compiler_flags.delete().where(compiler_flags.c.flags_id.not_in(flags)))
    return {**counts, "modules": len(orphans)}
