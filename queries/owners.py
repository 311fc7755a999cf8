"""Who owns a module's memory: Python lines, scopes, operations, roles and so on."""

from typing import TYPE_CHECKING

from ..schema.errors import UsageError
from .callers import callers_of
from .catalogue import statement
from .find_module import find_module
from .parameters import OWNERS, At, Callers, Limit, Module, Owner, Roles, RunOfModule, Space
from .questions import question
from .result import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from ..schema.stores.base import Store
    from .own_roles import OwnRoles


@question(
    example="memhouse owners llama-v5e --by scope -n 5",
    screen="owners",
    tool="Who owns the peak",
    chart="with_treemap",
)
def owners(
    store: "Store",
    module: Module,
    *,
    run: RunOfModule = None,
    by: Owner = None,
    memory_space: Space = 0,
    at: At = None,
    callers: Callers = 0,
    roles: Roles = None,
    limit: Limit = None,
) -> Rows:
    """Show who owns a module's memory at its peak, or at any time: lines, scopes, roles.

    Columns: counted_bytes (they add up to what is occupied), share (of that, from 0 to 1),
    buffers (a count), the owner (source, scope, operation, element_type, pass, category or
    role), called_by (with `callers`, so many Python frames), categories, is_guess (its origin
    is a guess). The largest is first; beyond `limit` the rest is one row. An owner has a row for
    each stack of callers, and one more for what is a guess. `roles` are roles of your own: a
    TOML file, or a mapping such as {"kv cache": "cache*"}. Raises UsageError.
    """
    by = by or ("source" if roles is None else "role")
    own_roles = _checked(by, callers, roles)
    found = find_module(store, module, run)
    parameters = [
        found.module_id,
        memory_space,
        at,
        by,
        limit,
        *callers_of(store, found.module_id, callers),
        list(own_roles.patterns),
        list(own_roles.names),
    ]
    rows = _named(store.rows(statement("owners"), parameters), by, callers)
    nothing = f"nothing is live in memory space {memory_space} then"
    no_peak = f"memory space {memory_space} has no known peak"
    return Rows(rows, found.caption, no_peak if at is None else nothing)


def _checked(by: str, callers: int, roles: Roles) -> "OwnRoles":
    """The user's roles, if the arguments fit together. Raises UsageError."""
    from .own_roles import OwnRoles, read_roles

    if by not in OWNERS:
        raise UsageError(f"invalid owner {by!r}: use {', '.join(OWNERS)}", "by")
    if callers and by != "source":
        raise UsageError("callers need by='source'", "callers")
    if roles is None:
        return OwnRoles()
    if by != "role":
        raise UsageError("roles need by='role'", "roles")
    return read_roles(roles)


def _named(rows: "pa.Table", by: str, callers: int) -> "pa.Table":
    """The rows without columns that say nothing, the owner's column named for what it is."""
    if not callers:
        rows = rows.drop_columns(["called_by"])
    if by == "category":
        rows = rows.drop_columns(["categories"])
    return rows.rename_columns([OWNERS[by] if n == "owner" else n for n in rows.column_names])
