"""memhouse.toml: what a project sets once for all commands.

The nearest file counts, from the working directory upwards. An option overrides an environment
variable, which overrides the file; paths in the file are relative to its folder.

    db = "nights.duckdb"            # --db
    user_code = ["*/our_package/*"] # --user-code
    entry = ["jit_generate"]        # --label entry=jit_generate
    limits = "limits.toml"          # --limits
    macros = ["*.sql"]              # functions for `memhouse sql`
"""

import glob
import json
import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..schema.errors import UsageError

_FILE = "memhouse.toml"
_PATHS = ("db", "limits")
_EXAMPLES = {
    "db": '"nights.duckdb"',
    "user_code": '["*/our_package/*"]',
    "entry": '["jit_generate"]',
    "limits": '"limits.toml"',
    "macros": '["*.sql"]',
}
_MAX_VALUE = 40


@dataclass(frozen=True)
class Settings:
    """What the file sets; file: None if there is none.

    db: the warehouse; user_code: patterns of files of the user's code; entry: names of entry
    programs; limits: the file with the rules of `check`; macros: files with functions of SQL, or
    patterns of them. Paths are from the working directory.
    """

    file: Path | None = None
    db: str | None = None
    user_code: tuple[str, ...] = ()
    entry: tuple[str, ...] = ()
    limits: str | None = None
    macros: tuple[str, ...] = ()

    @property
    def defaults(self) -> dict[str, Any]:
        """What options are that are not given, by the name of their parameter."""
        given = {"db": self.db, "user_code": list(self.user_code), "limits": self.limits}
        return {name: value for name, value in given.items() if value}


_KEYS = tuple(field.name for field in fields(Settings) if field.name != "file")


def find_settings() -> Settings:
    """The settings of the working directory. Raises UsageError for a file that is wrong."""
    here = Path.cwd()
    file = next((f for folder in (here, *here.parents) if (f := folder / _FILE).is_file()), None)
    return Settings() if file is None else _read(file)


def _read(file: Path) -> Settings:
    shown = os.path.relpath(file)
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown}: {error}") from None
    settings = {name: _value(shown, name, value) for name, value in given.items()}
    for name in _PATHS:
        if name in settings and "://" not in settings[name]:
            settings[name] = os.path.relpath(file.parent / settings[name])
    if "macros" in settings:
        folder = glob.escape(os.path.relpath(file.parent))
        settings["macros"] = tuple(str(Path(folder, each)) for each in settings["macros"])
    return Settings(file, **settings)


def _toml(value: Any) -> str:
    """A value as TOML, truncated."""
    if isinstance(value, bool):
        return str(value).lower()
    text = "a table" if isinstance(value, dict) else json.dumps(value, default=str)
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"


def _value(file: str, name: str, value: Any) -> Any:
    """The value of a key. Raises UsageError for an unknown key or another type."""
    if name not in _KEYS:
        from ..queries.arguments import nearest

        hint = nearest(name, _KEYS) or f"use one of {', '.join(_KEYS)}"
        raise UsageError(f"{file}: {name}: unknown; {hint}")
    if name in _PATHS:
        if not isinstance(value, str) or not value:
            example = f"{name} = {_EXAMPLES[name]}"
            raise UsageError(f"{file}: {name}: {_toml(value)} is no path: write {example}")
        return value
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        example = json.dumps([value]) if isinstance(value, str) else _EXAMPLES[name]
        raise UsageError(
            f"{file}: {name}: {_toml(value)} is no list of strings: write {name} = {example}"
        )
    return tuple(value)
