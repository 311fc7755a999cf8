"""What differs between two runs, or two modules: figures, buffers, and the likely cause."""

from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ..schema.stores.duckdb import fetch
from .catalogue import command_query

Row = dict[str, Any]


@dataclass
class ModuleDiff:
    """A module in A and in B; either is None where it is missing.

    figures: memory_space, figure, a_bytes, b_bytes, change_bytes; buffers by memory space:
    their change_bytes add up to that of peak_bytes; flags: flag, a_value, b_value; causes:
    what else differs, a sentence each.
    """

    name: str
    a: Row | None
    b: Row | None
    figures: list[Row] = field(default_factory=list)
    buffers: dict[int, list[Row]] = field(default_factory=dict)
    flags: list[Row] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Both are there, and are the same module."""
        return (
            self.a is not None
            and self.b is not None
            and self.a["module_id"] == self.b["module_id"]
            and not self.flags
        )


def diff_runs(
    connection: sa.Connection, a_run: str, b_run: str, workload: str | None
) -> list[ModuleDiff]:
    """Each series that run A or B has, in order of workload."""
    pairs = fetch(connection, command_query("diff_pairs"), [a_run, b_run, workload])
    return [diff_dumps(connection, row["a_dump_id"], row["b_dump_id"]) for row in pairs.to_pylist()]


def diff_dumps(
    connection: sa.Connection, a_dump_id: int | None, b_dump_id: int | None
) -> ModuleDiff:
    """One module in A and B."""
    a, b = _dump(connection, a_dump_id), _dump(connection, b_dump_id)
    there = b or a
    assert there is not None, "one of the two is there"
    names = dict.fromkeys(_name(row) for row in (a, b) if row is not None)
    diff = ModuleDiff(" → ".join(names), a, b)
    if a is None or b is None:
        diff.causes.append(f"only in {there['run_id']}")
        return diff
    flag_sets = [a["flags_id"], b["flags_id"]]
    if None not in flag_sets:
        diff.flags = fetch(connection, command_query("diff_flags"), flag_sets).to_pylist()
    modules = [a["module_id"], b["module_id"]]
    if None not in modules and modules[0] != modules[1]:
        diff.figures = fetch(connection, command_query("diff_figures"), modules).to_pylist()
        for space in sorted({row["memory_space"] for row in diff.figures}):
            rows = fetch(connection, command_query("diff_buffers"), [*modules, space])
            diff.buffers[space] = rows.to_pylist()
    diff.causes = _causes(diff, a, b)
    return diff


def _dump(connection: sa.Connection, dump_id: int | None) -> Row | None:
    if dump_id is None:
        return None
    row: Row = fetch(connection, command_query("diff_dump"), [dump_id]).to_pylist()[0]
    return row


def _name(row: Row) -> str:
    number = f" #{row['occurrence']}" if row["occurrence"] > 1 else ""
    return f"{row['workload']}/{row['module_name']}{number}"


def _causes(diff: ModuleDiff, a: Row, b: Row) -> list[str]:
    """What else differs between the two, in sentences, the likeliest cause first."""
    causes = []
    for row in (a, b):
        if row["oom"]:
            causes.append(f"in {row['run_id']} XLA ran out of memory")
        if row["status"] != "ok":
            causes.append(f"the dump of {row['run_id']} is {row['status']}: see `dump_files`")
    # A dump that failed has no signature to differ.
    if (
        None not in (a["module_id"], b["module_id"])
        and a["entry_signature"] != b["entry_signature"]
    ):
        causes.append("the shapes of arguments or results differ")
    causes += _donation(diff)
    if a["compiler"] != b["compiler"]:
        causes.append(f"the compiler differs: {a['compiler']} and {b['compiler']}")
    if diff.flags:
        causes.append(f"{len(diff.flags)} compiler flags differ")
    if a["device_kind"] != b["device_kind"]:
        causes.append(f"the device differs: {a['device_kind']} and {b['device_kind']}")
    if not causes and a["module_id"] != b["module_id"]:
        causes.append("the program differs; arguments, results, compiler and flags do not")
    return causes


def _donation(diff: ModuleDiff) -> list[str]:
    """Whether arguments came to be donated, or are no longer: that shows in alias_bytes."""
    for row in diff.figures:
        if row["memory_space"] == 0 and row["figure"] == "alias_bytes":
            if not row["b_bytes"]:
                return ["the arguments are no longer donated"]
            if not row["a_bytes"]:
                return ["the arguments are now donated"]
            return [f"{'more' if row['change_bytes'] > 0 else 'less'} of the arguments is donated"]
    return []
