"""Signatures of room W as they will be (this file goes with the last commit of the room).

# xla/work.py
@dataclass(frozen=True)
class Work:
    flops: dict[int, int]         # by row of a dot or convolution, one run of it
    trip_counts: dict[int, int]   # by row of a while whose trip count is known (calls.trip_count of body/condition)
    executions: list[int]         # by computation
    unknown_loops: int
    total_flops: int
def measure_work(program: Program) -> Work

# xla/program_id.py
def program_id(program: Program, assignment: BufferAssignment | None = None,
               live_ranges: Mapping[int, LiveRange] | None = None) -> int | None   # live_ranges by value_id
def skeleton_id(entry_shapes: Sequence[EntryShape] | None) -> int | None

# xla/agreement.py
class Contradiction(NamedTuple): part: str; message: str
def match_live_ranges(parts: Parts) -> tuple[dict[int, LiveRange], list[LiveRange]]
    # by value_id in ascending order (of assignment.values and used_values.values), and those without a value
def contradictions(parts: Parts, live_ranges: Mapping[int, LiveRange], unmatched: Sequence[LiveRange]) -> list[Contradiction]
def difference(parts: Parts, analysis: Analysis) -> str | None
def disagreements(program: Program, names: Sequence[str], values: Sequence[AssignedValue]) -> list[str]
    # without liveness_difference; names: the text's, then those that only other parts have

# xla/kernels.py
class PlacedPart(NamedTuple): instruction_id, part, kind, space, shape, buffers, size_bytes   # a row of kernel_parts
def place_kernel_parts(program: Program) -> list[PlacedPart]

# xla/compiler_passes.py (texts between passes); PassProgram is a Program with one dict more
class PassProgram(Program):
    elements: dict[tuple[int, int], int]   # by (row, operand number): 1 of `%x#1`; no rows are added for these
    # operands: NONE for an operand that is not in the text. header.is_scheduled, metadata.op_name, calls, root (NONE: last row)
class PassText: step, pipeline, compiler_pass, read: Callable[[], tuple[PassProgram | None, int]]
def follow(texts: Iterable[PassText], buffers: Sequence[str]) -> tuple[list[PassRow], list[list[tuple[int, Event]]], list[PassText]]

# xla/order.py
class OrderedValue(NamedTuple):
    value_id, row, alias_set (NONE), memory_space, size_bytes (0 if unknown),
    allocation (NONE without live range in the memory space), offset_bytes, is_temp
def order_instructions(program: Program, times: Sequence[int], values: Sequence[OrderedValue],
                uses: Iterable[tuple[int, int]],   # value_id, row of the reader
                memory_space: int, platform: str | None) -> tuple[Ordering, list[list[int]]]
Ordering.now_bytes, best_bytes, bound_bytes, depth_first_bytes, crowded_bytes, spare(row)
# ingest/orders.py
def order_metrics(...) -> tuple[int, int | None] | None    # order_bytes, order_bound_bytes
"""
