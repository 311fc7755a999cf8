"""What follows the first line of an out-of-memory message: totals and the largest buffers.

A line is taken for part of the message only if it has the form that XLA prints at this place,
so that lines of other processes in between do no harm.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ..oom_report import SIZE, SIZE_GPU, OomBuffer, OomReport, PrintedSize, parse_size, shape_sizes
from .oom_metadata import parse_instruction, parse_metadata

_TOTAL = re.compile(rf"Total (\w+) usage >= ({SIZE}):")
_REQUIREMENT = re.compile(rf"Program (\w+) requirement ({SIZE}):")
_ENTRY = re.compile(
    rf"(reserved|program|arguments|global|scoped|HLO temp)\s+(?:({SIZE})|unknown size)"
    rf"(?: \(.*fragmentation \(({SIZE})\)\))?"
)
_OUTPUT = re.compile(rf"Output size (?:({SIZE}); shares ({SIZE}) with arguments\.|unknown\.)")
_LARGEST = re.compile(r"Largest program allocations in (\w+):")
_BLOCK = re.compile(rf"(\d{{1,4}})\. Size: ({SIZE})")
_FIELD = re.compile(
    r"(Operator|Shape|Unpadded size|Extra memory due to padding|XLA [lL]abel|Allocation type"
    r"|Size|Entry Parameter Subshape): (.*)",
    re.DOTALL,
)
_RULE = re.compile(r"={10,}\W*")
_STATS = re.compile(
    rf"(parameter|constant|maybe_live_out|preallocated temp|total) "
    rf"(allocation|fragmentation): +({SIZE_GPU})(?: \([\d.]+%\))?"
)
_BUFFER = re.compile(r"Buffer (\d{1,4}):")
_OPCODE = re.compile(r"[a-z][a-z0-9-]*")
# What log shippers write in place of what they left out.
_LEFT_OUT = re.compile(r"\W*(?:\.{3}|…)|.{0,40}\btruncated\b", re.IGNORECASE)
_END = re.compile(r"See https://openxla\.org/xla/errors/")
# What each line of a GPU's list begins with has no size, so the names tell it apart.
_OPENS = re.compile(
    r"(?:Total \w+ usage >= |Program \w+ requirement |Largest program allocations in "
    r"|BufferAssignment (?:OOM Debugging|stats)|Peak buffers:|Output size )"
)


@dataclass
class OomList:
    """The part of a message after its first line, line by line.

    `is_ended`: XLA's last line was read.
    """

    report: OomReport
    is_ended: bool = False
    _section: str = ""
    _block: dict[str, str] = field(default_factory=dict)
    _rank: int = 0
    _partial: bool = False
    _printed_size: PrintedSize | None = None

    def add(self, line: str, *, is_whole: bool = True) -> bool:
        """Take a line if it is part of the message; `is_whole`: the line's end is there."""
        text = line.strip()
        if not is_whole:
            self._partial = True
        for pattern, take in _LINES:
            if match := pattern.fullmatch(text):
                return take(self, match, is_whole)
        if _END.match(text):
            self.is_ended = True
            return True
        if self._block and is_left_out(text):
            self._close_block(is_whole=False)
        return False

    def close(self) -> OomReport:
        """The report, when no more lines come."""
        self._close_block(is_whole=False)
        if self._partial and not self.is_ended and self.report.buffers:
            self.report.is_cut = True
        report = self.report
        if self._section == "largest" and not report.buffers and self._rank:
            report.is_cut = True
        return report

    # -- Totals ----------------------------------------------------------------------------

    def _total(self, match: re.Match[str], _: bool) -> bool:
        self._section = "total"
        return self._in_space(match[1])

    def _in_space(self, space: str) -> bool:
        self.report.space_name = self.report.space_name or space
        return True

    def _entry(self, match: re.Match[str], _: bool) -> bool:
        name = match[1]
        if self._section == "total" and name in _OF_TOTAL:
            self._set(_OF_TOTAL[name], match[2])
        elif self._section == "requirement" and name == "HLO temp":
            self._set("temp_bytes", match[2])
            self._set("fragmentation_bytes", match[3])
        elif self._section not in ("total", "requirement"):
            return False
        return True

    def _output(self, match: re.Match[str], _: bool) -> bool:
        self._set("output_bytes", match[1])
        self._set("alias_bytes", match[2])
        return True

    def _requirement(self, match: re.Match[str], _: bool) -> bool:
        self._section = "requirement"
        if self.report.program_bytes is None:
            self._set("program_bytes", match[2])
        return self._in_space(match[1])

    def _stats(self, match: re.Match[str], _: bool) -> bool:
        if name := _OF_STATS.get((match[1], match[2])):
            self._set(name, match[3])
        return True

    def _set(self, name: str, text: str | None) -> None:
        if text is not None:
            size = parse_size(text)
            setattr(self.report, name, size.size_bytes)
            self.report.is_rounded |= size.rounding > 0

    # -- Buffers ---------------------------------------------------------------------------

    def _largest(self, match: re.Match[str], _: bool) -> bool:
        self._section = "largest"
        return self._in_space(match[1])

    def _opens(self, match: re.Match[str], is_whole: bool) -> bool:
        return True

    def _numbered(self, match: re.Match[str], _: bool) -> bool:
        self._open_block(int(match[1]))
        if len(match.groups()) > 1:
            self._block["Size"] = match[2]
        return True

    def _open_block(self, rank: int) -> None:
        self._close_block(is_whole=False)
        if rank != self._rank + 1:
            self.report.is_cut = True
            self._doubt_last()
        self._section, self._rank = "largest", rank
        self._block = {"rank": str(rank)}

    def _doubt_last(self) -> None:
        """Blocks are missing: the end of the last one read may be another block's end."""
        if self.report.buffers and self._printed_size is not None:
            last = self.report.buffers[-1]
            size = self._printed_size
            self.report.buffers[-1] = OomBuffer(last.rank, size.size_bytes, size.rounding > 0)

    def _field(self, match: re.Match[str], is_whole: bool) -> bool:
        if not self._block or match[1] in self._block:
            return False
        self._block[match[1]] = match[2].strip()
        # Only what the next line of the block follows is known to be whole.
        self._block["last"] = match[1]
        return True

    def _rule(self, match: re.Match[str], is_whole: bool) -> bool:
        is_open = bool(self._block)
        self._close_block(is_whole=True)
        return is_open

    def _close_block(self, *, is_whole: bool) -> None:
        said, self._block = self._block, {}
        if not said:
            return
        last = said.pop("last", None)
        if not is_whole:
            self.report.is_cut = True
        buffer = _read_block(said, partial=None if is_whole else last)
        self._printed_size = _printed(said.get("Size"))
        known = {held.rank for held in self.report.buffers}
        if buffer is None or buffer.rank in known:
            self.report.is_cut = True
        else:
            self.report.buffers.append(buffer)
            self.report.is_rounded |= buffer.is_rounded


