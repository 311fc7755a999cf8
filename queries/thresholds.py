"""Thresholds of `memhouse check`: how much a figure may grow, how large it may be.

A TOML file sets them for all workloads and for single ones, which then replace the former:

    max_growth = ["2%", "64MiB"]    # each must hold
    max_bytes = "15.75GiB"          # or a part of the device's memory: "95% of device"

    [workload.llama-v5e]
    max_growth = "10%"
"""

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..schema.errors import UsageError
from .units import UNITS

_DEFAULT_GROWTH = ("1%",)
_SIZE = re.compile(r"^(\d+(?:\.\d+)?) ?([KMGTP]?i?B)$")
_PERCENT = re.compile(r"^(\d+(?:\.\d+)?) ?%$")
_OF_DEVICE = re.compile(r"^(\d+(?:\.\d+)?) ?% of device$")


@dataclass(frozen=True)
class Threshold:
    """A number of bytes, or a percentage of something."""

    amount: float
    is_percent: bool
    text: str

    def of(self, base: float) -> float:
        """The threshold in bytes."""
        return base * self.amount / 100 if self.is_percent else self.amount


@dataclass(frozen=True)
class Limits:
    """What one workload is held to; without `max_bytes` its size has no limit."""

    max_growth: tuple[Threshold, ...] = ()
    max_bytes: Threshold | None = None


@dataclass(frozen=True)
class Policy:
    """What all workloads are held to."""

    default: Limits
    workloads: dict[str, Limits] = field(default_factory=dict)

    def limits(self, workload: str) -> Limits:
        """A workload's own limits, else those of all."""
        return self.workloads.get(workload, self.default)


def read_policy(
    max_growth: Sequence[str] | None = None, limits: str | os.PathLike[str] | None = None
) -> Policy:
    """The policy of these growths, 1% if there are none, and of a TOML file.

    Raises UsageError.
    """
    try:
        default = Limits(tuple(parse_growth(text) for text in max_growth or _DEFAULT_GROWTH))
    except ValueError as error:
        raise UsageError(str(error), "max_growth") from None
    if limits is None:
        return Policy(default)
    try:
        return parse_policy(Path(limits).read_text(), default)
    except OSError as error:
        raise UsageError(f"{limits}: {error.strerror or error}", "limits") from None
    except ValueError as error:
        raise UsageError(f"{limits}: {error}", "limits") from None


def parse_growth(text: str) -> Threshold:
    """`2%` or `64MiB`. Raises ValueError."""
    if match := _PERCENT.match(text):
        return Threshold(float(match[1]), True, text)
    return _parse_size(text)


def parse_policy(toml: str, default: Limits) -> Policy:
    """A policy file's text; what it does not set stays as in `default`. Raises ValueError."""
    try:
        document = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    tables = document.pop("workload", {})
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise ValueError("[workload.NAME] is a table for each workload")
    top = _parse_limits(document, default)
    return Policy(top, {name: _parse_limits(table, top) for name, table in tables.items()})


def _parse_limits(table: dict[str, Any], default: Limits) -> Limits:
    unknown = table.keys() - {"max_growth", "max_bytes"}
    if unknown:
        raise ValueError(f"unknown setting {sorted(unknown)[0]!r}: use max_growth or max_bytes")
    growth, size = default.max_growth, default.max_bytes
    if "max_growth" in table:
        given = table["max_growth"]
        texts = given if isinstance(given, list) else [given]
        growth = tuple(parse_growth(str(text)) for text in texts)
    if "max_bytes" in table:
        text = str(table["max_bytes"])
        match = _OF_DEVICE.match(text)
        if match is None and _PERCENT.match(text):
            raise ValueError(f"{text!r} of what? write '{text} of device', or a size such as 15GiB")
        size = Threshold(float(match[1]), True, text) if match else _parse_size(text)
    return Limits(growth, size)


def _parse_size(text: str) -> Threshold:
    match = _SIZE.match(text)
    if match is None or match[2] not in UNITS:
        raise ValueError(f"{text!r} is neither a percentage such as 2% nor a size such as 64MiB")
    return Threshold(float(match[1]) * UNITS[match[2]], False, text)
