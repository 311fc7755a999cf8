"""Why memory ran out: by how much, what fills it, whose lines, and what to look at first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from ..advice.advise import advise
from ..advice.finding import Finding, in_a_line
from ..queries.catalogue import statement
from ..queries.owners import owners
from ..queries.result import Result, Rows, counted, without_layout
from ..queries.runs import require_runs
from ..schema import arrow
from ..schema.errors import UsageError
from ..schema.oom_dumps import dump_of, dumps_that_fit
from ..schema.readable import command, human_bytes
from ..schema.store import Store
from ..xla.frames import is_library

# The sentences that say by how much memory ran out, and of which memory.

_NAMES = {"gpu": "GPU memory", "host": "memory", "shared": "a GPU's shared memory"}
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
    over = ""
    if report["exceeded_bytes"] is not None:
        over = f": {size_of(report, 'exceeded_bytes')} too much"
    match report["kind"]:
        case "scoped":
            return _title_of_kernel(report, over)
        case "allocation":
            who = report["instruction"]
            who = f"a block of kernel {who}" if who and space != "HBM" else "one array"
            if report["requested_bytes"] is None:
                return f"out of {space}: {who} is larger than the memory; the message is cut"
            return (
                f"out of {space}: {who} takes {size_of(report, 'requested_bytes')}, the chip has "
                f"{size_of(report, 'capacity_bytes')}{over}"
            )
        case "runtime":
            return _title_at_run_time(report)
    if report["used_bytes"] is None and report["program_bytes"] is None:
        cut = "; the message lacks its figures" if report["is_cut"] else ""
        return f"out of {space}: the program does not fit{cut}"
    if report["used_bytes"] is None:
        arguments = ""
        if report["argument_bytes"]:
            arguments = f", and its arguments {size_of(report, 'argument_bytes')}"
        return f"out of {space}: the program needs {size_of(report, 'program_bytes')}{arguments}"
    if report["capacity_bytes"] is None:
        return f"out of {space}: the program needs {size_of(report, 'used_bytes')}"
    return (
        f"out of {space}: the program needs {size_of(report, 'used_bytes')}, the chip has "
        f"{size_of(report, 'capacity_bytes')}{over}"
    )


def _title_of_kernel(report: Mapping[str, Any], over: str) -> str:
    """One kernel over its limit, or all kernels of a program together."""
    scoped = "" if report["space_name"] == "shared" else "scoped "
    space = f"{scoped}{space_of(report)}"
    who = f"kernel {report['instruction']}" if report["instruction"] else "a kernel"
    if None not in (report["requested_bytes"], report["limit_bytes"]):
        return (
            f"out of {space}: {who} asks for {size_of(report, 'requested_bytes')}, its limit is "
            f"{size_of(report, 'limit_bytes')}{over}"
        )
    if None not in (report["used_bytes"], report["capacity_bytes"]):
        return (
            f"out of {space}: {size_of(report, 'used_bytes')} are needed, the limit is "
            f"{size_of(report, 'capacity_bytes')}{over}"
        )
    return f"out of {space}: {who} is over its limit; the message lacks its figures"


def _title_at_run_time(report: Mapping[str, Any]) -> str:
    wanted = "the allocation"
    if report["requested_bytes"] is not None:
        wanted = f"an allocation of {size_of(report, 'requested_bytes')}"
    there = ""
    if report["free_bytes"] is not None:
        all_of = f" of {size_of(report, 'capacity_bytes')}" if report["capacity_bytes"] else ""
        there = f", {size_of(report, 'free_bytes')}{all_of} were free"
    if report["used_bytes"] is not None:
        there += f"; the program needs {size_of(report, 'used_bytes')} in all"
    return f"out of {space_of(report)} while running: {wanted} failed{there}"


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
        file, line = report["source_file"], report["source_line"] or "?"
        where = f"{file}:{line}" if file else ""
        facts.append("line:    " + " ".join(filter(None, (where, report["op_name"]))))
    parts = [
        f"{name} {size_of(report, column)}"
        for name, column in _PARTS
        if report["message"] and report[column] is not None
    ]
    if parts:
        facts.append(f"parts:   {', '.join(parts)}")
    if report["is_cut"] and report["kind"] == "program" and report["used_bytes"] is not None:
        facts.append("cut:     the message is not whole")
    if dump is not None and dump["total_bytes"] is not None and report["kind"] == "program":
        facts += _words_of_dump(report, dump)
    return tuple(facts)


def _listed(dumps: Sequence[Mapping[str, Any]]) -> str:
    names = [f"{row['workload']}/{row['module_name']}" for row in dumps]
    if len({row["run_id"] for row in dumps}) > 1:
        names = [f"{name} of run {row['run_id']}" for name, row in zip(names, dumps, strict=True)]
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _words_of_dump(report: Mapping[str, Any], dump: Mapping[str, Any]) -> list[str]:
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


# What to look at first when memory ran out. Sizes say what something takes, not what is saved.

# A part that is smaller than this share of the peak is not worth a line.
_WORTH_OF_PEAK = 0.02
_MOST = 4
_TILES_PAD = 1.5
MORE_WITHOUT = (
    "for exact sizes, dump the module, then `memhouse ingest --run NAME DIR LOG`:",
    "  memhouse record -- python train.py",
    "  or XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text' python train.py",
)
# The message names no program: any of those that run may be too large, or what they leave.
MORE_AT_RUN_TIME = (
    "for what each takes, dump all, then `memhouse ingest DIR; memhouse peaks`:",
    *MORE_WITHOUT[1:],
)
_WINDOW = re.compile(
    r"(?P<way>input|output) window allocation for operator (?:input|output) (?P<number>\d+)"
    r".*?window shape is (?P<window>\w+\[[^\]]*\]).*?full shape is (?P<full>\w+\[[^\]]*\])",
    re.DOTALL,
)
_Facts = Mapping[str, Any]


def advice_of_dump(
    report: _Facts,
    dump: _Facts,
    owners: Sequence[_Facts],
    changes: Sequence[Finding],
    buffers: Sequence[_Facts],
) -> tuple[str, ...]:
    """What to look at first, from the dump: what is known to lower the peak, then what is large."""
    peak = dump["peak_bytes"] or 1
    advice: list[tuple[int, str]] = []
    capacity = report["capacity_bytes"]
    arguments = dump["argument_bytes"] or 0
    if capacity is not None and arguments > capacity:
        advice.append((peak + 1, _arguments_alone(human_bytes(arguments))))
    lines = [row for row in owners if not row["source"].startswith("(") and ":" in row["source"]]
    if lines and lines[0]["counted_bytes"] > _WORTH_OF_PEAK * peak:
        size = lines[0]["counted_bytes"]
        advice.append((size, f"{lines[0]['source']} makes {human_bytes(size)} of the peak"))
    wasted = dump["fragmentation_bytes"] or 0
    if wasted > _WORTH_OF_PEAK * peak:
        advice.append((wasted, f"packing the temporaries wastes {human_bytes(wasted)}"))
    advice.sort(key=lambda line: -line[0])
    alone = [text for size, text in advice if size > peak]
    large = [text for size, text in advice if size <= peak]
    return (*alone, *_padding(buffers), *map(in_a_line, changes), *large)[:_MOST]


def _arguments_alone(size: str) -> str:
    return (
        f"the arguments alone take {size}: shard them over more chips or keep them smaller; "
        "a smaller batch or rematerialisation does not help"
    )


def advice_of_message(report: _Facts, buffers: Sequence[_Facts]) -> tuple[str, ...]:
    """What to look at first, from the message alone."""
    advice = []
    capacity, arguments = report["capacity_bytes"], report["argument_bytes"]
    if report["kind"] == "allocation":
        what = f" ({report['tag']})" if report["tag"] else ""
        shape = f" {without_layout(report['shape'])}" if report["shape"] else ""
        advice.append(f"no chip can hold the array{shape}{what}: shard it, or compute it in parts")
    if None not in (capacity, arguments) and arguments > capacity:
        advice.append(_arguments_alone(size_of(report, "argument_bytes")))
    elif arguments and report["program_bytes"] and arguments > report["program_bytes"]:
        advice.append(
            f"the arguments take {size_of(report, 'argument_bytes')}, more than the program: "
            "shard them, and donate those that are updated (donate_argnums)"
        )
    advice += _padding(buffers)
    advice += _repeated(buffers)
    wasted, temporaries = report["fragmentation_bytes"], report["temp_bytes"]
    if wasted and temporaries and wasted > 0.1 * temporaries and wasted >= 1 << 20:
        advice.append(f"packing the temporaries wastes {size_of(report, 'fragmentation_bytes')}")
    if not advice:
        advice.append(
            "the message has only the total, which counts arguments and outputs too: dump the "
            "module to see what fills it"
        )
    return tuple(advice[:_MOST])


def _padding(buffers: Sequence[_Facts]) -> list[str]:
    """At most one line: the buffer to which tiles add most."""
    padded = max(buffers, key=lambda buffer: buffer["padding_bytes"] or 0, default=None)
    if padded is None or not _is_padded(padded):
        return []
    times = padded["size_bytes"] / max(padded["unpadded_bytes"] or 1, 1)
    shape = without_layout(padded["shape"] or "")
    return [
        f"padding: buffer {padded['rank']} {shape} takes {times:.1f} times its elements, "
        f"{human_bytes(padded['padding_bytes'])} more: reorder or merge its dimensions"
    ]


# Before a library's own folders, and the scripts that start programs.
_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages/|bin/(?=[^/]*$))")
_LONGEST_NAME = 40


def _is_library(file: str) -> bool:
    return bool(_INSTALLED.match(file)) or is_library(file)


def owner_of(buffer: _Facts) -> str:
    """The user's line, or else the operation, that makes a buffer, as short as it is told."""
    file, op_name = buffer["source_file"], buffer["op_name"]
    # A line of a library says less than the operation's name.
    if file and not (op_name and _is_library(file)):
        return f"{_INSTALLED.sub('', file)}:{buffer['source_line'] or '?'}"
    if buffer["allocation_type"] == "argument":
        return "(arguments)"
    if op_name is None:
        return str(buffer["instruction"] or f"({buffer['opcode'] or 'not named'})")
    # Of names that were joined the first; parameters of the operation say nothing of whose it is.
    *scopes, name = re.sub(r"\[.*", "", op_name.partition(";")[0], flags=re.DOTALL).split("/")
    while scopes and len(name) + len(scopes[-1]) < _LONGEST_NAME:
        name = f"{scopes.pop()}/{name}"
    return f"…/{name}" if scopes else name