_OF_TOTAL = {
    "reserved": "reserved_bytes",
    "program": "program_bytes",
    "arguments": "argument_bytes",
}
_OF_STATS = {
    ("parameter", "allocation"): "argument_bytes",
    ("maybe_live_out", "allocation"): "output_bytes",
    ("preallocated temp", "allocation"): "temp_bytes",
    ("preallocated temp", "fragmentation"): "fragmentation_bytes",
    ("total", "allocation"): "used_bytes",
}
_LINES: tuple[tuple[re.Pattern[str], Callable[[OomList, re.Match[str], bool], bool]], ...] = (
    (_BLOCK, OomList._numbered),
    (_FIELD, OomList._field),
    (_RULE, OomList._rule),
    (_ENTRY, OomList._entry),
    (_TOTAL, OomList._total),
    (_OUTPUT, OomList._output),
    (_REQUIREMENT, OomList._requirement),
    (_LARGEST, OomList._largest),
    (_STATS, OomList._stats),
    (_BUFFER, OomList._numbered),
    (re.compile(_OPENS.pattern + ".*"), OomList._opens),
)


def is_left_out(text: str) -> bool:
    """Whether a line says that lines were left out."""
    return _LEFT_OUT.match(text.strip()) is not None


def opens_list(text: str) -> re.Match[str] | None:
    """Where a text holds the beginning of a message's totals or list."""
    return _OPENS.search(text)


def _read_block(said: dict[str, str], *, partial: str | None) -> OomBuffer | None:
    """The buffer of a block; None if it has no size, or its figures contradict each other.

    `partial` is the field that may be cut.
    """
    printed = _printed(said.get("Size"))
    if printed is None:
        return None
    buffer = OomBuffer(int(said["rank"]), printed.size_bytes, printed.rounding > 0)
    unpadded = _printed(said.get("Unpadded size"))
    extra = _printed(said.get("Extra memory due to padding", "").split(" (")[0])
    if unpadded is not None:
        padding = extra or PrintedSize(0)
        both = unpadded.size_bytes + padding.size_bytes
        if extra is not None and not printed.agrees(both, unpadded.rounding + padding.rounding):
            return None
        buffer.unpadded_bytes = unpadded.size_bytes
        if extra is not None or "XLA label" in said or "Allocation type" in said:
            buffer.padding_bytes = padding.size_bytes
    shape = said.get("Shape") or said.get("Entry Parameter Subshape")
    if shape is not None and partial not in ("Shape", "Entry Parameter Subshape"):
        _add_shape(buffer, shape, printed)
    label = said.get("XLA label", "")
    instruction = parse_instruction(label)
    buffer.instruction = instruction.get("instruction")
    buffer.opcode = instruction.get("opcode")
    opcode = said.get("XLA Label", "")
    if _OPCODE.fullmatch(opcode) and partial != "XLA Label":
        buffer.opcode = opcode
    metadata = parse_metadata(label, is_whole=False)
    metadata |= parse_metadata(said.get("Operator", ""), is_whole=partial != "Operator")
    for name, value in metadata.items():
        setattr(buffer, name, value)
    if partial != "Allocation type":
        buffer.allocation_type = said.get("Allocation type")
    if "Entry Parameter Subshape" in said:
        buffer.allocation_type = "argument"
    return buffer


def _printed(text: str | None) -> PrintedSize | None:
    match = re.fullmatch(rf"{SIZE}|{SIZE_GPU}", (text or "").strip())
    return None if match is None else parse_size(match[0])


def _add_shape(buffer: OomBuffer, shape: str, printed: PrintedSize) -> None:
    """The shape, and its exact sizes if they agree with the printed one."""
    sizes = shape_sizes(shape)
    if sizes is None:
        return
    element_type, logical, padded = sizes
    buffer.shape, buffer.element_type = shape, element_type
    if printed.agrees(padded):
        buffer.size_bytes, buffer.is_rounded = padded, False
        buffer.unpadded_bytes, buffer.padding_bytes = logical, padded - logical
