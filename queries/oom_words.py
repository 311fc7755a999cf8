"""The sentences that say by how much memory ran out, and of which memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from .cells import counted, human_bytes

_NAMES = {"hbm": "HBM", "vmem": "VMEM", "smem": "SMEM", "gpu": "GPU memory", "host": "memory"}
# Figures are rounded to two digits of their unit; more is another need.
_SAME = 0.001
# So many dumps that a message may be of are named.
_NAMED = 3
_PARTS = (
    ("reserved", "reserved_bytes"),
    ("program", "program_bytes"),
    ("arguments", "argument_bytes"),
    ("output", "output_bytes"),
    ("temporaries", "temp_bytes"),
)


def size_of(report: Mapping[str, Any], name: str) -> str:
    """A size of a report; ~ says that XLA printed it rounded."""
    size = report[name]
    is_rounded = report["is_rounded"] and size >= 1024
    return f"{'~' if is_rounded else ''}{human_bytes(size)}"


def space_of(report: Mapping[str, Any]) -> str:
    """The memory's name as people write it."""
    name = report["space_name"]
    return "memory" if name is None else _NAMES.get(name, name.upper())


def title_of(report: Mapping[str, Any]) -> str:
    """By how much of which memory."""
    space = space_of(report)
    over = None if report["exceeded_bytes"] is None else size_of(report, "exceeded_bytes")
    match report["kind"]:
        case "scoped":
            who = f"kernel {report['instruction'] or '(not named)'}"
            if report["requested_bytes"] is None:
                return f"out of scoped {space}: {who} is over its limit; the message is cut"
            return (
                f"out of scoped {space}: {who} asks for {size_of(report, 'requested_bytes')}, its "
                f"limit is {size_of(report, 'limit_bytes')}: {over} too much"
            )
        case "allocation":
            who = report["instruction"]
            who = f"a block of kernel {who}" if who and space != "HBM" else "one array"
            if report["requested_bytes"] is None:
                return f"out of {space}: {who} is larger than the memory; the message is cut"
            return (
                f"out of {space}: {who} takes {size_of(report, 'requested_bytes')}, the chip has "
                f"{size_of(report, 'capacity_bytes')}: {over} too much"
            )
        case "runtime":
            wanted = "the allocation"
            if report["requested_bytes"] is not None:
                wanted = f"an allocation of {size_of(report, 'requested_bytes')}"
            if report["free_bytes"] is None:
                return f"out of {space} while running: {wanted} failed"
            return (
                f"out of {space} while running: {wanted} failed, "
                f"{size_of(report, 'free_bytes')} were free"
            )
    if report["used_bytes"] is None:
        cut = "; the message lacks its figures" if report["is_cut"] else ""
        return f"out of {space}: the program does not fit{cut}"
    if report["capacity_bytes"] is None:
        return f"out of {space}: the program needs {size_of(report, 'used_bytes')}"
    return (
        f"out of {space}: the program needs {size_of(report, 'used_bytes')}, the chip has "
        f"{size_of(report, 'capacity_bytes')}: {over} too much"
    )


def parts_of(
    report: Mapping[str, Any],
    dump: Mapping[str, Any] | None,
    fits: Sequence[Mapping[str, Any]] = (),
) -> tuple[str, ...]:
    """Where the message stands, of what module it is, and the parts of the need.

    `fits`: the dumps that the message may be of, if they are several.
    """
    facts = []
    if report["message"]:
        line = "" if report["line"] is None else f":{report['line']}"
        times = f", {counted(report['times'], 'time')}" if report["times"] > 1 else ""
        facts.append(f"message: {report['path']}{line}{times}")
    if dump is not None:
        device = f", {dump['device_kind']}" if dump["device_kind"] else ""
        facts.append(
            f"module:  {dump['workload']}/{dump['module_name']} of run {dump['run_id']}{device}"
        )
    elif report["module_name"]:
        facts.append(f"module:  {report['module_name']}")
    if dump is None and len(fits) > 1:
        facts.append(f"dumps:   fits {_listed(fits)}: memhouse oom cannot tell which")
    if report["op_name"] or report["source_file"]:
        where = f"{report['source_file']}:{report['source_line']}" if report["source_file"] else ""
        facts.append("line:    " + " ".join(filter(None, (where, report["op_name"]))))
    parts = [
        f"{name} {size_of(report, column)}"
        for name, column in _PARTS
        if report["message"] and report[column] is not None
    ]
    if parts:
        facts.append(f"parts:   {', '.join(parts)}")
    if report["is_cut"] and report["kind"] == "program" and report["used_bytes"] is not None:
        facts.append("cut:     the message is not whole, or its lines were joined into one")
    if dump is not None and dump["total_bytes"] is not None and report["kind"] == "program":
        facts += _of_dump(report, dump)
    return tuple(facts)


def _listed(dumps: Sequence[Mapping[str, Any]]) -> str:
    names = [f"{row['workload']}/{row['module_name']}" for row in dumps]
    if len({row["run_id"] for row in dumps}) > 1:
        names = [f"{name} of run {row['run_id']}" for name, row in zip(names, dumps, strict=True)]
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _of_dump(report: Mapping[str, Any], dump: Mapping[str, Any]) -> list[str]:
    total = dump["total_bytes"]
    parts = ", ".join(
        f"{name} {human_bytes(dump[column])}"
        for name, column in (
            ("arguments", "argument_bytes"),
            ("outputs", "output_bytes"),
            ("temporaries", "temp_bytes"),
        )
        if dump[column]
    )
    said = [f"dump:    {human_bytes(total)}: {parts}"]
    used = report["used_bytes"]
    if used is not None and total - used > _SAME * total:
        said.append(f"the message counts {human_bytes(total - used)} less than the dump")
    return said
