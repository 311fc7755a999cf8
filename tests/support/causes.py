"""Pairs of dumps made up, to say which facts are told as a cause."""

from collections.abc import Sequence
from typing import Any

from memhouse.schema.causes.changes import in_order
from memhouse.schema.causes.find_causes import phrases_of
from memhouse.schema.causes.sides import Flag, Leaf, Pair, Side

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


def side(
    arguments: Sequence[Leaf] = (),
    results: Sequence[Leaf] = (),
    traits: dict[str, dict[str, int]] | None = None,
    labels: dict[str, str] | None = None,
    **dump: Any,
) -> Side:
    """A dump like all others but for what is given."""
    kept = leaf("kept", "f32[4]", 99)
    return Side(
        {**_DUMP, **dump},
        labels or {},
        {**_TRAITS, **(traits or {})},
        [*arguments, kept],
        results,
    )


def told(a: Side, b: Side, *flags: Flag) -> list[str]:
    """What is said of two dumps of other programs, in order."""
    after = {**b.dump, "run_id": "2026-10-02", "dump_id": 2}
    after |= {"module_id": 2, "program_id": None} if b.dump["program_id"] == 1 else {}
    if flags:
        after["flags_id"] = 2
    changed = Side(after, b.versions, b.traits, b.arguments, b.results)
    return [phrase.text for phrase in in_order(phrases_of(Pair(a, changed, flags)))]
