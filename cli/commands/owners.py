"""`memhouse owners`: who owns a module's memory."""

import json
from dataclasses import replace
from typing import Annotated, Literal

import typer

from ...queries.modules import find_module
from ...queries.result import Rows
from ...queries.stacks import WAYS, collapsed, peak_rows, peak_stacks, speedscope
from ..formats import Format
from ..opening import open_warehouse
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    By,
    Callers,
    Db,
    Limit,
    Module,
    RunOfModule,
    ScheduleTime,
    Space,
    Wait,
    Wide,
)
from ..render.text import print_captioned, print_text

EXAMPLE = "memhouse owners llama-v5e --by scope -n 5"


def owners(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    by: By = None,
    memory_space: Space = 0,
    schedule_time: ScheduleTime = None,
    callers: Callers = 0,
    roles: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="User-defined roles, a TOML file: name = patterns."),
    ] = None,
    unfold: Annotated[
        bool, typer.Option("--unfold", help="Show repeated layers one by one.")
    ] = False,
    limit: Limit = 20,
    wide: Wide = False,
    output: Annotated[
        Literal[Format, "collapsed", "speedscope"],
        typer.Option(
            "--format",
            "-f",
            help="Output format; collapsed and speedscope: the peak by stack, for flame graphs.",
        ),
    ] = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show who owns a module's memory: source lines, scopes, roles.

    At its peak, or at a schedule time. The sizes add up to the occupied bytes.
    """
    if output == "collapsed" or output == "speedscope":
        if by not in (None, *WAYS) or schedule_time is not None or roles is not None or callers:
            raise typer.BadParameter(
                "shows stacks at the peak, by source or scope: omit --schedule-time, --callers and"
                " --roles",
                param_hint=f"--format {output}",
            )
        with open_warehouse(db, wait) as warehouse:
            match = find_module(warehouse.store, module, run)
            peak = peak_rows(warehouse.store, match.module_id, memory_space)
        stacks = peak_stacks(peak, by or WAYS[0], unfold=unfold)
        if output == "collapsed":
            print_text("\n".join(collapsed(stacks)))
        else:
            print_text(json.dumps(speedscope(stacks, match.caption)))
        return
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.owners(
            module,
            run=run,
            by=by,
            memory_space=memory_space,
            schedule_time=schedule_time,
            callers=callers,
            roles=roles,
            unfold=unfold,
            limit=limit,
        )
    is_narrow = output == "table" and not wide
    print_captioned(_narrow(rows, callers) if is_narrow else rows, output, wide=wide)


def _narrow(rows: Rows, callers: int) -> Rows:
    """The owners without their categories, if callers, a library line or a scope need the space."""
    if callers or {"via", "scope"} & {*rows.table.column_names}:
        return replace(rows, table=rows.table.drop_columns(["categories"]))
    return rows
