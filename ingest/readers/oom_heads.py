"""The first lines of XLA's messages that memory ran out: one pattern for each kind."""

import re
from collections.abc import Callable

from ..oom_report import SIZE, SIZE_GPU, OomReport, PrintedSize, parse_size, shape_sizes
from .oom_metadata import parse_instruction, parse_metadata

# Each message holds one of these. They are searched for as bytes, so a long log costs little.
OPENERS = (
    "Ran out of memory ",
    "exceeding available bytes: ",
    " would exceed memory (size=",
    "That was not possible",
    "Out of memory while trying to allocate ",
    "RESOURCE_EXHAUSTED: Out of memory allocating ",
    "Failed to allocate request for ",
)
# Lines that begin what follows a first line: they open a message whose first line is missing.
HEADLESS = (
    "Total hbm usage >= ",
    "Program hbm requirement ",
    "Largest program allocations in ",
    "BufferAssignment OOM Debugging.",
)
_LONGEST = 500
_ALIGNMENT = 4096
_KERNEL_MEMORIES = ("vmem", "smem", "sflag", "cmem")

_BEFORE = re.compile(
    r"(?:[\w.]*(?:Error|Exception|StatusOr access)\b[:(]? ?['\"]?)?"
    r"(?:RESOURCE_EXHAUSTED: |Resource exhausted: |INTERNAL: )?"
    r"(?:E\d{4}: \w+:\s*)?(?:Compile[A-Z]\w+:\s*)?"
    r"(?:XLA:TPU compile permanent error\.\s*|Compilation failure:\s*)?$"
)
_TEMPORARIES = re.compile(
    rf"Ran out of memory on (\w+), the total memory required for HLO temporaries \(({SIZE})\)"
    rf" exceeds available \w+ \(({SIZE})\)"
)
_USED = re.compile(
    rf"Ran out of memory in memory space (\w+)\.\s+Used ({SIZE}) of ({SIZE}) \w+\."
    rf"(?:\s+Exceeded \w+ capacity by ({SIZE}))?"
)
_SCOPED = re.compile(
    rf"Ran out of memory in memory space (\w+) while allocating on stack for (.*?)"
    rf"(?:Scoped allocation with size ({SIZE}) and limit ({SIZE}) exceeded scoped \w+ limit by"
    rf" ({SIZE})|$)",
    re.DOTALL,
)
_SPACE = re.compile(r"Ran out of memory (?:in memory space|on(?= (?:HBM|VMEM|SMEM)\b)) (\w+)[., ]")
_CORES = re.compile(
    rf"(?:TPU )?TensorCore Hbm usage: ({SIZE}), SparseCore Hbm usage:? ({SIZE}), exceeding "
    rf"available bytes: ({SIZE})"
)
_BLOCK = re.compile(
    r"Allocation \(size=(\d{1,18})\) would exceed memory \(size=(\d{1,18})\)"
    r"(?: :: #allocation\d+ \[(?P<what>(?:'[^']*'|[^\]'])*)\](?: :: (?P<by><?[\w.-]+>?))?)?"
)
_BLOCK_SHAPE = re.compile(r"shape = '([^']*)'")
_BLOCK_SPACE = re.compile(r"space=(\w+)(?=,| *$)")
_BLOCK_TAG = re.compile(r"tag = '([^']*)'")
_RUNTIME = re.compile(
    rf"Attempting to (?:allocate|reserve) ({SIZE})[\w ]*\.\s+That was not possible"
    rf"(?P<end>\.)?(?:\s+There are ({SIZE}) free)?"
)
_PROGRAM = re.compile(r"Error loading program '([\w.<>-]+)'")
_GPU = re.compile(
    rf"(?:Out of memory while trying to allocate (?:(\d{{1,18}}) bytes\b|({SIZE_GPU}))"
    rf"|Failed to allocate request for {SIZE_GPU} \((\d{{1,18}})B\)"
    r"|RESOURCE_EXHAUSTED: (Out of memory allocating) (\d{1,18}) bytes\b)"
)


def read_head(text: str, line: int, *, is_whole: bool = True) -> tuple[OomReport, int] | None:
    """The report of a first line, and where its message begins; None if it holds none.

    A report of a message that ends before its figures has `is_cut`. Without `is_whole` the
    line's end is missing, so that a name there may be cut.
    """
    for pattern, read in _READERS:
        if match := pattern.search(text):
            before = _BEFORE.search(text, max(0, match.start() - _LONGEST), match.start())
            start = before.start() if before else match.start()
            report = read(match)
            if not is_whole and match.end() == len(text) and report.kind == "allocation":
                report.instruction, report.is_cut = None, True
            report.line, report.message = line, text[start:].strip()[:_LONGEST]
            if named := _PROGRAM.search(text):
                report.module_name = named[1]
                start = min(start, named.start())
            return report, start
    return None


def headless(line: int, *, is_cut: bool = True) -> OomReport:
    """A report of a message without its first line."""
    return OomReport("program", "", line, is_cut=is_cut)


def _kind(space: str) -> str:
    return "scoped" if space in _KERNEL_MEMORIES else "program"


