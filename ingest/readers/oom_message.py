"""Reader of XLA's out-of-memory messages: sizes, names, totals, and the largest buffers.

The parts of a message that are missing, or may be truncated, are left out.
"""

import re
from collections.abc import Iterable
from typing import Any

from ..oom_report import SIZE, OomReport, PrintedSize, parse_size, shape_sizes
from .compact_text import ARRAY, NUMBER, CompactText, compact_pattern
from .oom_instruction import read_report_instruction
from .oom_lists import find_parts, has_gpu_list, has_totals, read_parts
from .oom_text import MessageText, message_texts

_MAX_FIRST_SENTENCE = 500
# A request may exceed the padded size of its shape by this many bytes, for alignment.
_ALIGNMENT = 4096
_KERNEL_MEMORIES = frozenset(("vmem", "smem", "sflag", "cmem", "shared"))

# The first sentences of messages; the first pattern that matches is used. `used` exceeds
# `capacity` by `over`; `requested` exceeds `limit` or `capacity`.
_SENTENCES = tuple(
    compact_pattern(text)
    for text in (
        r"Ran out of memory on (?P<space>[A-Z]+?), the total memory required for HLO temporaries"
        rf" \((?P<used>{SIZE})\) exceeds available [A-Z]+ \((?P<capacity>{SIZE})\)",
        r"Ran out of memory in memory space (?P<space>[a-z_]+?)\."
        rf" Used (?P<used>{SIZE}) of (?P<capacity>{SIZE})"
        rf" (?:[a-z_]+\. Exceeded [a-z_]+ capacity by (?P<over>{SIZE}))?",
        r"Ran out of memory in memory space (?P<space>[a-z_]+?) while allocating on stack for"
        rf" (?P<instruction>.*?) (?:(?<!\.\.)\.)? (?:Scoped allocation with size"
        rf" (?P<requested>{SIZE}) and limit (?P<limit>{SIZE}) exceeded scoped [a-z_]+ limit"
        rf" (?:by (?P<over>{SIZE}))?|$)",
        r"(?P<space>Shared) memory size limit exceeded"
        rf" (?:: requested (?P<requested>{NUMBER}),? available:? (?P<limit>{NUMBER}))?"
        rf" (?:, context: \[Fusion: (?P<shape>{ARRAY}))?",
        rf"TensorCore Hbm usage: (?P<used>{SIZE}), SparseCore Hbm usage:? (?P<sparse_core>{SIZE}),"
        rf" exceeding available bytes: (?P<capacity>{SIZE})",
        r"Allocation \(size=(?P<requested>\d{1,18})\) would exceed memory"
        r" \(size=(?P<capacity>\d{1,18})\)"
        r" (?::: \#allocation\d+ \[(?P<block>(?:'[^'\0]*'|[^\]'\0])*)\]"
        r" (?::: (?P<name><?[\w.-]+>?))?)?",
        rf"Attempting to (?:allocate|reserve) (?P<requested>{SIZE}) [a-z]*\."
        rf" That was not possible (?P<end>\.)? (?:There are (?P<free>{SIZE}) free)?",
        rf"Out of memory while trying to allocate (?P<requested>\d{{1,18}}(?=bytes)|{SIZE})",
        rf"Failed to allocate request for {SIZE} \((?P<requested>\d{{1,18}}B)\)",
        r"(?P<host>Out of memory allocating) (?P<requested>\d{1,18})(?=bytes)",
        # A truncated sentence with nothing but the memory space.
        r"Ran out of memory (?:in memory space|on(?=HBM|VMEM|SMEM))"
        r" (?P<space>[A-Za-z_]+?)(?=[.,]|while)",
        # A truncated sentence without a size.
        r"(?:RESOURCE_EXHAUSTED|Resource exhausted): [^\0]*?"
        r" (?:(?P<gpu>Out of memory while trying to allocate|Failed to allocate request for)"
        r"|TensorCore Hbm usage)",
    )
)
_MODULE = compact_pattern(r"(?:Error loading program|executable_name=) '([\w.<>-]+)'")
# The attributes of an `#allocation`, by column of `oom_reports`.
_BLOCK_FIELDS = {
    "shape": re.compile(r"shape='([^'\0]*)'"),
    "space_name": re.compile(r"space=(\w+)(?=,|$)"),
    "tag": re.compile(r"tag='([^'\0]*)'"),
}


