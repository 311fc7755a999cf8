"""The totals in an out-of-memory message, and its list of the largest buffers."""

import re

from ..oom_report import SIZE, OomBuffer, OomReport, PrintedSize, parse_size, shape_sizes
from .compact_text import ARRAY, CompactText, Span, compact_pattern
from .oom_instruction import read_buffer_instruction, read_metadata
from .oom_text import GAP

# The first words of each part of a message after its first sentence.
_PART = compact_pattern(
    rf"Total (?P<total>[a-z]+) usage >=|(?P<output>Output size)|Program (?P<program>[a-z]+)"
    rf" requirement (?P<size>{SIZE})|Largest program allocations in (?P<largest>[a-z]+):"
    r"|BufferAssignment (?P<stats>stats|OOM)|(?P<peak>Peak buffers:)"
    rf"|(?<![\d.]) (?P<rank>\d{{1,4}})\. (?=Size: {SIZE})|(?<!\w) Buffer (?P<buffer>\d{{1,4}}):"
)
# The sizes in a part, by column of `oom_reports`.
_TOTAL_SIZES = {
    "reserved_bytes": compact_pattern(rf"reserved ({SIZE})"),
    "program_bytes": compact_pattern(rf"program ({SIZE})"),
    "argument_bytes": compact_pattern(rf"arguments ({SIZE})"),
}
_OUTPUT_SIZES = {
    "output_bytes": compact_pattern(rf"({SIZE})"),
    "alias_bytes": compact_pattern(rf"{SIZE}; shares ({SIZE}) with arguments"),
}
_PROGRAM_SIZES = {
    "temp_bytes": compact_pattern(rf"HLO temp ({SIZE})"),
    "fragmentation_bytes": compact_pattern(
        rf"HLO temp {SIZE} \([^\0]{{0,300}}? fragmentation \(({SIZE})\)"
    ),
}
_STATS_SIZES = {
    "argument_bytes": compact_pattern(rf"parameter allocation: ({SIZE})"),
    "output_bytes": compact_pattern(rf"maybe_live_out allocation: ({SIZE})"),
    "temp_bytes": compact_pattern(rf"preallocated temp allocation: ({SIZE})"),
    "fragmentation_bytes": compact_pattern(rf"preallocated temp fragmentation: ({SIZE})"),
    "used_bytes": compact_pattern(rf"total allocation: ({SIZE})"),
}
_COLUMNS = frozenset(
    ("program_bytes", *_TOTAL_SIZES, *_OUTPUT_SIZES, *_PROGRAM_SIZES, *_STATS_SIZES)
)
# The labels in the block of one buffer.
_FIELD = compact_pattern(
    r"(Operator|Shape|Unpadded size|Extra memory due to padding|XLA label|XLA Label"
    r"|Allocation type|Size|Entry Parameter Subshape):"
)
_PRINTED_SIZE = re.compile(SIZE)
# The line below the block of one buffer.
_RULE = re.compile(r"={10,}")
_ALLOCATION_TYPE = re.compile(r"[A-Za-z][A-Za-z ]*")
_OPCODE_LABEL = re.compile(r"[a-z][a-z0-9-]*")
_LAST_LINE = "See https://openxla.org/xla/errors/"


def find_parts(message: CompactText) -> list[re.Match[str]]:
    """The beginnings of the totals and of the blocks of buffers."""
    return list(_PART.finditer(message.text))


def has_gpu_list(parts: list[re.Match[str]]) -> bool:
    """Whether the parts are those that XLA for GPU prints."""
    return any(part["buffer"] or part["stats"] or part["peak"] for part in parts)


def has_totals(report: OomReport) -> bool:
    """Whether a report has one of the totals."""
    return any(getattr(report, column) is not None for column in _COLUMNS)


def read_parts(report: OomReport, message: CompactText, parts: list[re.Match[str]]) -> None:
    """Read the totals and the largest buffers into a report."""
    blocks = []
    ends = [*(part.start() for part in parts), message.end][1:]
    for part, end in zip(parts, ends, strict=True):
        report.space_name = report.space_name or part["total"] or part["program"] or part["largest"]
        span = part.end(), end
        if part["total"]:
            _read_sizes(report, _TOTAL_SIZES, message, span)
        elif part["output"]:
            _read_sizes(report, _OUTPUT_SIZES, message, span)
        elif part["program"]:
            if report.program_bytes is None:
                report.program_bytes = parse_size(part["size"]).size_bytes
                report.is_rounded = True
            _read_sizes(report, _PROGRAM_SIZES, message, span)
        elif part["rank"] or part["buffer"]:
            blocks.append((part, end))
    first_block = blocks[0][0].start() if blocks else message.end
    _read_sizes(report, _STATS_SIZES, message, (0, first_block))
    _read_blocks(report, message, blocks)
    if report.buffers and not message.text.endswith("\n"):
        report.is_cut |= _LAST_LINE not in message.source
    if any(part["stats"] for part in parts) and not report.buffers:
        report.is_cut = True