def _over(report: OomReport, used: PrintedSize, capacity: PrintedSize, by: str | None) -> None:
    """Set the figures, unless they contradict each other: then the text is damaged."""
    difference = PrintedSize(used.size_bytes - capacity.size_bytes, used.rounding)
    over = difference if by is None else parse_size(by)
    if difference.size_bytes <= -used.rounding or not difference.agrees(
        over.size_bytes, over.rounding + capacity.rounding
    ):
        report.is_cut = True
        return
    report.used_bytes, report.capacity_bytes = used.size_bytes, capacity.size_bytes
    report.exceeded_bytes = over.size_bytes
    report.is_rounded = True


def _read_temporaries(match: re.Match[str]) -> OomReport:
    """The figure is the module's whole need, arguments and outputs too, not temporaries."""
    report = OomReport("program", "", 0, space_name=match[1].lower())
    _over(report, parse_size(match[2]), parse_size(match[3]), None)
    return report


def _read_used(match: re.Match[str]) -> OomReport:
    report = OomReport(_kind(match[1]), "", 0, space_name=match[1])
    _over(report, parse_size(match[2]), parse_size(match[3]), match[4])
    report.is_cut |= match[4] is None
    return report


def _read_scoped(match: re.Match[str]) -> OomReport:
    report = OomReport("scoped", "", 0, space_name=match[1])
    instruction = parse_instruction(match[2])
    if "shape" in instruction:
        report.shape = instruction["shape"]
    report.instruction = instruction.get("instruction")
    metadata = parse_metadata(match[2], is_whole=match[3] is not None)
    for name in ("op_name", "source_file", "source_line"):
        setattr(report, name, metadata.get(name))
    if match[3] is None:
        report.is_cut = True
        return report
    _over(report, parse_size(match[3]), parse_size(match[4]), match[5])
    report.requested_bytes, report.limit_bytes = report.used_bytes, report.capacity_bytes
    report.used_bytes = report.capacity_bytes = None
    return report


def _read_cores(match: re.Match[str]) -> OomReport:
    report = OomReport("program", "", 0, space_name="hbm")
    tensor, sparse = parse_size(match[1]), parse_size(match[2])
    total = PrintedSize(tensor.size_bytes + sparse.size_bytes, tensor.rounding + sparse.rounding)
    _over(report, total, parse_size(match[3]), None)
    return report


def _read_block(match: re.Match[str]) -> OomReport:
    report = OomReport("allocation", "", 0)
    report.requested_bytes, report.capacity_bytes = int(match[1]), int(match[2])
    report.exceeded_bytes = report.requested_bytes - report.capacity_bytes
    what = match["what"]
    if report.exceeded_bytes <= 0 or what is None or match["by"] is None:
        report.is_cut = True
    if report.exceeded_bytes <= 0:
        report.requested_bytes = report.capacity_bytes = report.exceeded_bytes = None
    if what is not None:
        for name, pattern in (("space_name", _BLOCK_SPACE), ("tag", _BLOCK_TAG)):
            if found := pattern.search(what):
                setattr(report, name, found[1])
        shape = _BLOCK_SHAPE.search(what)
        sizes = None if shape is None else shape_sizes(shape[1])
        # A shape of another size is damaged.
        if shape and sizes and 0 <= int(match[1]) - sizes[2] <= _ALIGNMENT:
            report.shape = shape[1]
    if match["by"] is not None and not match["by"].startswith("<"):
        report.instruction = match["by"]
    return report


def _read_runtime(match: re.Match[str]) -> OomReport:
    requested = parse_size(match[1])
    report = OomReport("runtime", "", 0, space_name="hbm", is_rounded=requested.rounding > 0)
    report.requested_bytes = requested.size_bytes
    report.is_cut = match["end"] is None
    if match[3] is not None:
        free = parse_size(match[3])
        report.free_bytes = free.size_bytes
        report.is_rounded |= free.rounding > 0
        # With enough in all, no free block alone is large enough.
        if free.size_bytes < requested.size_bytes:
            report.exceeded_bytes = requested.size_bytes - free.size_bytes
    return report


def _read_gpu(match: re.Match[str]) -> OomReport:
    report = OomReport("runtime", "", 0, space_name="host" if match[4] else "gpu")
    exact = match[1] or match[3] or match[5]
    size = PrintedSize(int(exact)) if exact else parse_size(match[2])
    report.requested_bytes, report.is_rounded = size.size_bytes, size.rounding > 0
    return report


def _read_space(match: re.Match[str]) -> OomReport:
    """Nothing but which memory it is."""
    space = match[1].lower()
    return OomReport(_kind(space), "", 0, space_name=space, is_cut=True)


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], OomReport]], ...] = (
    (_TEMPORARIES, _read_temporaries),
    (_USED, _read_used),
    (_SCOPED, _read_scoped),
    (_SPACE, _read_space),
    (_CORES, _read_cores),
    (_BLOCK, _read_block),
    (_RUNTIME, _read_runtime),
    (_GPU, _read_gpu),
)
