"""A user's own roles of buffers: patterns on the names of arguments and scopes.

A TOML file gives each role its patterns; the first that fits decides:

    [roles]
    "kv cache" = "cache*"
    attention = ["*attention*", "p['layers'][*]['q']"]

In a pattern `*` stands for any text and `?` for one character; a pattern is held against the
whole name of an argument (of its copies too) and against the whole scope of anything else.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..schema.errors import UsageError

# LIKE's own wildcards are text in a pattern, and so are brackets: argument names have them.
_LIKE = str.maketrans({"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": "\\\\"})

RolesGiven = str | os.PathLike[str] | Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class OwnRoles:
    """Patterns of LIKE, escaped with a backslash, and the role that each gives, in order."""

    patterns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def read_roles(given: RolesGiven) -> OwnRoles:
    """The roles of a TOML file, or of a mapping from roles to patterns. Raises UsageError."""
    if isinstance(given, Mapping):
        try:
            return _parse(given)
        except ValueError as error:
            raise UsageError(str(error), "roles") from None
    try:
        document = tomllib.loads(Path(given).read_text())
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
