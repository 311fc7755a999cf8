"""Pairs of dumps made up, to say which facts are told as a cause."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memhouse.schema.causes.find_causes import terms_of
from memhouse.schema.causes.sides import Flag, Leaf, Pair, Part, Side

MIB = 1 << 20
_DUMP = {
    "dump_id": 1,
    "run_id": "2026-10-01",
    "workload": "llama",
    "module_name": "jit_step",
    "platform": "tpu",
    "compiler": "878335365",
    "device_kind": "TPU v5e",
    "flags_id": 1,
    "module_id": 1,
    "status": "ok",
    "oom": False,
    "has_call_options": False,
    "program_id": 1,
    "skeleton_id": 1,
    "entry_signature": "(f32[8])->f32[8]",
    "reported_total_bytes": None,
    "schedule_length": None,
    "reader_version": 1,
    "num_partitions": 4,
    "flops": None,
    "unknown_loops": 0,
    "origin": "dumped",
    "grade": 0,
    "total_bytes": 1000 * MIB,
    "peak_bytes": 900 * MIB,
    "fragmentation_bytes": 100 * MIB,
    "live_bound_bytes": 880 * MIB,
}
# Equal hashes would say that both sides have the same instructions.
_TRAITS = {"operation": {"add": 10}}


def leaf(name: str | None, shape: str, number: int = 0, **known: Any) -> Leaf:
    """An argument of 1 MiB."""
    columns: dict[str, Any] = {
        "name": name,
        "number": number,
        "index": "",
        "shape": shape,
        "layout": shape,
        "size": MIB,
        "sharding": None,
        "donated": 0,
    }
    return Leaf(**{**columns, **known})


def part(size: int, source: str | None = "zoo.py:1", **known: Any) -> Part:
    """Workspace of so many MiB at the peak, in one buffer."""
    columns: dict[str, Any] = {
        "category": "temp",
        "role": "workspace",
        "pass_": "forward",
        "owner": "",
        "operation": "dot_general",
        "shape": f"f32[{size},512,512]",
        "source": source,
        "buffers": 1,
        "counted_bytes": size * MIB,
    }
    return Part(**{**columns, **known})


def side(
    arguments: Sequence[Leaf] = (),
    results: Sequence[Leaf] = (),
    traits: dict[str, dict[str, int]] | None = None,
    labels: dict[str, str] | None = None,
    parts: Sequence[Part] = (),
    **dump: Any,
) -> Side:
    """A dump like all others but for what is given."""
    kept = leaf("kept", "f32[4]", 99)
    if parts:
        dump = {"peak_bytes": sum(part.counted_bytes for part in parts), **dump}
    return Side(
        {**_DUMP, **dump},
        labels or {},
        {**_TRAITS, **(traits or {})},
        [*arguments, kept],
        results,
        parts,
    )


def pair(a: Side, b: Side, *flags: Flag) -> Pair:
    """The second side as a dump of another program, one night later."""
    after = {**b.dump, "run_id": "2026-10-02", "dump_id": 2}
    after |= {"module_id": 2, "program_id": None} if b.dump["program_id"] == 1 else {}
    if flags:
        after["flags_id"] = 2
    return Pair(a, replace(b, dump=after), flags)


def ledger(a: Side, b: Side) -> dict[str, int | None]:
    """The terms of the ledger with their MiB; they add up to the change of the peak."""
    terms = terms_of(pair(a, b))
    change = b.dump["peak_bytes"] - a.dump["peak_bytes"]
    assert sum(term.change or 0 for term in terms) == change
    return {term.text: None if term.change is None else term.change // MIB for term in terms}


def told(a: Side, b: Side, *flags: Flag) -> list[str]:
    """What is said of two dumps of other programs, in order."""
    return [phrase.text for phrase in terms_of(pair(a, b, *flags))]
