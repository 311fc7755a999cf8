"""What a message of XLA says when memory runs out: the rows of `oom_reports` and `oom_buffers`."""

import re
from dataclasses import dataclass, field

from ..xla.shapes import ArrayShape, logical_bytes, padded_bytes, parse_shape

# Sizes as XLA prints them in messages: rounded, and exact where the whole shape is there.

# `22.00G`, `16.0K`, `512B` and, of GPUs, `6.00MiB`; no sum of these is over 64 bits.
SIZE = r"(?:(?:\d{1,4}(?:\.\d{1,3})?[KMGT]|\d{1,2}(?:\.\d{1,3})?P)(?:iB)?|\d{1,15}B)"
_SIZE = re.compile(r"(?P<number>\d+(?:\.(?P<digits>\d+))?)(?P<unit>[KMGTPE]?)(?:iB|B)?")
_UNITS = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T", "P", "E"))}


@dataclass(frozen=True)
class PrintedSize:
    """A printed size: its bytes, and by how many bytes it may be rounded, 0 if exact."""

    size_bytes: int
    rounding: float = 0.0

    def agrees(self, size_bytes: float, rounding: float = 0.0) -> bool:
        """Whether the printed size may stand for these bytes."""
        return abs(self.size_bytes - size_bytes) <= self.rounding + rounding + 1


def parse_size(text: str) -> PrintedSize:
    """Parse a text that matches SIZE, or is a count of bytes."""
    match = _SIZE.fullmatch(text)
    assert match is not None, text
    unit = _UNITS[match["unit"]]
    if unit == 1:
        return PrintedSize(int(match["number"]))
    rounding = unit * 10.0 ** -len(match["digits"] or "") / 2
    return PrintedSize(round(float(match["number"]) * unit), rounding)


def shape_sizes(text: str) -> tuple[str, int, int] | None:
    """Element type, logical and padded bytes of a whole array shape, else None."""
    try:
        shape = parse_shape(text)
        if isinstance(shape, ArrayShape):
            return shape.element_type, logical_bytes(shape), padded_bytes(shape)
    except ValueError:
        pass
    return None


# What a message of XLA says when memory runs out: the rows of `oom_reports` and `oom_buffers`.


@dataclass
class OomBuffer:
    """One of the largest buffers; the fields are the columns of `oom_buffers`."""

    rank: int
    size_bytes: int
    is_rounded: bool = False
    unpadded_bytes: int | None = None
    padding_bytes: int | None = None
    shape: str | None = None
    element_type: str | None = None
    instruction: str | None = None
    opcode: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    stack_frame_id: int | None = None
    allocation_type: str | None = None


@dataclass
class OomReport:
    """A message; the fields are the columns of `oom_reports`, and the message's buffers."""

    kind: str
    message: str
    line: int
    path: str = ""
    times: int = 1
    dump_id: int | None = None
    space_name: str | None = None
    module_name: str | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    exceeded_bytes: int | None = None
    reserved_bytes: int | None = None
    program_bytes: int | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None
    alias_bytes: int | None = None
    temp_bytes: int | None = None
    fragmentation_bytes: int | None = None
    requested_bytes: int | None = None
    limit_bytes: int | None = None
    free_bytes: int | None = None
    instruction: str | None = None
    shape: str | None = None
    tag: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    is_rounded: bool = False
    is_cut: bool = False
    buffers: list[OomBuffer] = field(default_factory=list)

    @property
    def evidence(self) -> set[tuple[object, ...]]:
        """What tells one running out of memory from another."""
        found: set[tuple[object, ...]] = set()
        if self.used_bytes is not None and self.capacity_bytes is not None:
            found.add(("used", self.used_bytes, self.capacity_bytes))
        if self.requested_bytes is not None:
            found.add(
                (
                    "requested",
                    self.requested_bytes,
                    self.limit_bytes,
                    self.capacity_bytes,
                    self.free_bytes,
                )
            )
        found |= {
            ("buffer", b.rank, b.size_bytes, b.instruction, b.shape)
            for b in self.buffers[:1]
            if b.instruction or b.op_name
        }
        return found


# So many characters of a message tell which it is.
_TELLING = 40

# The fields of a report that are figures or names of its own.
FIGURES = tuple(
    name
    for name in OomReport.__dataclass_fields__
    if name
    not in ("message", "line", "path", "times", "dump_id", "is_rounded", "is_cut", "buffers")
)


def merge_reports(reports: list[OomReport]) -> list[OomReport]:
    """The reports, those that say the same of one running out of memory as one.

    A log may hold a message twice, and a dump's folder may hold it in several files, of which
    one says more than the other. The first keeps its place.
    """
    merged: list[OomReport] = []
    # Only those that share a sign may say the same, so that many messages cost little.
    places: dict[tuple[object, ...], dict[int, None]] = {}
    for report in reports:
        signs = [*report.evidence, ("bare", report.message[:_TELLING])]
        if _is_bare(report):
            signs.append(("begins", report.message[:_TELLING]))
        known = sorted({place for sign in signs for place in places.get(sign, ())})
        place = next((place for place in known if _says_the_same(merged[place], report)), None)
        if place is None:
            place = len(merged)
            merged.append(report)
        else:
            _take_over(merged[place], report)
        kept = merged[place]
        signs = [*kept.evidence, ("begins", kept.message[:_TELLING])]
        if _is_bare(kept):
            signs.append(("bare", kept.message[:_TELLING]))
        for sign in signs:
            places.setdefault(sign, {})[place] = None
    return merged


def _says_the_same(a: OomReport, b: OomReport) -> bool:
    """Whether the two have something in common, and nothing contradicts."""
    if not a.evidence & b.evidence and not (_begins(a, b) or _begins(b, a)):
        return False
    if None not in (a.dump_id, b.dump_id) and a.dump_id != b.dump_id:
        return False
    if any(
        None not in (x := getattr(a, name), y := getattr(b, name)) and x != y for name in FIGURES
    ):
        return False
    known = {buffer.rank: buffer for buffer in a.buffers}
    return all(
        known[other.rank].size_bytes == other.size_bytes
        and _agree(known[other.rank].instruction, other.instruction)
        for other in b.buffers
        if other.rank in known
    )


def _begins(cut: OomReport, whole: OomReport) -> bool:
    """Whether a cut message without figures is the beginning of the other."""
    return _is_bare(cut) and whole.message.startswith(cut.message)


def _is_bare(report: OomReport) -> bool:
    return report.is_cut and not report.evidence and len(report.message) >= _TELLING


def _agree(a: object, b: object) -> bool:
    return a is None or b is None or a == b


def _take_over(into: OomReport, other: OomReport) -> None:
    """Add what `other` says and `into` does not."""
    if other.path != into.path:
        into.times = max(into.times, other.times)
    elif other.line != into.line:
        into.times += other.times
    for name in ("dump_id", *FIGURES):
        if getattr(into, name) is None:
            setattr(into, name, getattr(other, name))
    into.is_rounded |= other.is_rounded
    # Prefer the untruncated field of either message.
    if len(other.buffers) >= len(into.buffers) and not other.is_cut:
        into.is_cut = False
    if other.message.startswith(into.message):
        into.message = other.message
    known = {buffer.rank: buffer for buffer in into.buffers}
    for buffer in other.buffers:
        known.setdefault(buffer.rank, buffer)
    into.buffers = [known[rank] for rank in sorted(known)]