def read_oom_messages(pieces: Iterable[bytes], *, is_list: bool = False) -> list[OomReport]:
    """The out-of-memory messages in a text of any length, by line.

    Args:
        pieces: consecutive pieces of the text.
        is_list: whether the text is a file that XLA dumped, which has no first sentence.
    """
    texts = message_texts(pieces)
    reports = [report for text in texts if (report := _read(text, is_list=is_list)) is not None]
    return sorted(reports, key=lambda report: report.line)


def _read(text: MessageText, *, is_list: bool) -> OomReport | None:
    """The report of a message; None if it has neither a first sentence nor a size."""
    message = CompactText(text.text)
    parts = find_parts(message)
    sentence = _find_sentence(message) if text.has_head else None
    if sentence is None:
        report = _report_without_sentence(message, parts, is_cut=not is_list)
    else:
        report = _read_sentence(message, sentence)
    if module := _MODULE.search(message.text):
        report.module_name = module[1]
    read_parts(report, message, parts)
    if report.space_name == "gpu":
        _read_allocator(report, text.allocator)
    # All lines of the first sentence; without one, the first line.
    last = message.source_offset(sentence.end() - 1) if sentence else 0
    line_break = message.source.find("\n", last + 1)
    lines = message.source if line_break < 0 else message.source[:line_break]
    report.line = text.line
    report.message = lines.replace("\n", " ").strip()[:_MAX_FIRST_SENTENCE]
    return report if sentence or has_totals(report) or report.buffers else None


def _report_without_sentence(
    message: CompactText, parts: list[re.Match[str]], *, is_cut: bool
) -> OomReport:
    """The kind and memory space of a message that lacks its first sentence."""
    if has_gpu_list(parts):
        return OomReport("runtime", "", 0, space_name="gpu", is_cut=is_cut)
    is_kernel = "Allocationtype:scoped" in message.text
    return OomReport("scoped" if is_kernel else "program", "", 0, is_cut=is_cut)


def _find_sentence(message: CompactText) -> re.Match[str] | None:
    for pattern in _SENTENCES:
        if match := pattern.search(message.text):
            return match
    return None


def _read_sentence(message: CompactText, sentence: re.Match[str]) -> OomReport:
    """A report of the first sentence; the groups of its pattern determine the kind."""
    groups = sentence.groupdict()
    space = groups.get("space")
    report = OomReport("program", "", 0, space_name=space.lower() if space else None)
    if report.space_name in _KERNEL_MEMORIES:
        report.kind = "scoped"
    if "sparse_core" in groups:
        report.space_name = "hbm"
        _read_excess(report, groups, "used", "capacity")
    elif "block" in groups:
        _read_block(report, message, sentence)
    elif "limit" in groups:
        if groups.get("instruction"):
            is_complete = groups["limit"] is not None
            span = sentence.span("instruction")
            read_report_instruction(report, message, span, is_complete=is_complete)
        report.shape = groups.get("shape") or report.shape
        _read_excess(report, groups, "requested", "limit")
    elif "requested" in groups:
        _read_runtime(report, groups)
    elif "used" in groups:
        _read_excess(report, groups, "used", "capacity")
    else:
        report.is_cut = True
        if "gpu" in groups:
            kind, space = ("runtime", "gpu") if groups["gpu"] else ("program", "hbm")
            report.kind, report.space_name = kind, space
    return report


