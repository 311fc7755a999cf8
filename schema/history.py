"""Chains of dumps: which dump follows which from run to run.

A group is the dumps of one workload, module name and platform. In most groups each run has one
dump, and the chain is the group. If a run has several modules of one name, a dump follows
the chain whose last dump has the same content, else the same entry signature, else the chain
of the same order if as many chains as dumps are left. Otherwise the dump begins a chain.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from .ids import series_id

_Row = dict[str, Any]


def worked_out(connection: duckdb.DuckDBPyConnection, run_id: str | None = None) -> pa.Table:
    """The rows of `history`, computed from the stored dumps.

    With `run_id`, only the rows of the groups that have a dump in this run.
    """
    groups = connection.sql(_sql("history_groups"), params=[run_id]).to_arrow_table()
    series, numbered = _series(groups.to_pylist(), connection)
    connection.register("chain_series", series)
    connection.register("chain_numbers", numbered)
    try:
        return connection.sql(_sql("history")).to_arrow_table()
    finally:
        connection.unregister("chain_series")
        connection.unregister("chain_numbers")


def _series(
    groups: Sequence[_Row], connection: duckdb.DuckDBPyConnection
) -> tuple[pa.Table, pa.Table]:
    """The chains of these groups, and the chain number of each dump in a shared group."""
    numbered: list[_Row] = []
    counts: dict[int, int] = {}
    shared = [group["group_id"] for group in groups if group["most_dumps"] > 1]
    if shared:
        found = connection.sql(_sql("history_shared_groups"), params=[shared]).to_arrow_table()
        for group_id, dumps in groupby(found.to_pylist(), key=lambda row: row["group_id"]):
            numbers = number_chains(list(dumps))
            numbered += [{"dump_id": dump, "number": number} for dump, number in numbers.items()]
            counts[group_id] = max(numbers.values())
    series = [
        {
            "group_id": group["group_id"],
            "number": number,
            "series_id": series_id(
                group["workload"], group["module_name"], group["platform"], number
            ),
        }
        for group in groups
        for number in range(1, counts.get(group["group_id"], 1) + 1)
    ]
    return (
        pa.Table.from_pylist(
            series,
            schema=pa.schema(
                [("group_id", pa.int64()), ("number", pa.int32()), ("series_id", pa.int64())]
            ),
        ),
        pa.Table.from_pylist(
            numbered, schema=pa.schema([("dump_id", pa.int64()), ("number", pa.int32())])
        ),
    )


@dataclass
class _Chain:
    """A chain so far: its last dump and the number of this dump's run."""

    number: int
    run_number: int
    last: _Row


def number_chains(dumps: Iterable[_Row]) -> dict[int, int]:
    """The chain number of each dump of one group, by dump_id.

    dumps: dump_id, run_number, module_id, signature_id; in order of run and place in the run.
    """
    chains: list[_Chain] = []
    numbers: dict[int, int] = {}
    for run_number, run in groupby(dumps, key=lambda dump: dump["run_number"]):
        waiting = list(run)
        alive = [chain for chain in chains if chain.run_number == run_number - 1]
        asleep = [chain for chain in chains if chain.run_number < run_number - 1]
        pairs: list[tuple[_Chain, _Row]] = []
        for pair in (_by("module_id"), _by("signature_id"), _in_order):
            for candidates in (alive, asleep):
                for chain, dump in pair(candidates, waiting):
                    candidates.remove(chain)
                    waiting.remove(dump)
                    pairs.append((chain, dump))
        for dump in waiting:
            chains.append(_Chain(len(chains) + 1, run_number, dump))
            pairs.append((chains[-1], dump))
        for chain, dump in pairs:
            chain.run_number, chain.last = run_number, dump
            numbers[dump["dump_id"]] = chain.number
    return numbers


_Pairs = list[tuple[_Chain, _Row]]


def _by(key: str) -> Callable[[list[_Chain], list[_Row]], _Pairs]:
    """Pair the k-th chain with the k-th dump of an equal key; nulls are never equal."""

    def pair(chains: list[_Chain], dumps: list[_Row]) -> _Pairs:
        pairs: _Pairs = []
        left = list(chains)
        for dump in dumps:
            same = (c for c in left if dump[key] is not None and c.last[key] == dump[key])
            chain = next(same, None)
            if chain is not None:
                left.remove(chain)
                pairs.append((chain, dump))
        return pairs

    return pair


def _in_order(chains: list[_Chain], dumps: list[_Row]) -> _Pairs:
    """Pair in order if the counts are equal; otherwise the pairs are unknown."""
    return list(zip(chains, dumps, strict=True)) if len(chains) == len(dumps) else []


def _sql(name: str) -> str:
    return (resources.files(__package__) / f"{name}.sql").read_text()
