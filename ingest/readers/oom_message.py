"""Reads XLA's messages that memory ran out: sizes, names, totals, and the largest buffers.

A message is read without its white space, so it does not matter where its lines were wrapped, or
whether they were joined. What is there is read; what is missing, or may be cut, is left out.
"""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from ..oom_report import SIZE, OomBuffer, OomReport, PrintedSize, parse_size, shape_sizes
from .oom_text import GAP, MessageText, message_texts

_LONGEST = 500
_ALIGNMENT = 4096
_KERNEL_MEMORIES = frozenset(("vmem", "smem", "sflag", "cmem", "shared"))

# A number that another may go on, or that ends the text, may be cut.
_NUMBER_ENDS = r"(?=[^\d.\x20\0]|\.[^\d\0])"
_NUMBER = rf"\d{{1,18}}{_NUMBER_ENDS}"
_ARRAY = r"[a-z][a-z0-9]*\[[^\]\0]*\](?:\{[^}\0]*\})?"


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of a text without its white space; spaces in it are there to be read."""
    return re.compile(text.replace(" ", ""), re.DOTALL)


# The first sentences, as groups of what they say. The first that is there is read.
_HEADS = tuple(
    _pattern(text)
    for text in (
        r"Ran out of memory on (?P<space>[A-Z]+?), the total memory required for HLO temporaries"
        rf" \((?P<used>{SIZE})\) exceeds available [A-Z]+ \((?P<capacity>{SIZE})\)",
        r"Ran out of memory in memory space (?P<space>[a-z_]+?)\."
        rf" Used (?P<used>{SIZE}) of (?P<capacity>{SIZE})"
        rf" (?:[a-z_]+\. Exceeded [a-z_]+ capacity by (?P<over>{SIZE}))?",
        r"Ran out of memory in memory space (?P<space>[a-z_]+?) while allocating on stack for"
        rf" (?P<what>.*?) (?:(?<!\.\.)\.)? (?:Scoped allocation with size (?P<requested>{SIZE})"
        rf" and limit (?P<limit>{SIZE}) exceeded scoped [a-z_]+ limit"
        rf" (?:by (?P<over>{SIZE}))?|$)",
        r"(?P<space>Shared) memory size limit exceeded"
        rf" (?:: requested (?P<requested>{_NUMBER}),? available:? (?P<limit>{_NUMBER}))?"
        rf" (?:, context: \[Fusion: (?P<shape>{_ARRAY}))?",
        rf"TensorCore Hbm usage: (?P<used>{SIZE}), SparseCore Hbm usage:? (?P<more>{SIZE}),"
        rf" exceeding available bytes: (?P<capacity>{SIZE})",
        r"Allocation \(size=(?P<requested>\d{1,18})\) would exceed memory"
        r" \(size=(?P<capacity>\d{1,18})\)"
        r" (?::: \#allocation\d+ \[(?P<block>(?:'[^'\0]*'|[^\]'\0])*)\]"
        r" (?::: (?P<by><?[\w.-]+>?))?)?",
        rf"Attempting to (?:allocate|reserve) (?P<requested>{SIZE}) [a-z]*\."
        rf" That was not possible (?P<end>\.)? (?:There are (?P<free>{SIZE}) free)?",
        rf"Out of memory while trying to allocate (?P<requested>\d{{1,18}}(?=bytes)|{SIZE})",
        rf"Failed to allocate request for {SIZE} \((?P<requested>\d{{1,18}}B)\)",
        r"(?P<host>Out of memory allocating) (?P<requested>\d{1,18})(?=bytes)",
        # Nothing but which memory it is.
        r"Ran out of memory (?:in memory space|on(?=HBM|VMEM|SMEM))"
        r" (?P<space>[A-Za-z_]+?)(?=[.,]|while)",
        # Nothing but that it is one: its figure is cut, or a line ends within it.
        r"(?:RESOURCE_EXHAUSTED|Resource exhausted): [^\0]*?"
        r" (?:(?P<gpu>Out of memory while trying to allocate|Failed to allocate request for)"
        r"|TensorCore Hbm usage)",
    )
)
_MODULE = _pattern(r"(?:Error loading program|executable_name=) '([\w.<>-]+)'")
_INSTRUCTION = re.compile(r"%?(?P<name>[\w.<>-]{1,1000})=", re.DOTALL)
_SHAPED = re.compile(rf"(?P<shape>{_ARRAY}|\(.*?\))(?=[a-z][\w-]*\()", re.DOTALL)
_OPCODE = re.compile(r"([a-z][\w-]*)\(")
_NAME = re.compile(r"%?([\w.<>-]{1,1000})")
_BLOCK_FIELDS = {
    "shape": re.compile(r"shape='([^'\0]*)'"),
    "space_name": re.compile(r"space=(\w+)(?=,|$)"),
    "tag": re.compile(r"tag='([^'\0]*)'"),
}
_METADATA = {
    "op_name": re.compile(r'\bop_name="((?:[^"\\\0]|\\.){0,20000})"'),
    "source_file": re.compile(r'source_file="((?:[^"\\\0]|\\.){0,20000})"'),
    "source_line": re.compile(rf"source_line=(\d{{1,9}}){_NUMBER_ENDS}"),
    "stack_frame_id": re.compile(rf"stack_frame_id=(\d{{1,9}}){_NUMBER_ENDS}"),
}

# Totals and lists: what begins each part, and what stands in it.
_PART = _pattern(
    rf"Total (?P<total>[a-z]+) usage >=|(?P<output>Output size)|Program (?P<program>[a-z]+)"
    rf" requirement (?P<size>{SIZE})|Largest program allocations in (?P<largest>[a-z]+):"
    r"|BufferAssignment (?P<stats>stats|OOM)|(?P<peak>Peak buffers:)"
    rf"|(?<![\d.]) (?P<rank>\d{{1,4}})\. (?=Size: {SIZE})|(?<!\w) Buffer (?P<buffer>\d{{1,4}}):"
)
_OF_TOTAL = {
    "reserved_bytes": _pattern(rf"reserved ({SIZE})"),
    "program_bytes": _pattern(rf"program ({SIZE})"),
    "argument_bytes": _pattern(rf"arguments ({SIZE})"),
}
_OF_OUTPUT = {
    "output_bytes": _pattern(rf"({SIZE})"),
    "alias_bytes": _pattern(rf"{SIZE}; shares ({SIZE}) with arguments"),
}
_OF_PROGRAM = {
    "temp_bytes": _pattern(rf"HLO temp ({SIZE})"),
    "fragmentation_bytes": _pattern(
        rf"HLO temp {SIZE} \([^\0]{{0,300}}? fragmentation \(({SIZE})\)"
    ),
}
_OF_STATS = {
    "argument_bytes": _pattern(rf"parameter allocation: ({SIZE})"),
    "output_bytes": _pattern(rf"maybe_live_out allocation: ({SIZE})"),
    "temp_bytes": _pattern(rf"preallocated temp allocation: ({SIZE})"),
    "fragmentation_bytes": _pattern(rf"preallocated temp fragmentation: ({SIZE})"),
    "used_bytes": _pattern(rf"total allocation: ({SIZE})"),
}
_TOTALS = ("program_bytes", *_OF_TOTAL, *_OF_OUTPUT, *_OF_PROGRAM, *_OF_STATS)
_FIELD = _pattern(
    r"(Operator|Shape|Unpadded size|Extra memory due to padding|XLA label|XLA Label"
    r"|Allocation type|Size|Entry Parameter Subshape):"
)
_PRINTED = re.compile(SIZE)
_RULE = re.compile(r"={10,}")
_WORDS = re.compile(r"[A-Za-z][A-Za-z ]*")
_SAYS_END = "See https://openxla.org/xla/errors/"


class _Squeezed:
    """A text without its white space, but for that between two numbers."""

    def __init__(self, text: str) -> None:
        self.whole = text
        words: list[str] = []
        self._starts: list[int] = []
        self._origins: list[int] = []
        length = 0
        last = ""
        for word in re.finditer(r"\S+", text):
            if last in _NUMERIC and word[0][0].isdigit():
                words.append(" ")
                length += 1
            self._starts.append(length)
            self._origins.append(word.start())
            words.append(word[0])
            length += len(word[0])
            last = word[0][-1]
        self.end = length
        # A break at the end says that the last word is whole.
        self.text = "".join(words) + ("\n" if text.endswith("\n") else "")

    def origin(self, at: int) -> int:
        """The place in the whole text of a place in this one."""
        if not self._starts:
            return 0
        word = max(bisect_right(self._starts, at) - 1, 0)
        return self._origins[word] + at - self._starts[word]

    def printed(self, span: tuple[int, int]) -> str:
        """A part as it was printed, its lines joined."""
        if span[0] == span[1]:
            return ""
        text = self.whole[self.origin(span[0]) : self.origin(span[1] - 1) + 1]
        return _BREAK.sub(
            lambda found: " " if found[1] is not None or found[2] == " " else "", text
        )


_NUMERIC = frozenset("0123456789.")
# A line that was cut at a width keeps the space there; one that was cut at a comma lacks it.
_BREAK = re.compile(r"((?<=,)|[ \t]+)?\n(\s*)")


def read_oom_messages(pieces: Iterable[bytes], *, is_list: bool = False) -> list[OomReport]:
    """The messages in the pieces of a text, in their order; a text may be of any length.

    With `is_list` the text is a list that XLA dumped: its first line is not missing.
    """
    texts = message_texts(pieces)
    reports = [report for text in texts if (report := _read(text, is_list=is_list)) is not None]
    return sorted(reports, key=lambda report: report.line)


def _read(message: MessageText, *, is_list: bool) -> OomReport | None:
    """The report of a message; None if it says nothing of memory."""
    squeezed = _Squeezed(message.text)
    parts = list(_PART.finditer(squeezed.text))
    head = _head(squeezed) if message.has_head else None
    if head is None:
        report = _headless(squeezed, parts, is_cut=not is_list)
    else:
        report = _read_sentence(squeezed, head)
    if module := _MODULE.search(squeezed.text):
        report.module_name = module[1]
    _read_parts(report, squeezed, parts)
    if report.space_name == "gpu":
        _read_allocator(report, message.allocator)
    # The lines of the first sentence, or of what stands in its place.
    sentence = squeezed.origin(head.end() - 1) if head else 0
    first = squeezed.whole[: sentence + 1] + squeezed.whole[sentence + 1 :].split("\n")[0]
    report.line, report.message = message.line, " ".join(first.split("\n")).strip()[:_LONGEST]
    is_read = head or any(getattr(report, name) is not None for name in _TOTALS)
    return report if is_read or report.buffers else None


def _headless(squeezed: _Squeezed, parts: list[re.Match[str]], *, is_cut: bool) -> OomReport:
    """A report of a message without its first sentence."""
    if any(part["buffer"] or part["stats"] or part["peak"] for part in parts):
        return OomReport("runtime", "", 0, space_name="gpu", is_cut=is_cut)
    is_kernel = "Allocationtype:scoped" in squeezed.text
    return OomReport("scoped" if is_kernel else "program", "", 0, is_cut=is_cut)


# -- The first sentence ---------------------------------------------------------------------


def _head(squeezed: _Squeezed) -> re.Match[str] | None:
    matches = (pattern.search(squeezed.text) for pattern in _HEADS)
    return next((match for match in matches if match), None)


def _read_sentence(squeezed: _Squeezed, match: re.Match[str]) -> OomReport:
    groups = match.groupdict()
    space = groups.get("space")
    report = OomReport("program", "", 0, space_name=space.lower() if space else None)
    if report.space_name in _KERNEL_MEMORIES:
        report.kind = "scoped"
    if "more" in groups:
        report.space_name = "hbm"
        _set_over(report, groups, "used", "capacity")
    elif "block" in groups:
        _read_block(report, squeezed, match)
    elif "limit" in groups:
        if groups.get("what"):
            _read_instruction(report, squeezed, match.span("what"), is_whole=bool(groups["limit"]))
        report.shape = groups.get("shape") or report.shape
        _set_over(report, groups, "requested", "limit")
    elif "requested" in groups:
        _read_runtime(report, groups)
    elif "used" in groups:
        _set_over(report, groups, "used", "capacity")
    else:
        report.is_cut = True
        if "gpu" in groups:
            kind, space = ("runtime", "gpu") if groups["gpu"] else ("program", "hbm")
            report.kind, report.space_name = kind, space
    return report


def _set_over(report: OomReport, groups: dict[str, str | None], need: str, limit: str) -> None:
    """Set need, limit and difference, unless they contradict each other: a damaged text."""
    wanted, there = groups[need], groups[limit]
    if wanted is None or there is None:
        report.is_cut = True
        return
    used, capacity = parse_size(wanted), parse_size(there)
    if more := groups.get("more"):
        added = parse_size(more)
        used = PrintedSize(used.size_bytes + added.size_bytes, used.rounding + added.rounding)
    difference = PrintedSize(used.size_bytes - capacity.size_bytes, used.rounding)
    over = parse_size(by) if (by := groups.get("over")) else difference
    if difference.size_bytes <= -used.rounding or not difference.agrees(
        over.size_bytes, over.rounding + capacity.rounding
    ):
        report.is_cut = True
        return
    setattr(report, f"{need}_bytes", used.size_bytes)
    setattr(report, f"{limit}_bytes", capacity.size_bytes)
    # Where the text is cut, the difference of two rounded sizes is not what it said.
    if "over" in groups and groups["over"] is None:
        report.is_cut = True
    else:
        report.exceeded_bytes = over.size_bytes
    report.is_rounded = used.rounding > 0


def _read_instruction(
    report: OomReport | OomBuffer, squeezed: _Squeezed, span: tuple[int, int], *, is_whole: bool
) -> None:
    """Name, shape and metadata of `NAME = [SHAPE] OPCODE(…)`, as far as they are there.

    A buffer has its opcode too; its shape stands in a field of its own.
    """
    text = squeezed.text[span[0] : span[1]]
    if named := _INSTRUCTION.match(text):
        report.instruction = named["name"]
        at = named.end()
        if shaped := _SHAPED.match(text, at):
            at = shaped.end()
            if isinstance(report, OomReport):
                start = span[0] + shaped.start()
                report.shape = squeezed.printed((start, span[0] + at))
        if isinstance(report, OomBuffer) and (opcode := _OPCODE.match(text, at)):
            report.opcode = opcode[1]
    elif is_whole and isinstance(report, OomReport) and (name := _NAME.fullmatch(text)):
        report.instruction = name[1]
    _set(report, _metadata(squeezed, span))


def _set(report: OomReport | OomBuffer, values: dict[str, str | int]) -> None:
    for name, value in values.items():
        setattr(report, name, value)


def _metadata(squeezed: _Squeezed, span: tuple[int, int]) -> dict[str, str | int]:
    """op_name, source_file, source_line, stack_frame_id, as far as the text has them whole."""
    metadata: dict[str, str | int] = {}
    # One sign more tells whether a number ends with the part.
    end = min(span[1] + 1, squeezed.end)
    for name, pattern in _METADATA.items():
        match = pattern.search(squeezed.text, span[0], end)
        if match and match.end() <= span[1]:
            is_text = name in ("op_name", "source_file")
            metadata[name] = _plain(squeezed.printed(match.span(1))) if is_text else int(match[1])
    return metadata


def _plain(text: str) -> str:
    """A quoted text with C escapes undone, as in the warehouse; as it is if they are wrong."""
    if "\\" not in text:
        return text
    try:
        plain: bytes = codecs.escape_decode(text.encode())[0]
        return plain.decode()
    except ValueError:
        return text


def _read_block(report: OomReport, squeezed: _Squeezed, match: re.Match[str]) -> None:
    report.kind = "allocation"
    requested, capacity = int(match["requested"]), int(match["capacity"])
    if requested > capacity:
        report.requested_bytes, report.capacity_bytes = requested, capacity
        report.exceeded_bytes = requested - capacity
    by = None
    if match["by"] is not None:
        # The name ends where a space or the text does; there it may be cut.
        start = squeezed.origin(match.start("by"))
        by = re.match(r"\S+(?=\s)", squeezed.whole[start:])
    report.is_cut = requested <= capacity or by is None
    if by is not None and (name := re.match(r"[\w.-]+", by[0])):
        report.instruction = name[0]
    if match["block"] is None:
        return
    for name_of, pattern in _BLOCK_FIELDS.items():
        if field := pattern.search(squeezed.text, *match.span("block")):
            text = squeezed.printed(field.span(1))
            sizes = shape_sizes(text) if name_of == "shape" else None
            # A shape of another size is damaged.
            if name_of != "shape" or (sizes and 0 <= requested - sizes[2] <= _ALIGNMENT):
                setattr(report, name_of, text)


def _read_runtime(report: OomReport, groups: dict[str, Any]) -> None:
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
        # With enough in all, no free block alone is large enough.
        if free.size_bytes < requested.size_bytes:
            report.exceeded_bytes = requested.size_bytes - free.size_bytes


def _read_allocator(report: OomReport, memory: dict[str, str]) -> None:
    """What the GPU's allocator may use, and what of it was free."""
    limit = parse_size(memory.get("total") or memory.get("Limit") or "0")
    if not limit.size_bytes:
        return
    report.capacity_bytes = limit.size_bytes
    report.is_rounded |= limit.rounding > 0
    if free := memory.get("free"):
        report.free_bytes = parse_size(free).size_bytes
    elif in_use := memory.get("InUse"):
        report.free_bytes = max(limit.size_bytes - parse_size(in_use).size_bytes, 0)