def _is_padded(buffer: _Facts) -> bool:
    padding, unpadded = buffer["padding_bytes"], buffer["unpadded_bytes"]
    if not padding or padding < 1 << 20:
        return False
    return bool(unpadded and buffer["size_bytes"] >= _TILES_PAD * unpadded)


def _repeated(buffers: Sequence[_Facts]) -> list[str]:
    """The shape that takes most; many of one shape are often one of each layer or step."""
    by_shape: dict[str, list[_Facts]] = {}
    for buffer in buffers:
        if buffer["shape"]:
            by_shape.setdefault(without_layout(buffer["shape"]), []).append(buffer)
    most = max(by_shape.items(), key=lambda one: sum(b["size_bytes"] for b in one[1]), default=None)
    if most is None or sum(b["size_bytes"] for b in most[1]) < 1 << 20:
        return []
    shape, same = most
    size = sum(buffer["size_bytes"] for buffer in same)
    mark = "~" if any(buffer["is_rounded"] for buffer in same) else ""
    if len(same) == 1:
        return [f"the largest buffer is {shape}, {mark}{human_bytes(size)}"]
    return [
        f"{len(same)} buffers are {shape}, {mark}{human_bytes(size)} together: kept for the "
        "backward pass perhaps (jax.checkpoint), or a smaller batch makes each smaller"
    ]


