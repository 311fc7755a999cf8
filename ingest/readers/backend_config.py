"""The backend_config of an instruction: JSON in which a compiler keeps decisions of its own.

Few texts are distinct, some are megabytes (a Pallas kernel), and few of their attributes count.
Therefore each distinct text is searched once, and no JSON is parsed.
"""

import re
from typing import Final, NamedTuple

from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.program import KernelPart, Program, ScopedMemory
from .mosaic import KernelArray, kernel_arrays

# Only XLA for GPU writes these words, here or in metadata and custom_call_target.
GPU_WORDS: Final = (
    "operation_queue_id",
    "scheduling_name",
    "fusion_backend_config",
    "__cublas",
    "__triton",
)
# A dump has the reserved memory of a TPU kernel; an executable's text also the used memory.
_SCOPED: Final = re.compile(
    r'"scoped_memory_configs":\[([^\]]*)\](?:.*?"used_scoped_memory_configs":\[([^\]]*)\])?'
)
_SIZE: Final = re.compile(r'"size":"([0-9]+)"')
_SPACE: Final = re.compile(r'"memory_space":"([0-9]{1,9})"')
# Newest libtpu: which operands and results of an instruction share memory.
_ALIASING: Final = re.compile(r'"aliasing_operands":\{"lists":\[((?:[^\[\]]|\[[^\[\]]*\])*+)\]')
_TRIP_COUNT: Final = re.compile(r'"known_trip_count":\{"n":"([0-9]{1,18})"')
# Python refuses to convert thousands of digits, and no size of more than these is accepted.
_MAX_DIGITS: Final = 18


class BackendConfig(NamedTuple):
    """The facts in one backend_config.

    Attributes:
        scoped: memory reserved for the instruction alone; None if not stated.
        aliasing_lists: see `Program.aliasing_lists`; None if not stated.
        trip_count: how often a while runs; None if XLA does not know it.
        kernel: the arrays that a Pallas kernel keeps on chip.
        has_dma_priority, is_gpu: see Program.
    """

    scoped: ScopedMemory | None = None
    aliasing_lists: str | None = None
    trip_count: int | None = None
    kernel: tuple[KernelArray, ...] = ()
    has_dma_priority: bool = False
    is_gpu: bool = False


def has_gpu_words(text: str) -> bool:
    """Whether XLA for GPU wrote the text of a backend_config, metadata or custom_call_target."""
    return any(word in text for word in GPU_WORDS)


def read_backend_config(text: str) -> BackendConfig:
    """The facts in one backend_config. Raises DumpError for a size over LARGEST_SIZE."""
    trip_count = _TRIP_COUNT.search(text)
    return BackendConfig(
        _scoped_memory(text),
        _aliasing_lists(text),
        int(trip_count[1]) if trip_count is not None else None,
        kernel_arrays(text),
        '"dma_priority":' in text,
        has_gpu_words(text),
    )


def add_backend_config(program: Program, row: int, config: BackendConfig) -> None:
    """Add the facts in an instruction's backend_config to its program."""
    if config.scoped is not None:
        program.scoped[row] = config.scoped
    if config.aliasing_lists is not None:
        program.aliasing_lists[row] = config.aliasing_lists
    if config.trip_count is not None and program.opcode[row] == "while":
        program.trip_counts[row] = config.trip_count
    for part, array in enumerate(config.kernel):
        program.kernels.append(KernelPart(row, part, *array))
    program.has_dma_priority |= config.has_dma_priority
    program.is_gpu |= config.is_gpu


def _scoped_memory(text: str) -> ScopedMemory | None:
    """The memory that a backend_config reserves; None if it reserves none.

    >>> _scoped_memory('{"scoped_memory_configs":[{"memory_space":"1","size":"4096"}]}')
    ScopedMemory(reserved_bytes=4096, space=1, used_bytes=None)
    """
    # Also the list of the used memory: an executable may use what it did not reserve.
    if 'scoped_memory_configs":[{' not in text:
        return None
    match = _SCOPED.search(text)
    if match is None:
        return None
    spaces = set(_SPACE.findall(match[1]))
    space = int(spaces.pop()) if len(spaces) == 1 else None
    return ScopedMemory(_total_size(match[1]), space, _total_size(match[2] or ""))


def _total_size(configs: str) -> int | None:
    """The sum of the sizes in a list of memory configs, in bytes; None if there is none."""
    sizes = _SIZE.findall(configs)
    if not sizes:
        return None
    if any(len(size) > _MAX_DIGITS for size in sizes) or sum(map(int, sizes)) > LARGEST_SIZE:
        raise DumpError(f"a number is over {LARGEST_SIZE}")
    return sum(map(int, sizes))


def _aliasing_lists(text: str) -> str | None:
    """The lists in `aliasing_operands`, "" if they cannot be read; None without the attribute."""
    if '"aliasing_operands":{"lists":[' not in text:
        return None
    match = _ALIASING.search(text)
    return match[1] if match is not None else ""
