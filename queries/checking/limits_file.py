"""limits.toml: the limits for all workloads and for single ones, which then replace the former.

max_growth = ["2%", "64MiB"]    # each must hold
max_bytes = "15.75GiB"          # or a part of the device's memory: "95% of device"

[workload.llama-v5e]
max_growth = "10%"
"""

import os
import re
import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from ...schema.errors import UsageError
from ..arguments import metric_column
from .policy import (
    Limits,
    Outcome,
    Policy,
    Threshold,
    Thresholds,
    parse_growth,
    parse_most,
    parse_size,
)


def _each(parse: Callable[[str], Threshold]) -> BeforeValidator:
    """A validator of one text, or of a list of texts."""

    def parsed(given: Any) -> Thresholds:
        texts = given if isinstance(given, list) else [given]
        return tuple(parse(text if isinstance(text, str) else str(text)) for text in texts)

    return BeforeValidator(parsed)


_Growth = Annotated[Thresholds, _each(parse_growth)]
_Most = Annotated[Thresholds, _each(parse_most)]
_Size = Annotated[Thresholds, _each(parse_size)]


def _metric(given: object) -> str:
    """A metric by its name. Raises ValueError."""
    try:
        return metric_column(str(given))
    except UsageError as error:
        raise ValueError(str(error)) from None


class _Table(BaseModel):
    """The settings of a workload; those that the file does not set stay as they are for all."""

    model_config = ConfigDict(extra="forbid")

    max_growth: _Growth = ()
    max_drift: _Growth = ()
    max_bytes: _Most = ()
    max_padding: _Growth = ()
    max_scoped_bytes: _Size = ()
    lost_donation: _Growth = ()
    new: Outcome = "pass"
    gone: Outcome = "pass"

    def over(self, limits: Limits) -> Limits:
        """The limits, with what the file sets in their place."""
        names = self.model_fields_set & _Table.model_fields.keys()
        return Limits(**vars(limits) | {name: getattr(self, name) for name in names})


class _File(_Table):
    """The whole file."""

    baseline: str | None = None
    figure: Annotated[str | None, BeforeValidator(_metric)] = None
    workload: dict[str, _Table] = {}


def read_limits(path: str | os.PathLike[str], default: Limits) -> Policy:
    """The policy in a file; what it does not set stays as in `default`. Raises UsageError."""
    try:
        return parse_limits(Path(path).read_text(encoding="utf-8"), default, os.fspath(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", "limits") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}", "limits") from None


def parse_limits(toml: str, default: Limits, name: str = "limits.toml") -> Policy:
    """The policy in the text of a file of a name. Raises ValueError, with a message of one line."""
    try:
        document = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    try:
        file = _File.model_validate(document)
    except ValidationError as error:
        raise ValueError("; ".join(_told(toml, wrong) for wrong in error.errors())) from None
    top = file.over(default)
    workloads = {name: table.over(top) for name, table in file.workload.items()}
    sources = dict.fromkeys(file.model_fields_set, name)
    return Policy(top, workloads, file.baseline, sources=sources, metric=file.figure)


def _told(toml: str, wrong: Any) -> str:
    """What is wrong, with its line and key, in a user's words."""
    *tables, key = map(str, wrong["loc"])
    line = _line_of(toml, tables[1:], key)
    at = f"line {line}: " if line else ""
    match wrong["type"]:
        case "extra_forbidden":
            fields = (_Table if tables else _File).model_fields
            near = get_close_matches(key, fields, 1)
            hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(fields)}"
            return f"{at}{key}: unknown; {hint}"
        case "value_error":
            return f"{at}{key}: {wrong['ctx']['error']}"
        case "literal_error":
            return f"{at}{key}: {wrong['input']!r} is none of 'pass', 'warn', 'fail'"
        case "model_type" | "dict_type":
            return f"{at}[workload.NAME] is a table for each workload"
        case _:
            return f"{at}{key}: {wrong['msg'].lower()}"


def _line_of(toml: str, tables: list[str], key: str) -> int | None:
    """The line that sets a key of the file, or of a workload's table; None if it is not found."""
    is_here = not tables
    for number, line in enumerate(toml.splitlines(), 1):
        if header := re.match(r"\s*\[(.*)\]", line):
            named = header[1].replace('"', "").replace("'", "").strip()
            is_here = named == ".".join(["workload", *tables]) if tables else False
            if named.rpartition(".")[2] == key:
                return number
        elif is_here and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""", line):
            return number
    return None
