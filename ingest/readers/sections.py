"""Which parts a dump's text holds: XLA has printed them in one file and in three.

Up to about JAX 0.9 one `-buffer-assignment.txt` holds all of BufferAssignment, Used
values and HloLiveRange (`cpu/jax-0.9.0`, the seeds); since 0.10 each has its own file.
"""

from itertools import pairwise

from .lines import Lines

BUFFER_ASSIGNMENT = "BufferAssignment"
USED_VALUES = "Used values"
LIVE_RANGE = "HloLiveRange"
HLO = "HloModule"
USAGE_REPORT = "memory usage report"

# What the first line of each part starts with. `Total bytes used` opens the part with the
# used values: it stands before them in every version.
_OPENINGS = {
    "BufferAssignment:": BUFFER_ASSIGNMENT,
    "Total bytes used: ": USED_VALUES,
    "HloLiveRange (max ": LIVE_RANGE,
    "HloModule ": HLO,
    "Memory Space: ": USAGE_REPORT,
}
# Enough of a file to tell what it is.
SNIFFED_BYTES = 64


def sniff(beginning: bytes) -> str | None:
    """The part that a file's first bytes open, None if they are no dump's."""
    start = beginning.lstrip()
    for opening, part in _OPENINGS.items():
        if start.startswith(opening.encode()):
            return part
    return None


def split_sections(lines: Lines) -> dict[str, Lines]:
    """The parts of a buffer assignment document in the order in which they stand.

    Raises DumpError for lines before the first opening that are not blank, if there is one.
    """
    openings = sorted(
        (int(index), part)
        for opening, part in _OPENINGS.items()
        for index in lines.starting(opening).nonzero()[0][:1]
    )
    if openings:
        before = lines.between(0, openings[0][0])
        if not before.equal("").all():
            before.refuse(~before.equal(""), f"expected {openings[0][1]}")
    return {
        part: lines.between(start, stop)
        for (start, part), (stop, _) in pairwise([*openings, (len(lines), "")])
    }
