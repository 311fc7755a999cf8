"""All buffers of a module, one table that the parts of a report share."""

import pyarrow as pa

from ....schema.stores.base import Store
from ...catalogue import statement


def module_buffers(store: Store, module_id: int, memory_space: int = 0) -> pa.Table:
    """What takes memory of its own in a memory space at some time, in address order.

    A row per allocation that is there throughout, and per value in a temp allocation. Columns:

    value_id: the value, see `values`; null if nothing says what an allocation is for
    allocation_index, allocation_bytes: the allocation and its size
    category: argument, output (that is not an argument), constant, temp or other
    size_bytes, padding_bytes: what the buffer takes, and what of it is padding
    peak_counted_bytes: the buffer's part of the peak; these add up, as in `memhouse buffers`
    address: where the buffer begins if all allocations are put on top of one another: arguments,
    outputs, constants, others, then the temps
    offset_bytes: where in its allocation the buffer begins
    start_time, end_time: its life, both inclusive; end_time is schedule_length if it lives on
    last_use_time: the last time that an instruction reads it; null if none does
    value: the instruction that makes it, with the part of the result: `fusion.3{1}`
    shape: without layout; element_type: for example bf16, null for a tuple
    op_name, source (file:line), stack_frame_id, scope, operation: of what it holds
    pass, role: what it is for, see `values`
    origin_rule: how that was found; is_guess: that is a guess
    """
    return store.rows(statement("report_buffers"), [module_id, memory_space])