def advice_of_kernel(
    report: _Facts, buffers: Sequence[_Facts], least_bytes: int = 0
) -> tuple[str, ...]:
    """What to change in a kernel; least_bytes: what its module says that it needs at least."""
    advice = _of_tag(report)
    if report["kind"] == "allocation":
        return (*advice, "the memory is the chip's own: no flag makes it larger")
    if buffers:
        largest = buffers[0]
        advice.append(
            f"the largest block is {without_layout(largest['shape'] or '(not said)')}, "
            f"{human_bytes(largest['size_bytes'])}, of {owner_of(largest)}"
        )
    if report["space_name"] == "shared":
        return (*advice, *_in_shared_memory(report))
    if report["space_name"] == "smem":
        advice.append(
            "SMEM holds scalars: prefetch fewer (PrefetchScalarGridSpec), for example page tables "
            "of fewer sequences, or pass them as a block in VMEM"
        )
        return tuple(advice)
    advice.append(
        "make the kernel's blocks smaller (pl.BlockSpec): each is held twice in a pipeline"
    )
    needed = report["requested_bytes"] or report["used_bytes"]
    if report["space_name"] == "vmem" and needed is not None:
        # The printed size is rounded, so the next KiB may be short of it.
        enough = -(-int(max(needed, least_bytes) * 1.01) // (1 << 20)) << 20
        advice.append(
            f"or raise the limit: pltpu.CompilerParams(vmem_limit_bytes={enough}), for all kernels "
            f"LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib={enough >> 10}, "
            "up to the chip's VMEM"
        )
    return tuple(advice)


def _in_shared_memory(report: _Facts) -> tuple[str, ...]:
    """What a kernel on a GPU can do: its shared memory is the chip's, for each block of threads."""
    limit = ""
    if report["limit_bytes"] is not None:
        limit = f" to at most {size_of(report, 'limit_bytes')}, which no flag raises"
    advice = (
        f"make the kernel's tiles smaller{limit}: smaller blocks (pl.BlockSpec, BLOCK_M, BLOCK_N, "
        "BLOCK_K), or fewer of them at a time (num_stages)",
    )
    if report["shape"]:
        return (
            *advice,
            "a fusion of XLA's own: XLA_FLAGS=--xla_gpu_enable_triton_gemm=false avoids it",
        )
    return advice


def _of_tag(report: _Facts) -> list[str]:
    tag = report["tag"] or ""
    if window := _WINDOW.search(tag):
        whole = " is the whole array" if window["window"] == window["full"] else ""
        of = "" if whole else f" of {window['full']}"
        return [
            f"{window['way']} {window['number']}: its block {window['window']}{of}{whole}: give "
            "pl.BlockSpec a smaller block, and a grid over the rest"
        ]
    if "scratch" in tag:
        shape = f" {without_layout(report['shape'])}" if report["shape"] else ""
        return [f"the scratch buffer{shape} is too large: make scratch_shapes smaller"]
    if "prefetched" in tag:
        return [f"{tag}: prefetch fewer scalars, or pass them as a block in VMEM"]
    return [f"it is: {tag}"] if tag else []


_DROP_ARRAYS = (
    "the chip also holds arrays that your program keeps: drop those it no longer needs (old "
    "states, metrics), and donate what a step updates (donate_argnums)"
)


def advice_at_run_time(report: _Facts, buffers: Sequence[_Facts]) -> tuple[str, ...]:
    """What asks for the memory, or what holds it, when the program runs."""
    requested, free, capacity = (
        report[name] for name in ("requested_bytes", "free_bytes", "capacity_bytes")
    )
    advice = []
    if None not in (requested, free) and free >= requested:
        advice.append("enough is free in all, but not in one piece: memory is fragmented")
    if report["space_name"] != "gpu":
        return (*advice, _DROP_ARRAYS)
    too_large = _too_large_alone(report)
    advice += [too_large] if too_large else []
    advice += _widened(buffers)
    advice += _largest_maker(report, buffers)
    advice += _large_parts(report)
    if too_large and len(advice) == 1:
        advice.append(
            "make the program smaller: a smaller batch or shorter sequences, jax.checkpoint, parts "
            "one after the other (jax.lax.map), or more GPUs"
        )
    if not too_large:
        advice = advice[: _MOST - 1]
        if None not in (free, capacity):
            rounded = "~" if report["is_rounded"] else ""
            advice.append(
                f"{rounded}{human_bytes(capacity - free)} were in use when it failed: drop arrays "
                "that your program no longer needs, and donate what a step updates (donate_argnums)"
            )
        else:
            advice.append(_held_already(report))
    return tuple(advice[:_MOST])


def _needed(report: _Facts) -> tuple[str, int]:
    """The column that says most of what the program needs, and its bytes."""
    sizes = {name: report[name] or 0 for name in ("requested_bytes", "used_bytes")}
    name = max(sizes, key=lambda column: sizes[column])
    return name, sizes[name]


def _too_large_alone(report: _Facts) -> str | None:
    """That the program does not fit, whatever else the GPU holds."""
    name, needed = _needed(report)
    capacity = report["capacity_bytes"]
    who = "this one allocation takes" if name == "requested_bytes" else "the program alone needs"
    if needed > (capacity or _LARGE_GPU):
        there = "an H100 has 80 GB, an H200 141 GB"
        if capacity is not None:
            there = f"the process may use {size_of(report, 'capacity_bytes')}"
        return f"{who} {size_of(report, name)}, {there}: it does not fit, whatever else runs"
    return None


# Whoever needs more than most GPUs have does not suffer from other processes.
_LARGE_GPU = 80 * 10**9
# Every GPU has more than this.
_LITTLE = 4 << 30
# A buffer or part of less than this share of the need is not worth a line.
_LARGE_SHARE = 0.25


def _widened(buffers: Sequence[_Facts]) -> list[str]:
    """The largest buffer that is another one's elements in a wider type."""
    known = {_dimensions(buffer): buffer for buffer in buffers if buffer["shape"]}
    for buffer in buffers:
        if buffer["allocation_type"] == "argument" or not buffer["shape"]:
            continue
        narrow = known.get(_dimensions(buffer))
        shape, size = without_layout(buffer["shape"]), human_bytes(buffer["size_bytes"])
        if narrow is not None and 0 < narrow["size_bytes"] < buffer["size_bytes"]:
            other = without_layout(narrow["shape"])
            return [
                f"{shape}, {size}, has the elements of {other} in a wider type, at "
                f"{owner_of(buffer)}: compute in the narrow one, or widen the results only"
            ]
        if buffer["opcode"] == "convert":
            return [
                f"{shape}, {size}, is a copy in another type, at {owner_of(buffer)}: compute in "
                "the type that it comes in"
            ]
    return []


def _dimensions(buffer: _Facts) -> str:
    return without_layout(buffer["shape"]).partition("[")[2]


def _largest_maker(report: _Facts, buffers: Sequence[_Facts]) -> list[str]:
    """Whose line or operation makes most of what is listed, and what makes that smaller."""
    made: dict[str, list[_Facts]] = {}
    for buffer in buffers:
        if buffer["allocation_type"] != "argument":
            owner = owner_of(buffer)
            # Of an operation its scope: what it is part of.
            scope = owner.rpartition("/")[0] if owner.startswith("…/") else ""
            made.setdefault(scope if len(scope) > 1 else owner, []).append(buffer)
    if not made:
        return []
    owner, largest = max(made.items(), key=lambda one: sum(b["size_bytes"] for b in one[1]))
    owner = owner_of(largest[0]) if len(largest) == 1 else owner
    size = sum(buffer["size_bytes"] for buffer in largest)
    rounded = "~" if any(buffer["is_rounded"] for buffer in largest) else ""
    name, needed = _needed(report)
    of = f" of the {size_of(report, name)}" if size < needed else ""
    shapes = [without_layout(buffer["shape"]) for buffer in largest if buffer["shape"]]
    what = f" ({', '.join(dict.fromkeys(shapes[:2]))})" if shapes else ""
    return [
        f"{owner} makes {rounded}{human_bytes(size)}{of}{what}: a smaller batch, shorter "
        "sequences, or parts one after the other (jax.lax.map) make it smaller"
    ]


def _large_parts(report: _Facts) -> list[str]:
    """The parts of a program that take much of its need, and what makes each smaller."""
    total = report["used_bytes"]
    if total is None:
        return []
    ways = {
        "argument_bytes": "the arguments take {}: shard them, or keep them in a narrower type",
        "output_bytes": "the results take {}: return less, or donate the arguments that they "
        "replace (donate_argnums)",
        "temp_bytes": "the temporaries are one allocation of {}: jax.checkpoint makes them smaller "
        "if they are kept for a backward pass",
    }
    parts = sorted(ways, key=lambda name: -(report[name] or 0))
    return [
        ways[name].format(size_of(report, name))
        for name in parts
        if (report[name] or 0) > _LARGE_SHARE * total
    ]


def _held_already(report: _Facts) -> str:
    """What may hold the memory, if the program alone would fit."""
    name, needed = _needed(report)
    if not needed:
        return _DROP_ARRAYS
    size = size_of(report, name)
    when = (
        f"if the GPU has more than {size}, the rest"
        if needed > _LITTLE
        else f"{size} is little, so memory"
    )
    return (
        f"{when} is held already: by arrays that your program keeps, by other processes "
        "(nvidia-smi), or outside of JAX's share (XLA_PYTHON_CLIENT_MEM_FRACTION, 0.75 by itself)"
    )


# Why memory ran out: by how much, what fills it, whose lines, and what to look at first.

_LINES = 5
# A list that explains less of the need than this share is not shown.
_WORTH = 0.01
_FILLED = pa.schema(
    [
        ("size_bytes", pa.int64()),
        ("is_rounded", pa.bool_()),
        ("buffers", pa.int64()),
        ("source", pa.string()),
        ("shape", pa.string()),
    ]
)
_ASK_LOG = "`memhouse oom LOG` asks a log"
_Row = dict[str, Any]


@dataclass(frozen=True)
class OomAnswer:
    """What is to be said of one report.

    title: by how much of which memory; facts: lines on where, and on the parts; filled_by: rows
    with size_bytes, is_rounded, buffers (a count), source and shape, the largest first;
    filled_from: what these are rows of; first: what to look at first; more: how to learn more.
    """

    title: str
    facts: tuple[str, ...]
    filled_by: Rows
    filled_from: str
    first: tuple[str, ...]
    more: tuple[str, ...]

    def __str__(self) -> str:
        """The answer as the command prints it, but for the width of its lines."""
        lines = [self.title, *(f"  {fact}" for fact in self.facts)]
        if len(self.filled_by):
            lines += ["", f"what fills it, {self.filled_from}:"]
            lines += map(_filled_line, self.filled_by.arrow().to_pylist())
        if self.first:
            lines += ["", "look first at:"]
            lines += [f"  {number}. {text}" for number, text in enumerate(self.first, start=1)]
        if self.more:
            lines += ["", "more:", *(f"  {text}" for text in self.more)]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Oom(Result):
    """Why memory ran out.

    rows: a row a report, as in `oom_reports`; buffers: what the messages list, as in
    `oom_buffers`; answers: one for each report, in their order.
    """

    rows: Rows
    buffers: Rows
    answers: tuple[OomAnswer, ...]

    def tables(self) -> Sequence[Rows]:
        """What fills the memory, a table an answer; the columns of `rows` are for programs."""
        filled = [(each.filled_by, f"what fills it, {each.filled_from}") for each in self.answers]
        return [replace(rows, caption=caption) for rows, caption in filled if len(rows)]

    def sentences(self) -> Sequence[str]:
        """By how much memory ran out, where, and what to look at first."""
        told = [(each.title, *each.facts, *each.first, *each.more) for each in self.told()]
        return [line for lines in told for line in lines] or [self.rows.empty]

    def told(self) -> tuple[OomAnswer, ...]:
        """The answers to read one after the other: the same advice is given once."""
        told: list[OomAnswer] = []
        given: set[tuple[str, ...]] = set()
        for answer in self.answers:
            first = ("the same as above",) if answer.first in given else answer.first
            more = () if answer.more in given else answer.more
            told.append(replace(answer, first=first, more=more))
            given |= {answer.first, answer.more} - {()}
        return tuple(told)

    def __str__(self) -> str:
        """The answers as the command prints them, or why there are none."""
        return "\n\n".join(map(str, self.told())) or self.rows.empty


def oom(store: Store, run: str | None = None) -> Oom:
    """Why memory ran out in a run; without one, in the latest run in which it did.

    A dump of a module that did not fit answers without a message too. Raises UsageError.
    """
    require_runs(store, (run, "run"))
    if run is None:
        names = store.rows(statement("oom.runs"))["run_id"].to_pylist()
        if not names:
            return _nothing(f"no run says that memory ran out: {_ASK_LOG}")
        run = str(names[0])
    reports = store.rows(statement("oom.reports"), [run]).to_pylist()
    buffers = store.rows(statement("oom.buffers"), [run]).to_pylist()
    told = {report["dump_id"] for report in reports}
    dumps = store.rows(statement("oom.dumps"), [run, None]).to_pylist()
    silent = [_of_dump(dump) for dump in dumps if dump["dump_id"] not in told]
    if not reports and not silent:
        return _nothing(f"run {run} does not say that memory ran out: {_ASK_LOG}")
    return _explained(store, [*reports, *silent], buffers)


def explain(store: Store | None, reports: pa.Table, buffers: pa.Table, source: str) -> Oom:
    """Why memory ran out by the messages of a log that is not stored.

    `reports` and `buffers` are rows as in `oom_reports` and `oom_buffers`. With a store, the
    modules' dumps in it answer what the messages do not say.
    """
    rows = reports.to_pylist()
    if not rows:
        return _nothing(f"{source}: no out-of-memory message of XLA")
    listed = buffers.to_pylist()
    if store is not None:
        own = _by_message(listed)
        for row in rows:
            row["dump_id"] = dump_of(store.rows, row, own.get(row["oom_id"], ()))
    return _explained(store, rows, listed)


def _nothing(why: str) -> Oom:
    empty = Rows(arrow.schema("oom_reports").empty_table(), empty=why)
    return Oom(empty, Rows(arrow.schema("oom_buffers").empty_table(), empty=why), ())


def _filled_line(row: _Row) -> str:
    size = f"{'~' if row['is_rounded'] else ''}{human_bytes(row['size_bytes'])}"
    what = without_layout(row["shape"] or "")
    return f"  {size:>11}  {row['buffers']:>3}  {row['source']}  {what}".rstrip()


def _by_message(buffers: Sequence[_Row]) -> dict[int, list[_Row]]:
    """The buffers of each message."""
    listed: dict[int, list[_Row]] = {}
    for buffer in buffers:
        listed.setdefault(buffer["oom_id"], []).append(buffer)
    return listed


def _explained(store: Store | None, reports: Sequence[_Row], buffers: Sequence[_Row]) -> Oom:
    answers = []
    by_message = _by_message(buffers)
    for report in reports:
        own = by_message.get(report["oom_id"], ())
        dump = None
        fits: Sequence[Mapping[str, Any]] = ()
        if store is not None and report["dump_id"] is None:
            run_id = report["run_id"] or None
            folder = PurePosixPath(report["path"]).parent.as_posix() if run_id else None
            fits = dumps_that_fit(store.rows, report, own, run_id=run_id, workload=folder)
        elif store is not None:
            (dump,) = store.rows(statement("oom.dumps"), [None, report["dump_id"]]).to_pylist()
        answers.append(_answer(store, report, own, dump, fits))
    return Oom(
        Rows(arrow.rows("oom_reports", reports)),
        Rows(arrow.rows("oom_buffers", buffers), empty="the messages list no buffers"),
        tuple(answers),
    )


def _of_dump(dump: _Row) -> _Row:
    """A report that only the dump makes: there was no message."""
    capacity, total = dump["device_memory_bytes"], dump["total_bytes"]
    columns: _Row = dict.fromkeys(arrow.schema("oom_reports").names)
    return columns | {
        "oom_id": dump["dump_id"],
        "run_id": dump["run_id"],
        "dump_id": dump["dump_id"],
        "path": dump["workload"],
        "times": 1,
        "kind": "program",
        "space_name": "hbm",
        "module_name": dump["module_name"],
        "used_bytes": total,
        "capacity_bytes": capacity,
        "exceeded_bytes": None if capacity is None or total is None else total - capacity,
        "is_rounded": False,
        "is_cut": False,
        "message": "",
    }


def _answer(
    store: Store | None,
    report: _Row,
    buffers: Sequence[_Row],
    dump: _Row | None,
    fits: Sequence[Mapping[str, Any]],
) -> OomAnswer:
    is_program = report["kind"] == "program" or (
        report["kind"] == "allocation" and report["space_name"] == "hbm"
    )
    facts = parts_of(report, dump, fits)
    more: tuple[str, ...] = MORE_WITHOUT
    if report["kind"] == "runtime" and report["module_name"] is None:
        more = MORE_AT_RUN_TIME
    filled, filled_from = _filled_by_message(report, buffers)
    if dump is not None and dump["module_id"] is not None:
        module = (dump["module_id"], "--run", dump["run_id"])
        more = (command("buffers", *module), command("owners", *module, "--by", "scope"))
    if not is_program:
        is_kernel = report["kind"] != "runtime"
        if is_kernel and not len(filled) and store is not None and dump is not None:
            filled = _filled_by_kernel(store, dump["module_id"], report["instruction"])
            filled_from = "in the kernel, from its module"
            # A refusal may count only what was placed by then.
            least_bytes = sum(filled["size_bytes"].to_pylist())
            first = advice_of_kernel(report, buffers, least_bytes)
        else:
            first = (advice_of_kernel if is_kernel else advice_at_run_time)(report, buffers)
        more = () if is_kernel else more
    elif store is not None and dump is not None and dump["peak_bytes"] is not None:
        found = owners(store, dump["module_id"], run=dump["run_id"], limit=_LINES).table
        filled, filled_from = _filled_by_dump(found), "at the peak, from the dump"
        module_id = dump["module_id"]
        padded = store.rows(statement("oom.padded"), [module_id]).to_pylist()
        changes = _changes(store, module_id)
        first = advice_of_dump(report, dump, found.to_pylist(), changes, padded)
    else:
        first = advice_of_message(report, buffers)
    return OomAnswer(title_of(report), facts, Rows(filled), filled_from, first, more)


def _changes(store: Store, module_id: int) -> Sequence[Finding]:
    """What would lower the peak most; nothing if the dump says too little for that."""
    try:
        return advise(store, module_id).first
    except UsageError:
        return ()


def _filled_by_kernel(store: Store, module_id: int | None, instruction: str | None) -> pa.Table:
    """The largest arrays that a kernel keeps in VMEM."""
    rows = store.rows(statement("oom.kernel"), [module_id, instruction, _LINES]).to_pylist()
    return pa.Table.from_pylist([{"is_rounded": False} | row for row in rows], schema=_FILLED)


def _filled_by_dump(found: pa.Table) -> pa.Table:
    rows = [
        {
            "size_bytes": row["counted_bytes"],
            "is_rounded": False,
            "buffers": row["buffers"],
            "source": row["source"] + ("?" if row["is_guess"] else ""),
            "shape": row["categories"],
        }
        for row in found.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=_FILLED)


def _filled_by_message(report: _Row, buffers: Sequence[_Row]) -> tuple[pa.Table, str]:
    """The buffers of the message by the line, or else the operation, that makes them."""
    owned: dict[tuple[str, str], list[_Row]] = {}
    for buffer in buffers:
        owned.setdefault((owner_of(buffer), buffer["shape"] or ""), []).append(buffer)
    rows = [
        {
            "size_bytes": sum(buffer["size_bytes"] for buffer in same),
            "is_rounded": any(buffer["is_rounded"] for buffer in same),
            "buffers": len(same),
            "source": source,
            "shape": shape,
        }
        for (source, shape), same in owned.items()
    ]
    rows.sort(key=lambda row: -int(row["size_bytes"]))
    listed = sum(buffer["size_bytes"] for buffer in buffers)
    if listed < _WORTH * (report["used_bytes"] or 0):
        rows = []
    count = len(buffers)
    what = f"the {count} largest buffers" if count > 1 else "the largest buffer"
    cut = ", of a list that is cut" if report["is_cut"] else ""
    return (
        pa.Table.from_pylist(rows[:_LINES], schema=_FILLED),
        f"{what} in the message{cut}" if count else "",
    )