# -- Totals and buffers ---------------------------------------------------------------------


def _read_parts(report: OomReport, squeezed: _Squeezed, parts: list[re.Match[str]]) -> None:
    """What follows the first sentence, or all of a message without one."""
    blocks = []
    for part, following in zip(parts, [*parts[1:], None], strict=False):
        end = squeezed.end if following is None else following.start()
        report.space_name = report.space_name or part["total"] or part["program"] or part["largest"]
        if part["total"]:
            _read_sizes(report, _OF_TOTAL, squeezed, part.end(), end)
        elif part["output"]:
            _read_sizes(report, _OF_OUTPUT, squeezed, part.end(), end)
        elif part["program"]:
            if report.program_bytes is None:
                report.program_bytes = parse_size(part["size"]).size_bytes
                report.is_rounded = True
            _read_sizes(report, _OF_PROGRAM, squeezed, part.end(), end)
        elif part["rank"] or part["buffer"]:
            blocks.append((part, end))
    first = blocks[0][0].start() if blocks else squeezed.end
    _read_sizes(report, _OF_STATS, squeezed, 0, first)
    _read_buffers(report, squeezed, blocks)
    if report.buffers and not squeezed.text.endswith("\n"):
        report.is_cut |= _SAYS_END not in squeezed.whole
    if any(part["stats"] for part in parts) and not report.buffers:
        report.is_cut = True


