"""The analysis of a program as numpy arrays, for the rules that are not yet plain."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import liveness as plain
from ..analysis import Analysis
from ..analysis import Dataflow as PlainDataflow
from ..forwarding import KNOWN_OPCODES
from ..parts import LiveRange as PlainLiveRange
from ..schedule import CONTROL_FLOW
from ..sizes import CPU, GPU, TPU, array_bytes
from ..sizes import value_sizes as plain_value_sizes
from .bridge import plain_program
from .parts import HloText, LiveRange
from .program import NONE, Ints, Mask, NumberedProgram, Slots, lay_slots, number_program


@dataclass(frozen=True)
class Schedule:
    """As `xla.analysis.Schedule`."""

    order: Ints
    time: Ints
    span_start: Ints
    span_end: Ints
    caller: Ints
    operand_shift: Ints
    async_start: Ints

    def __len__(self) -> int:
        return len(self.order)

    @property
    def is_reached(self) -> Mask:
        """Which computations the control flow reaches."""
        reached: Mask = self.span_end != NONE
        return reached


@dataclass(frozen=True)
class Dataflow:
    """As `xla.analysis.Dataflow`."""

    slots: Slots
    value: Ints
    defined_at: Ints
    is_phi: Mask
    use_value: Ints
    use_instruction: Ints
    use_operand: Ints
    use_slot: Ints
    in_place_operand: Ints
    in_place_result: Ints
    plain: PlainDataflow

    def __len__(self) -> int:
        return len(self.defined_at)

    @cached_property
    def instruction(self) -> Ints:
        """Each value's defining instruction."""
        defining: Ints = self.slots.instruction[self.defined_at]
        return defining

    def values_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, shape_index, is_phi."""
        return pa.table(
            {
                "value_id": pa.array(np.arange(len(self)), pa.int32()),
                "instruction_id": pa.array(self.instruction, pa.int32()),
                "shape_index": self.slots.index.take(pa.array(self.defined_at)),
                "is_phi": pa.array(self.is_phi),
            }
        )

    def positions_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, shape_index; by value, then in the text's order."""
        slots = np.flatnonzero(self.value != NONE)
        slots = slots[np.argsort(self.value[slots], kind="stable")]
        return pa.table(
            {
                "value_id": pa.array(self.value[slots], pa.int32()),
                "instruction_id": pa.array(self.slots.instruction[slots], pa.int32()),
                "shape_index": self.slots.index.take(pa.array(slots)),
            }
        )

    def uses_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, operand_number, operand_shape_index."""
        order = np.argsort(self.use_value, kind="stable")
        return pa.table(
            {
                "value_id": pa.array(self.use_value[order], pa.int32()),
                "instruction_id": pa.array(self.use_instruction[order], pa.int32()),
                "operand_number": pa.array(self.use_operand[order], pa.int32()),
                "operand_shape_index": self.slots.index.take(pa.array(self.use_slot[order])),
            }
        )


@dataclass(frozen=True)
class Liveness:
    """As `xla.analysis.Liveness`."""

    start: Ints
    end: Ints
    alias_set: Ints

    def ranges_table(self) -> pa.Table:
        """Columns: value_id, start_time, end_time; only values that have a range."""
        has = np.flatnonzero(self.start != NONE)
        return pa.table(
            {
                "value_id": pa.array(has, pa.int32()),
                "start_time": pa.array(self.start[has], pa.int32()),
                "end_time": pa.array(self.end[has], pa.int32()),
            }
        )


@dataclass(frozen=True)
class Derived:
    """As `xla.analysis.Analysis`, which is in the attribute `analysis`."""

    program: NumberedProgram
    schedule: Schedule
    dataflow: Dataflow
    liveness: Liveness
    is_newest_libtpu: Mask
    async_starts_late: Mask
    analysis: Analysis

    @property
    def assumed(self) -> dict[str, int]:
        """As in the analysis."""
        return self.analysis.assumed


def derive(
    hlo: HloText,
    program: NumberedProgram | None = None,
    *,
    changelist: int | None = None,
    live_range: LiveRange | None = None,
) -> Derived:
    """As `xla.liveness.analyse`."""
    return derive_all([hlo], program or number_program(hlo), [changelist], [live_range])


def derive_all(
    texts: Sequence[HloText],
    program: NumberedProgram,
    changelists: Sequence[int | None],
    live_ranges_of: Sequence[LiveRange | None],
) -> Derived:
    """As `xla.liveness.analyse`, of one program."""
    (hlo,), (changelist,), (live_range,) = texts, changelists, live_ranges_of
    dumped = None
    if live_range is not None:
        ranges = live_range.ranges
        names = PlainLiveRange._fields
        columns = [ranges[name].to_pylist() for name in names]
        dumped = [PlainLiveRange(*row) for row in zip(*columns, strict=True)]
    return of_analysis(program, plain.analyse(plain_program(program, hlo), changelist, dumped))


def reordered(derived: Derived, order: Ints) -> Derived:
    """As `xla.liveness.reorder`."""
    return of_analysis(derived.program, plain.reorder(derived.analysis, order.tolist()))


def of_analysis(program: NumberedProgram, analysis: Analysis) -> Derived:
    """The analysis of a program as arrays."""
    schedule, flow, liveness = analysis.schedule, analysis.flow, analysis.liveness
    start = ints(flow.slots.start)
    in_place = ints([slot for pair in flow.in_place for slot in pair]).reshape(-1, 2)
    return Derived(
        program,
        Schedule(
            ints(schedule.order),
            ints(schedule.time),
            ints(schedule.span_start),
            ints(schedule.span_end),
            ints(schedule.caller),
            ints(schedule.operand_shift),
            ints(schedule.async_start),
        ),
        Dataflow(
            lay_slots(program, start != NONE),
            ints(flow.value),
            ints(flow.defined_at),
            np.array(flow.is_phi, bool),
            ints(flow.use_value),
            ints(flow.use_row),
            ints(flow.use_operand),
            ints(flow.use_slot),
            in_place[:, 0],
            in_place[:, 1],
            flow,
        ),
        Liveness(ints(liveness.start), ints(liveness.end), ints(liveness.alias_set)),
        np.array([analysis.is_newest_libtpu]),
        np.array([analysis.async_starts_late]),
        analysis,
    )


def ints(numbers: Sequence[int]) -> Ints:
    """A list as an array."""
    return np.array(numbers, np.int64)


@dataclass(frozen=True)
class Sizes:
    """As `xla.sizes.ValueSizes`."""

    size: Ints
    space: Ints


def platform_of(hlo: HloText) -> str:
    """As `xla.sizes.platform_of`."""
    shapes = pc.unique(hlo.instructions["shape"])
    if pc.any(pc.match_substring(shapes, ":T(")).as_py():
        return TPU
    return GPU if hlo.attributes().is_gpu else CPU


def value_sizes(dataflow: Dataflow, platform: str) -> Sizes:
    """As `xla.sizes.value_sizes`."""
    sizes = plain_value_sizes(dataflow.plain, platform)
    return Sizes(ints(sizes.size_bytes), ints(sizes.memory_space))


__all__ = [
    "CONTROL_FLOW",
    "CPU",
    "GPU",
    "KNOWN_OPCODES",
    "TPU",
    "Dataflow",
    "Derived",
    "Liveness",
    "Schedule",
    "Sizes",
    "array_bytes",
    "derive",
    "derive_all",
    "platform_of",
    "reordered",
    "value_sizes",
]