def _read_sizes(
    report: OomReport, patterns: dict[str, re.Pattern[str]], message: CompactText, span: Span
) -> None:
    """Read the sizes in a span into the columns that have no value."""
    for column, pattern in patterns.items():
        match = pattern.search(message.text, *span)
        if match and getattr(report, column) is None:
            size = parse_size(match[1])
            setattr(report, column, size.size_bytes)
            report.is_rounded |= size.rounding > 0


def _read_blocks(
    report: OomReport, message: CompactText, blocks: list[tuple[re.Match[str], int]]
) -> None:
    """Read the listed buffers into a report.

    Args:
        blocks: by buffer, the match of its rank and the end of its block.
    """
    previous_rank, previous_size = 0, PrintedSize(0)
    for part, end in blocks:
        rank = int(part["rank"] or part["buffer"])
        if part.start() == 0 and message.source[0].isdigit():
            # The first digits of the rank may be missing.
            report.is_cut = True
            continue
        if rank != previous_rank + 1:
            report.is_cut = True
            if report.buffers:
                # Blocks are missing: the end of the previous one may belong to another buffer.
                report.buffers[-1] = OomBuffer(
                    report.buffers[-1].rank, previous_size.size_bytes, previous_size.rounding > 0
                )
        previous_rank = rank
        gap = message.text.find(GAP, part.end(), end)
        end = end if gap < 0 else gap
        rule = _RULE.search(message.text, part.end(), end)
        fields = _find_fields(
            message, (part.end(), rule.start() if rule else end), is_complete=rule is not None
        )
        sizes = {
            label: parse_size(match[0])
            for label, span in fields.items()
            if (match := _PRINTED_SIZE.match(message.text, *span))
        }
        buffer = _read_buffer(rank, message, fields, sizes)
        report.is_cut |= rule is None or buffer is None
        if buffer is not None and all(other.rank != rank for other in report.buffers):
            previous_size = sizes["Size"]
            report.buffers.append(buffer)
            report.is_rounded |= buffer.is_rounded


def _find_fields(message: CompactText, block: Span, *, is_complete: bool) -> dict[str, Span]:
    """The spans of the values of a block's fields, by label.

    Of a block that is not complete the last value may be truncated. It is left out, except for
    fields whose readers notice that.
    """
    labels = list(_FIELD.finditer(message.text, *block))
    ends = [*(label.start() for label in labels), block[1]][1:]
    spans: dict[str, Span] = {}
    for label, end in zip(labels, ends, strict=True):
        if label[1] in spans:
            # The field of another block, whose beginning is missing.
            break
        may_be_truncated = end == block[1] and not is_complete
        if not may_be_truncated or label[1] in ("Size", "Operator", "XLAlabel"):
            spans[label[1]] = (label.end(), end)
    return spans


def _read_buffer(
    rank: int, message: CompactText, fields: dict[str, Span], sizes: dict[str, PrintedSize]
) -> OomBuffer | None:
    """The buffer of a block; None if it has no size, or sizes that contradict each other."""
    printed = sizes.get("Size")
    if printed is None:
        return None
    buffer = OomBuffer(rank, printed.size_bytes, printed.rounding > 0)
    unpadded, extra = sizes.get("Unpaddedsize"), sizes.get("Extramemoryduetopadding")
    if unpadded is not None:
        padding = extra or PrintedSize(0)
        total_bytes = unpadded.size_bytes + padding.size_bytes
        agrees = printed.agrees(total_bytes, unpadded.rounding + padding.rounding)
        if extra is not None and not agrees:
            return None
        buffer.unpadded_bytes = unpadded.size_bytes
        if agrees and (extra is not None or fields.keys() & {"XLAlabel", "Allocationtype"}):
            buffer.padding_bytes = padding.size_bytes
    if span := fields.get("Shape") or fields.get("EntryParameterSubshape"):
        _read_shape(buffer, message.text[slice(*span)], printed)
    if span := fields.get("XLAlabel"):
        read_buffer_instruction(buffer, message, span)
    if span := fields.get("Operator"):
        read_metadata(buffer, message, span)
    if span := fields.get("XLALabel"):
        opcode = _OPCODE_LABEL.fullmatch(_first_line(message, span))
        buffer.opcode = opcode[0] if opcode else buffer.opcode
    if "EntryParameterSubshape" in fields:
        buffer.allocation_type = "argument"
    elif span := fields.get("Allocationtype"):
        allocation_type = _ALLOCATION_TYPE.fullmatch(_first_line(message, span))
        buffer.allocation_type = allocation_type[0] if allocation_type else None
    return buffer


def _first_line(message: CompactText, span: Span) -> str:
    return message.source_part(span).split("\n")[0].strip()


def _read_shape(buffer: OomBuffer, text: str, printed: PrintedSize) -> None:
    """Read the shape, and the exact sizes that follow from it if they agree with `printed`."""
    shape = re.match(ARRAY, text)
    sizes = shape_sizes(shape[0]) if shape else None
    if shape is None or sizes is None:
        return
    element_type, logical_bytes, padded_bytes = sizes
    buffer.shape, buffer.element_type = shape[0], element_type
    if printed.agrees(padded_bytes):
        buffer.size_bytes, buffer.is_rounded = padded_bytes, False
        buffer.unpadded_bytes = logical_bytes
        buffer.padding_bytes = padded_bytes - logical_bytes