def _read_sizes(
    report: OomReport,
    names: dict[str, re.Pattern[str]],
    squeezed: _Squeezed,
    start: int,
    end: int,
) -> None:
    for name, pattern in names.items():
        said = pattern.search(squeezed.text, start, end)
        if said and getattr(report, name) is None:
            size = parse_size(said[1])
            setattr(report, name, size.size_bytes)
            report.is_rounded |= size.rounding > 0


def _read_buffers(
    report: OomReport, squeezed: _Squeezed, blocks: list[tuple[re.Match[str], int]]
) -> None:
    """The listed buffers; a block is whole if a rule ends it."""
    last, size = 0, PrintedSize(0)
    for part, end in blocks:
        rank = int(part["rank"] or part["buffer"])
        if part.start() == 0 and squeezed.whole[0].isdigit():
            # The number may be cut.
            report.is_cut = True
            continue
        if rank != last + 1:
            report.is_cut = True
            if report.buffers:
                # Blocks are missing: the end of the one before may be another block's end.
                before = report.buffers[-1].rank
                report.buffers[-1] = OomBuffer(before, size.size_bytes, size.rounding > 0)
        last = rank
        left_out = squeezed.text.find(GAP, part.end(), end)
        end = end if left_out < 0 else left_out
        rule = _RULE.search(squeezed.text, part.end(), end)
        fields = _fields(squeezed, part.end(), rule.start() if rule else end, is_whole=bool(rule))
        printed = _sizes(squeezed, fields)
        buffer = _read_buffer(rank, squeezed, fields, printed)
        report.is_cut |= rule is None or buffer is None
        if buffer is not None and all(other.rank != rank for other in report.buffers):
            size = printed["Size"]
            report.buffers.append(buffer)
            report.is_rounded |= buffer.is_rounded


