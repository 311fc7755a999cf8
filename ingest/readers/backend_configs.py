"""What memhouse reads in a backend_config, the JSON that a compiler adds to an instruction."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.limits import LARGEST_SIZE
from .lines import Positions, slices

# The memory reserved for a TPU kernel and, if XLA says so, the memory that the kernel used. All
# known dumps have an empty `used_`.
_SCOPED = (
    r'"scoped_memory_configs":\[(?P<reserved>[^\]]*)\]'
    r'(?:.*?"used_scoped_memory_configs":\[(?P<used>[^\]]*)\])?'
)
_SIZE = re.compile(r'"size":"(\d+)"')
# The newest TPU compilers' backend_config: which operands and results of an instruction share
# memory. Results count on after the operands, and both by their leaves.
_ALIASING_OPERANDS = '"aliasing_operands":{"lists":['
_ALIASING_LISTS = r"^(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"


def scoped_bytes(configs: pa.LargeStringArray) -> pa.Int64Array:
    """The bytes that each kernel reserves, summed over the memory spaces; null if not said.

    A size of too many digits counts as larger than LARGEST_SIZE.
    """
    reserving = pc.match_substring(configs, pattern='scoped_memory_configs":[{')
    rows = np.flatnonzero(reserving.to_numpy(zero_copy_only=False))
    found = pc.extract_regex(configs.take(pa.array(rows)), pattern=_SCOPED)
    reserved, used = found.field("reserved"), found.field("used")
    scoped = pc.if_else(pc.equal(used, ""), reserved, used)
    # Few texts are distinct, so a Python loop is fast enough.
    encoded = scoped.dictionary_encode()
    sums = [_sum_of_sizes(text) for text in encoded.dictionary.to_pylist()]
    return placed(pa.array(sums, pa.int64()).take(encoded.indices), rows, len(configs))


def aliasing_operands(rows: Positions, configs: pa.LargeStringArray) -> pa.Table:
    """The instructions that record which operands share memory: row, lists.

    `configs` are the backend_configs of the instructions in `rows`.
    """
    at = pc.find_substring(configs, _ALIASING_OPERANDS).to_numpy()
    _, offsets, content = configs.buffers()
    bounds = np.frombuffer(offsets, np.int64)[configs.offset : configs.offset + len(configs) + 1]
    said = np.flatnonzero(at >= 0)
    starts = bounds[said] + at[said] + len(_ALIASING_OPERANDS)
    rest = slices(np.frombuffer(content or b"", np.uint8), starts, bounds[said + 1])
    found = pc.struct_field(pc.extract_regex(rest, pattern=_ALIASING_LISTS), "text")
    return pa.table({"row": rows[said], "lists": pc.fill_null(found, "").dictionary_encode()})


def placed(found: pa.Array, rows: Positions, count: int) -> pa.Array:
    """A column of `count` rows with `found` at the given rows and null elsewhere."""
    at = np.full(count, -1)
    at[rows] = np.arange(len(rows))
    return found.take(pa.array(at, mask=at < 0))


def _sum_of_sizes(configs: str) -> int:
    # Python refuses to parse thousands of digits.
    sizes = _SIZE.findall(configs)
    return sum(int(size) if len(size) <= 18 else LARGEST_SIZE + 1 for size in sizes)
