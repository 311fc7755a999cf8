"""Who owns a module's memory: Python lines, scopes, operations, roles and so on."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .result import Rows

# The kinds of owner, and the column of each.
OWNERS = {
    "source": "source",
    "innermost": "source",
    "scope": "scope",
    "op": "operation",
    "dtype": "element_type",
    "pass": "pass",
    "category": "category",
    "role": "role",
}
# User-defined roles: patterns of argument names by role, or a TOML file of them.
Roles = str | os.PathLike[str] | Mapping[str, str | Sequence[str]]


def owners(
    store: Store,
    module: str | int,
    *,
    run: str | None = None,
    by: str | None = None,
    memory_space: int = 0,
    schedule_time: int | None = None,
    callers: int = 0,
    roles: Roles | None = None,
    unfold: bool = False,
    limit: int | None = None,
) -> Rows:
    """The rows of `Warehouse.owners`."""
    by = by or ("source" if roles is None else "role")
    own_roles = _checked(by, callers, roles)
    found = find_module(store, module, run)
    parameters = [
        found.module_id,
        memory_space,
        schedule_time,
        by,
        limit,
        *callers_of(store, found.module_id, callers),
        list(own_roles.patterns),
        list(own_roles.names),
        unfold,
    ]
    rows = _named(store.rows(statement("owners"), parameters), by, callers)
    nothing = f"nothing is live in memory space {memory_space} then"
    no_peak = f"memory space {memory_space} has no known peak"
    return Rows(rows, found.caption, no_peak if schedule_time is None else nothing)


def _checked(by: str, callers: int, roles: Roles | None) -> OwnRoles:
    """The user's roles, if the arguments fit together. Raises UsageError."""

    if by not in OWNERS:
        raise UsageError(f"invalid owner {by!r}: use {', '.join(OWNERS)}", "by")
    if callers and by != "source":
        raise UsageError("callers need by='source'", "callers")
    if roles is None:
        return OwnRoles()
    if by != "role":
        raise UsageError("roles need by='role'", "roles")
    return read_roles(roles)


def _named(rows: pa.Table, by: str, callers: int) -> pa.Table:
    """The rows without columns that say nothing, the owner's column named for what it is."""
    if not callers:
        rows = rows.drop_columns(["called_by"])
    if rows["via"].null_count == len(rows):
        rows = rows.drop_columns(["via"])
    if by == "category":
        rows = rows.drop_columns(["categories"])
    return rows.rename_columns([OWNERS[by] if n == "owner" else n for n in rows.column_names])


# Who calls a line of Python.


def callers_of(store: Store, module_id: int, count: int) -> tuple[list[int], list[str]]:
    """The Python frames of a module, and of each up to `count` callers as text.

    For example `block at model.py:112, main at train.py:9`; frames without a caller are left
    out.
    """
    if not count:
        return [], []
    rows = store.rows(statement("owners.callers"), [module_id, count])
    return rows["stack_frame_id"].to_pylist(), rows["called_by"].to_pylist()


# A user's own roles of buffers: patterns on the names of arguments and scopes.
#
# A TOML file gives each role its patterns; the first that fits decides:
#
#     [roles]
#     "kv cache" = "cache*"
#     attention = ["*attention*", "p['layers'][*]['q']"]
#
# In a pattern `*` stands for any text and `?` for one character; a pattern is held against the
# whole name of an argument (of its copies too) and against the whole scope of anything else.

# LIKE's own wildcards are text in a pattern, and so are brackets: argument names have them.
_LIKE = str.maketrans({"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": "\\\\"})


@dataclass(frozen=True)
class OwnRoles:
    """Patterns of LIKE, escaped with a backslash, and the role that each gives, in order."""

    patterns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def read_roles(given: Roles) -> OwnRoles:
    """The roles of a TOML file, or of a mapping from roles to patterns. Raises UsageError."""
    if isinstance(given, Mapping):
        try:
            return _parse(given)
        except ValueError as error:
            raise UsageError(str(error), "roles") from None
    try:
        document = tomllib.loads(Path(given).read_text(encoding="utf-8"))
        if unknown := sorted(document.keys() - {"roles"}):
            raise ValueError(f"unknown setting {unknown[0]!r}: use the table [roles]")
        return _parse(document.get("roles"))
    except OSError as error:
        raise UsageError(f"{os.fspath(given)}: {error.strerror or error}", "roles") from None
    except ValueError as error:  # also of TOML, and of text that is not UTF-8
        raise UsageError(f"{os.fspath(given)}: {error}", "roles") from None


def _parse(table: object) -> OwnRoles:
    if not isinstance(table, Mapping) or not table:
        raise ValueError('write a table [roles] with lines such as "kv cache" = ["cache*"]')
    patterns: list[str] = []
    names: list[str] = []
    for name, given in table.items():
        listed = [given] if isinstance(given, str) else given
        if not isinstance(listed, Sequence) or not listed:
            raise ValueError(f"role {name!r} needs a pattern or a list of patterns")
        for pattern in listed:
            if not isinstance(pattern, str) or not pattern:
                raise ValueError(f"role {name!r}: {pattern!r} is not a pattern such as 'cache*'")
            patterns.append(pattern.translate(_LIKE))
            names.append(str(name))
    return OwnRoles(tuple(patterns), tuple(names))