def _sizes(squeezed: _Squeezed, fields: dict[str, tuple[int, int]]) -> dict[str, PrintedSize]:
    """The fields that are sizes."""
    return {
        name: parse_size(said[0])
        for name, span in fields.items()
        if (said := _PRINTED.match(squeezed.text, *span))
    }


def _fields(
    squeezed: _Squeezed, start: int, end: int, *, is_whole: bool
) -> dict[str, tuple[int, int]]:
    """Where the values of a block's fields stand; the last is left out if it may be cut."""
    labels = list(_FIELD.finditer(squeezed.text, start, end))
    ends = [*(label.start() for label in labels), end][1:]
    spans: dict[str, tuple[int, int]] = {}
    for label, until in zip(labels, ends, strict=True):
        # Of these what is whole is read; a field that comes again is another block's.
        may_be_cut = until == end and not is_whole
        if label[1] in spans:
            break
        if not may_be_cut or label[1] in ("Size", "Operator", "XLAlabel"):
            spans[label[1]] = (label.end(), until)
    return spans


def _read_buffer(
    rank: int,
    squeezed: _Squeezed,
    fields: dict[str, tuple[int, int]],
    sizes: dict[str, PrintedSize],
) -> OomBuffer | None:
    """The buffer of a block; None if it has no size, or its figures contradict each other."""
    printed = sizes.get("Size")
    if printed is None:
        return None
    buffer = OomBuffer(rank, printed.size_bytes, printed.rounding > 0)
    unpadded, extra = sizes.get("Unpaddedsize"), sizes.get("Extramemoryduetopadding")
    if unpadded is not None:
        padding = extra or PrintedSize(0)
        both = unpadded.size_bytes + padding.size_bytes
        agrees = printed.agrees(both, unpadded.rounding + padding.rounding)
        if extra is not None and not agrees:
            return None
        buffer.unpadded_bytes = unpadded.size_bytes
        if agrees and (extra is not None or fields.keys() & {"XLAlabel", "Allocationtype"}):
            buffer.padding_bytes = padding.size_bytes
    if shape := fields.get("Shape") or fields.get("EntryParameterSubshape"):
        _add_shape(buffer, squeezed.text[slice(*shape)], printed)
    if span := fields.get("XLAlabel"):
        _read_instruction(buffer, squeezed, span, is_whole=False)
    if span := fields.get("Operator"):
        _set(buffer, _metadata(squeezed, span))
    if (span := fields.get("XLALabel")) and re.fullmatch(
        r"[a-z][a-z0-9-]*", opcode := _first_line(squeezed, span)
    ):
        buffer.opcode = opcode
    if span := fields.get("Allocationtype"):
        words = _WORDS.fullmatch(_first_line(squeezed, span))
        buffer.allocation_type = words[0] if words else None
    if "EntryParameterSubshape" in fields:
        buffer.allocation_type = "argument"
    return buffer


def _first_line(squeezed: _Squeezed, span: tuple[int, int]) -> str:
    text = squeezed.whole[squeezed.origin(span[0]) : squeezed.origin(span[1] - 1) + 1]
    return text.split("\n")[0].strip()


def _add_shape(buffer: OomBuffer, text: str, printed: PrintedSize) -> None:
    """The shape, and its exact sizes if they agree with the printed one."""
    whole = re.match(_ARRAY, text)
    sizes = shape_sizes(whole[0]) if whole else None
    if whole is None or sizes is None:
        return
    element_type, logical, padded = sizes
    buffer.shape, buffer.element_type = whole[0], element_type
    if printed.agrees(padded):
        buffer.size_bytes, buffer.is_rounded = padded, False
        buffer.unpadded_bytes, buffer.padding_bytes = logical, padded - logical
