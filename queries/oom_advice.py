"""What to look at first when memory ran out. Sizes say what something takes, not what is saved."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .advice.finding import Finding, in_a_line
from .cells import human_bytes, without_layout
from .oom_words import size_of

# A part that is smaller than this share of the peak is not worth a line.
_WORTH = 0.02
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
_Row = Mapping[str, Any]


def advice_of_dump(
    report: _Row,
    dump: _Row,
    owners: Sequence[_Row],
    changes: Sequence[Finding],
) -> tuple[str, ...]:
    """What to look at first, from the dump: what is known to lower the peak, then what is large."""
    peak = dump["peak_bytes"] or 1
    told: list[tuple[int, str]] = []
    capacity = report["capacity_bytes"]
    arguments = dump["argument_bytes"] or 0
    if capacity is not None and arguments > capacity:
        told.append((peak + 1, _arguments_alone(human_bytes(arguments))))
    lines = [row for row in owners if not row["source"].startswith("(") and ":" in row["source"]]
    if lines and lines[0]["counted_bytes"] > _WORTH * peak:
        size = lines[0]["counted_bytes"]
        told.append((size, f"{lines[0]['source']} makes {human_bytes(size)} of the peak"))
    packing = dump["packing_bytes"] or 0
    if packing > _WORTH * peak:
        told.append((packing, f"packing the temporaries wastes {human_bytes(packing)}"))
    told.sort(key=lambda found: -found[0])
    alone = [text for size, text in told if size > peak]
    large = [text for size, text in told if size <= peak]
    return (*alone, *map(in_a_line, changes), *large)[:_MOST]


def _arguments_alone(size: str) -> str:
    return (
        f"the arguments alone take {size}: shard them over more chips or keep them smaller; "
        "a smaller batch or rematerialisation does not help"
    )


def advice_of_message(report: _Row, buffers: Sequence[_Row]) -> tuple[str, ...]:
    """What to look at first, from the message alone."""
    told = []
    capacity, arguments = report["capacity_bytes"], report["argument_bytes"]
    if report["kind"] == "allocation":
        what = f" ({report['tag']})" if report["tag"] else ""
        shape = f" {without_layout(report['shape'])}" if report["shape"] else ""
        told.append(f"no chip can hold the array{shape}{what}: shard it, or compute it in parts")
    if None not in (capacity, arguments) and arguments > capacity:
        told.append(_arguments_alone(size_of(report, "argument_bytes")))
    elif arguments and report["program_bytes"] and arguments > report["program_bytes"]:
        told.append(
            f"the arguments take {size_of(report, 'argument_bytes')}, more than the program: "
            "shard them, and donate those that are updated (donate_argnums)"
        )
    padded = max(buffers, key=lambda buffer: buffer["padding_bytes"] or 0, default=None)
    if padded is not None and _is_padded(padded):
        times = padded["size_bytes"] / max(padded["unpadded_bytes"] or 1, 1)
        shape = without_layout(padded["shape"] or "")
        told.append(
            f"padding: buffer {padded['rank']} {shape} takes {times:.1f} times its elements, "
            f"{human_bytes(padded['padding_bytes'])} more: reorder or merge its dimensions"
        )
    told += _repeated(buffers)
    wasted, temporaries = report["fragmentation_bytes"], report["temp_bytes"]
    if wasted and temporaries and wasted > 0.1 * temporaries and wasted >= 1 << 20:
        told.append(f"packing the temporaries wastes {size_of(report, 'fragmentation_bytes')}")
    if not told:
        told.append(
            "the message has only the total, which counts arguments and outputs too: dump the "
            "module to see what fills it"
        )
    return tuple(told[:_MOST])


def _is_padded(buffer: _Row) -> bool:
    padding, unpadded = buffer["padding_bytes"], buffer["unpadded_bytes"]
    if not padding or padding < 1 << 20:
        return False
    return bool(unpadded and buffer["size_bytes"] >= _TILES_PAD * unpadded)


def _repeated(buffers: Sequence[_Row]) -> list[str]:
    """The shape that takes most; many of one shape are often one of each layer or step."""
    by_shape: dict[str, list[_Row]] = {}
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


def advice_of_kernel(report: _Row) -> tuple[str, ...]:
    """What to change in a kernel, or what holds the memory when the program runs."""
    if report["kind"] == "runtime":
        return _at_run_time(report)
    told = _of_tag(report)
    if report["kind"] == "allocation":
        return (*told, "the memory is the chip's own: no flag makes it larger")
    told.append("make the kernel's blocks smaller (pl.BlockSpec): each is held twice in a pipeline")
    if report["space_name"] == "vmem" and report["requested_bytes"] is not None:
        # The printed size is rounded, so the next KiB may be short of it.
        enough = -(-int(report["requested_bytes"] * 1.01) // (1 << 20)) << 20
        told.append(
            f"or raise the limit: pltpu.CompilerParams(vmem_limit_bytes={enough}), for all kernels "
            f"LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib={enough >> 10}, "
            "up to the chip's VMEM"
        )
    return tuple(told)


def _of_tag(report: _Row) -> list[str]:
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


def _at_run_time(report: _Row) -> tuple[str, ...]:
    requested, free = report["requested_bytes"], report["free_bytes"]
    told = []
    if None not in (requested, free) and free >= requested:
        told.append("enough is free in all, but not in one piece: memory is fragmented")
    if report["space_name"] == "gpu":
        told += [
            "look for other processes on the GPU (nvidia-smi), and at "
            "XLA_PYTHON_CLIENT_MEM_FRACTION, the share that JAX takes",
        ]
    told += [
        "the chip also holds arrays that your program keeps: drop those it no longer needs "
        "(old states, metrics), and donate what a step updates (donate_argnums)",
    ]
    return tuple(told)
