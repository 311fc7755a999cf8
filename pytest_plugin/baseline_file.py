"""The baseline: a TOML file under version control, with the peaks that tests were accepted with."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..schema.errors import UsageError
from .before import Before, Change, WhatChanged
from .measured import Measured, platform_in

_HEAD = """\
# What tests with limit_memory(growth=...) may grow from: peaks in bytes, and who owns them.
# `pytest --memory-update` writes this file.
"""
# An owner of less of the peak is not worth a line.
_WORTH = 0.01
Tests = dict[str, dict[str, dict[str, Any]]]


def read_baseline(file: Path) -> Tests:
    """For each test the programs, each with peak_bytes and owners; empty if there is no file.

    Raises UsageError for a file that is no baseline.
    """
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{file}: {why}: {_MEND}") from None
    for test, programs in found.items():
        for key, entry in (programs if isinstance(programs, dict) else {"": None}).items():
            if not _is_entry(entry):
                where = f"[{_text(test)}.{_text(key)}]"
                raise UsageError(f"{file}: {where} is no entry of a baseline: {_MEND}")
    return found


_MEND = "mend it, or delete it and run pytest --memory-update"


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("owners", {}), dict):
        return False
    sizes = [entry.get("peak_bytes"), *entry.get("owners", {}).values()]
    return all(isinstance(size, int) and size >= 0 for size in sizes)


def before_in(tests: Tests, file: str, test: str, measured: Measured) -> Before | None:
    """What a baseline says of a program of a test."""
    entry = tests.get(test, {}).get(measured.key)
    if entry is None:
        return None
    peak, owners = entry["peak_bytes"], entry.get("owners", {})
    return Before(
        file,
        peak,
        bool(entry.get("is_estimate")),
        "pytest --memory-update",
        lambda: WhatChanged(tuple(_changes(owners, _WORTH * peak, measured))),
    )


def _changes(before: dict[str, int], worth: float, measured: Measured) -> list[Change]:
    """The owners whose bytes changed; what is not worth a line in the baseline may be as it was.

    A line that is gone and a new one of its file that is much like it are the same line, edited.
    """
    now, places = measured.owners, {line.text: line.where for line in reversed(measured.lines)}
    came = [owner for owner, size in now.items() if owner not in before and size >= worth]
    gone = [owner for owner in before if owner not in now]
    was = {owner: before.get(owner, 0) for owner in (*came, *(o for o in now if o in before))}
    for owner in tuple(gone):
        file, _, code = owner.partition(": ")
        new = {o.partition(": ")[2]: o for o in came if o.startswith(f"{file}: ") and not was[o]}
        for same in get_close_matches(code, new, n=1):
            was[new[same]] = before[owner]
            gone.remove(owner)
    changes = [Change(now[owner] - size, _shown(owner, places)) for owner, size in was.items()]
    changes += [Change(-before[owner], f"{owner} (gone)") for owner in gone]
    changed = [each for each in changes if each.change_bytes]
    return sorted(changed, key=lambda each: (-abs(each.change_bytes), each.owner))


def _shown(owner: str, places: Mapping[str, str]) -> str:
    where = places[owner]
    return owner if where == owner else f"{where}  {owner.partition(': ')[2]}"


def entries(measured: Iterable[Measured]) -> dict[str, dict[str, Any]]:
    """The programs of one test as the baseline keeps them."""
    return {each.key: _entry(each) for each in measured}


def _entry(measured: Measured) -> dict[str, Any]:
    least = _WORTH * measured.peak_bytes
    estimate = {"is_estimate": True} if measured.is_estimate else {}
    owners = {owner: size for owner, size in measured.owners.items() if size >= least}
    return {"peak_bytes": measured.peak_bytes, **estimate, "owners": owners}


def joined(before: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """The entries of a test that ran: what it took on other platforms stays."""
    ran = {platform_in(key) for key in measured}
    return {key: each for key, each in before.items() if platform_in(key) not in ran} | measured


def write_baseline(file: Path, tests: Tests) -> None:
    """Write the baseline, in order of tests; the file is whole at every moment. Raises OSError."""
    texts = [_HEAD]
    for test, programs in sorted(tests.items()):
        for key, entry in sorted(programs.items()):
            texts.append(f"\n[{_text(test)}.{_text(key)}]\n")
            texts.append(f"peak_bytes = {entry['peak_bytes']}\n")
            if entry.get("is_estimate"):
                texts.append("is_estimate = true\n")
            for owner, size in sorted(entry.get("owners", {}).items(), key=lambda o: (-o[1], o[0])):
                texts.append(f"owners.{_text(owner)} = {size}\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text("".join(texts), encoding="utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _text(text: str) -> str:
    """A text as TOML writes it: as JSON does, but for the one character that only TOML escapes."""
    told = text.encode(errors="backslashreplace").decode()
    return json.dumps(told, ensure_ascii=False).replace("\x7f", "\\u007f")
