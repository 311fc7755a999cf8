"""Who owns a module's memory: Python lines, scopes, operations, roles and so on."""

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.stores.base import Store
from .callers import callers_of
from .catalogue import statement
from .find_module import find_module
from .own_roles import Roles, RolesGiven, read_roles
from .result import Rows

# What owns the memory, and the name of its column.
OWNERS = {
    "source": "source",
    "scope": "scope",
    "op": "operation",
    "dtype": "element_type",
    "pass": "pass",
    "category": "category",
    "role": "role",
}


def owners(
    store: Store,
    module: str | int,
    run: str | None = None,
    memory_space: int = 0,
    limit: int | None = None,
    *,
    by: str | None = None,
    at: int | None = None,
    callers: int = 0,
    roles: RolesGiven | None = None,
) -> Rows:
    """The owners of a module's memory at the peak, or at the time `at`, the largest first.

    `by` is source, scope, op, dtype, pass, category or role; without it, source, or role if
    there are `roles`: a file or a mapping, see `read_roles`. Beyond `limit` the rest is one row.
    An owner has a row for each stack of callers, and one more for what is a guess.
    Columns: counted_bytes (they add up to what is occupied), share (of that, from 0 to 1),
    buffers (a count), the owner (source, scope, operation, element_type, pass, category or
    role), called_by (with `callers`, so many Python frames), categories, is_guess (its origin
    is a guess). Raises UsageError.
    """
    by = by or ("source" if roles is None else "role")
    own = _checked(by, callers, roles)
    found = find_module(store, module, run)
    parameters = [
        found.module_id,
        memory_space,
        at,
        by,
        limit,
        *callers_of(store, found.module_id, callers),
        list(own.patterns),
        list(own.names),
    ]
    rows = _named(store.rows(statement("owners"), parameters), by, callers)
    nothing = f"nothing is live in memory space {memory_space} then"
    no_peak = f"memory space {memory_space} has no known peak"
    return Rows(rows, found.caption, no_peak if at is None else nothing)


def _checked(by: str, callers: int, roles: RolesGiven | None) -> Roles:
    """The user's roles, if the arguments fit together. Raises UsageError."""
    if by not in OWNERS:
        raise UsageError(f"invalid owner {by!r}: use {', '.join(OWNERS)}", "by")
    if callers and by != "source":
        raise UsageError("callers need by='source'", "callers")
    if roles is None:
        return Roles()
    if by != "role":
        raise UsageError("roles need by='role'", "roles")
    return read_roles(roles)


def _named(rows: pa.Table, by: str, callers: int) -> pa.Table:
    """The rows without columns that say nothing, the owner's column named for what it is."""
    if not callers:
        rows = rows.drop_columns(["called_by"])
    if by == "category":
        rows = rows.drop_columns(["categories"])
    return rows.rename_columns([OWNERS[by] if n == "owner" else n for n in rows.column_names])
