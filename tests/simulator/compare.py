"""Holds the rows of a warehouse against a model of it."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

from ..schema.plain_history import plain_history
from .model import Model
from .observed import Observed, when
from .programs import Program
from .steps import plain_runs

# The module of each program by its name, as long as there is a simulation.
Ids = dict[tuple[str, Program], int]


def differs(model: Model, seen: Observed, ids: Ids) -> str | None:
    """How the warehouse differs from a model; None if it does not."""
    if not seen.is_there:
        return "there is no warehouse" if model.runs or model.journal else None
    model.exists = True
    for what, compare in _COMPARED.items():
        expected, found = compare(model, seen)
        if expected != found:
            return f"{what}:\n  expected {expected}\n  found    {found}"
    return _wrong_modules(model, seen, ids)


def ids_of(model: Model, seen: Observed) -> Ids:
    """The modules of the programs that are dumped."""
    return {
        (name.module, model.runs[run].dumps[name].program): row["module_id"]
        for (run, name), row in seen.dumps.items()
    }


def _wrong_modules(model: Model, seen: Observed, ids: Ids) -> str | None:
    """A program is one module wherever it is dumped, and modules that no dump has are gone."""
    for (run, name), row in seen.dumps.items():
        program = model.runs[run].dumps[name].program
        if row["status"] != "ok" or row["peak_bytes"] != program.peak_bytes:
            return f"{run} {name} is {row['status']} with {row['peak_bytes']} of {program}"
        known = ids.get((name.module, program), row["module_id"])
        if known != row["module_id"]:
            return f"{run} {name} is module {row['module_id']}; {program} was {known}"
    modules = {row["module_id"] for row in seen.dumps.values()}
    if modules != seen.modules:
        return f"modules {seen.modules ^ modules} are not those of the dumps"
    return None


_Compare = Callable[[Model, Observed], tuple[Any, ...]]


def _runs(model: Model, seen: Observed) -> tuple[Any, ...]:
    expected = {
        name: (
            when(run.at),
            when(run.claimed_at),
            when(run.entered_at),
            when(run.compiled_at),
            run.source,
        )
        for name, run in model.runs.items()
    }
    found = {
        name: (
            when(row["run_at"]),
            when(row["claimed_at"]),
            when(row["ingested_at"]),
            when(row["compiled_at"]),
            row["source"],
        )
        for name, row in seen.runs.items()
    }
    return _only_unlike(expected, found)


def _order(model: Model, seen: Observed) -> tuple[Any, ...]:
    found = sorted(seen.runs, key=lambda run: (seen.runs[run]["run_at"], seen.runs[run]["run_seq"]))
    return model.in_order(), found


def _parts(model: Model, seen: Observed) -> tuple[Any, ...]:
    expected = {
        (name, host): (part.source, when(part.entered_at))
        for name, run in model.runs.items()
        for host, part in run.parts.items()
    }
    found = {
        (row["run_id"], row["host"] or ""): (row["source"], when(row["entered_at"]))
        for row in seen.parts
    }
    return _only_unlike(expected, found)


def _labels(model: Model, seen: Observed) -> tuple[Any, ...]:
    expected = [(n, *label) for n, run in model.runs.items() for label in run.labels.items()]
    return sorted(expected), sorted((r["run_id"], r["key"], r["value"]) for r in seen.labels)


def _dumps(model: Model, seen: Observed) -> tuple[Any, ...]:
    expected = {
        (name, key): dump.host
        for name, run in model.runs.items()
        for key, dump in run.dumps.items()
    }
    return _only_unlike(expected, {key: row["host"] or "" for key, row in seen.dumps.items()})


def _journal(model: Model, seen: Observed) -> tuple[Any, ...]:
    """Compactions are entered too, and change no row."""
    numbers = [row["entry"] for row in seen.journal]
    if numbers != [*range(1, len(numbers) + 1)]:
        return "numbers from 1", numbers
    found = [
        (row["action"], row["run_id"], row["host"], when(row["entered_at"]))
        for row in seen.journal
        if row["action"] != "compact"
    ]
    expected = [(*entry, when(at)) for *entry, at in model.journal]
    return _in_groups(expected), _in_groups(found)


# An entry a run of one command; what entered last is asked of the others.
_OF_MANY_RUNS = ("prune", "label", "accept")


def _in_groups(entries: list[Any]) -> list[Any]:
    """The entries; those of one `prune` or the like in the order of their runs."""
    groups = groupby(entries, key=lambda entry: (entry[0], entry[-1]))
    return [
        entry
        for (action, _), group in groups
        for entry in (sorted(group, key=repr) if action in _OF_MANY_RUNS else group)
    ]


def _accepted(model: Model, seen: Observed) -> tuple[Any, ...]:
    names = {row["dump_id"]: key for key, row in seen.dumps.items()}
    expected = [(e.run, e.name, e.peak_bytes, e.reason) for e in model.accepted]
    found = [
        (*names.get(row["dump_id"], (None, None)), row["accepted_bytes"], row["reason"])
        for row in seen.accepted
    ]
    return sorted(expected), sorted(found)


def _only_unlike(expected: dict[Any, Any], found: dict[Any, Any]) -> tuple[Any, ...]:
    """What only one of them has, or what differs."""
    keys = [k for k in {**expected, **found} if expected.get(k) != found.get(k)]
    keys += expected.keys() ^ found.keys()
    keys = [*dict.fromkeys(keys)]
    return {k: expected[k] for k in keys if k in expected}, {
        k: found[k] for k in keys if k in found
    }


def _lineages(model: Model, seen: Observed) -> tuple[Any, ...]:
    expected = plain_history(plain_runs(model), seen.plain, seen.histories)
    return _only_unlike(expected.lineages, seen.histories.lineages)


def _links(model: Model, seen: Observed) -> tuple[Any, ...]:
    """Which dump follows which."""
    expected = plain_history(plain_runs(model), seen.plain, seen.histories)
    return _only_unlike(expected.links, seen.histories.links)


def _gone(model: Model, seen: Observed) -> tuple[Any, ...]:
    return plain_history(plain_runs(model), seen.plain, seen.histories).gone, seen.histories.gone


_COMPARED: dict[str, _Compare] = {
    "runs": _runs,
    "the order of runs": _order,
    "parts": _parts,
    "labels": _labels,
    "dumps": _dumps,
    "journal": _journal,
    "accepted": _accepted,
    "lineages": _lineages,
    "links": _links,
    "gone": _gone,
}