def _read_excess(report: OomReport, groups: dict[str, str | None], need: str, limit: str) -> None:
    """Read the sizes `need` and `limit`, and their difference.

    Sizes that contradict each other are not read: then the text is corrupt.
    """
    need_text, limit_text = groups[need], groups[limit]
    if need_text is None or limit_text is None:
        report.is_cut = True
        return
    used, capacity = parse_size(need_text), parse_size(limit_text)
    if text := groups.get("sparse_core"):
        added = parse_size(text)
        used = PrintedSize(used.size_bytes + added.size_bytes, used.rounding + added.rounding)
    difference = PrintedSize(used.size_bytes - capacity.size_bytes, used.rounding)
    over = parse_size(text) if (text := groups.get("over")) else difference
    if difference.size_bytes <= -used.rounding or not difference.agrees(
        over.size_bytes, over.rounding + capacity.rounding
    ):
        report.is_cut = True
        return
    setattr(report, f"{need}_bytes", used.size_bytes)
    setattr(report, f"{limit}_bytes", capacity.size_bytes)
    if "over" in groups and groups["over"] is None:
        # The printed difference is truncated; that of two rounded sizes may not equal it.
        report.is_cut = True
    else:
        report.exceeded_bytes = over.size_bytes
    report.is_rounded = used.rounding > 0


def _read_block(report: OomReport, message: CompactText, sentence: re.Match[str]) -> None:
    """Read `Allocation (size=...) would exceed memory (size=...) :: #allocation1 [...] :: NAME`."""
    report.kind = "allocation"
    requested, capacity = int(sentence["requested"]), int(sentence["capacity"])
    if requested > capacity:
        report.requested_bytes, report.capacity_bytes = requested, capacity
        report.exceeded_bytes = requested - capacity
    name = None
    if sentence["name"] is not None:
        # A name at the end of the text may be truncated.
        start = message.source_offset(sentence.start("name"))
        name = re.match(r"\S+(?=\s)", message.source[start:])
    report.is_cut = requested <= capacity or name is None
    if name is not None and (instruction := re.match(r"[\w.-]+", name[0])):
        report.instruction = instruction[0]
    if sentence["block"] is None:
        return
    for column, pattern in _BLOCK_FIELDS.items():
        field = pattern.search(message.text, *sentence.span("block"))
        if field is None:
            continue
        text = message.printed(field.span(1))
        if column == "shape":
            # A shape of another size is corrupt.
            sizes = shape_sizes(text)
            if sizes is None or not 0 <= requested - sizes[2] <= _ALIGNMENT:
                continue
        setattr(report, column, text)


def _read_runtime(report: OomReport, groups: dict[str, Any]) -> None:
    """Read a failed allocation of a running program, by a GPU, the host or a TPU."""
    requested = parse_size(groups["requested"])
    report.kind, report.space_name = "runtime", "host" if groups.get("host") else "gpu"
    report.requested_bytes, report.is_rounded = requested.size_bytes, requested.rounding > 0
    if "free" not in groups:
        return
    report.space_name, report.is_cut = "hbm", groups["end"] is None
    if groups["free"] is not None:
        free = parse_size(groups["free"])
        report.free_bytes = free.size_bytes
        report.is_rounded |= free.rounding > 0
        # With enough free bytes in total the memory is fragmented.
        if free.size_bytes < requested.size_bytes:
            report.exceeded_bytes = requested.size_bytes - free.size_bytes


def _read_allocator(report: OomReport, memory: dict[str, str]) -> None:
    """Read the capacity and the free bytes of the GPU's allocator, see `MessageText.allocator`."""
    limit = parse_size(memory.get("total") or memory.get("Limit") or "0")
    if not limit.size_bytes:
        return
    report.capacity_bytes = limit.size_bytes
    report.is_rounded |= limit.rounding > 0
    if free := memory.get("free"):
        report.free_bytes = parse_size(free).size_bytes
    elif in_use := memory.get("InUse"):
        report.free_bytes = max(limit.size_bytes - parse_size(in_use).size_bytes, 0)
