"""What a saving is of the bytes that XLA reserves: packing adds to the peak, and may add more.

Lives fragment where a peak falls, so that the reserved bytes of the changed program are its peak
and up to a part of it that was measured on recompiled programs: docs/advise.md.
"""

from dataclasses import replace

from .asked_program import Layout, Program
from .finding import Finding, Grade

# The part of the new peak that packing adds at most, by platform.
_PACKING = {"cpu": 0.01, "tpu": 0.1, "gpu": 0.11}
# The same where the order of instructions is a new one.
_PACKING_OF_NEW_ORDER = {"cpu": 0.09}


def reserved_bytes(layout: Layout) -> int:
    """All allocations of the memory space but thread-local ones."""
    return int(layout.allocation_bytes.sum())


def with_reserved(program: Program, finding: Finding) -> Finding:
    """The finding with how much less is reserved, at the least and at the most.

    As it came if it promises nothing, or if nobody knows what packing adds: of HLO text alone. A
    bound has no least.
    """
    most = _PACKING.get(program.platform or "")
    if finding.is_new_order:
        most = _PACKING_OF_NEW_ORDER.get(program.platform or "")
    if finding.saving_bytes is None or most is None or program.origin == "estimated":
        return finding
    layout, apart = program.layout, finding.tolerance or 0
    least_saved = _or(finding.low_bytes, finding.saving_bytes)
    most_saved = _or(finding.high_bytes, finding.saving_bytes)
    now = reserved_bytes(layout)
    largest = int((layout.peak_bytes - least_saved) * (1 + apart) * (1 + most))
    smallest = int((layout.peak_bytes - most_saved) * (1 - apart))
    return replace(
        finding,
        reserved_low_bytes=None if finding.grade is Grade.at_most else max(now - largest, 0),
        reserved_high_bytes=max(now - smallest, 0),
    )


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given
