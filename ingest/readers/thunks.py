"""Reader of the GPU runtime's list of steps: the shared memory of each kernel.

`thunk_sequence.txt` has the shared memory by step, `thunk_metadata.txt` the instruction by step.
"""

import re

from ...xla.errors import DumpError
from .lines import uncompressed_name

_NAME = re.compile(r"(?P<stem>(?:\d{10,20}\.)?module_\d{1,9}\..*)\.thunk_(?P<part>[a-z]+)\.txt")
SEQUENCE, METADATA = "sequence", "metadata"
_KERNEL = re.compile(r"^ *(\d{1,9}): k\w*Kernel .* shared_memory: (\d{1,12}) bytes *\r?$", re.M)
_STEP = re.compile(r'profile_annotation: "([^"\n]*)"\s+thunk_id: (\d{1,9})\s')


def thunks_name(name: str) -> tuple[str, str] | None:
    """The stem of the dump, and SEQUENCE or METADATA; None for the name of any other file.

    >>> thunks_name("module_0001.jit_f.thunk_sequence.txt")
    ('module_0001.jit_f', 'sequence')
    """
    match = _NAME.fullmatch(uncompressed_name(name)) if ".thunk_" in name else None
    if match is None or match["part"] not in (SEQUENCE, METADATA):
        return None
    return match["stem"], match["part"]


def read_shared_memory(sequence: bytes, metadata: bytes) -> dict[str, int]:
    """Bytes of shared memory per block of threads of each kernel, by instruction.

    Empty for a CPU, and for an XLA that does not print them. Raises DumpError.
    """
    try:
        kernels = _KERNEL.findall(sequence.decode())
        steps = {step: name for name, step in _STEP.findall(metadata.decode())} if kernels else {}
    except UnicodeDecodeError:
        raise DumpError("the runtime's list of steps is not UTF-8") from None
    # A command buffer lists its steps once more.
    by_step = {str(int(step)): int(size) for step, size in kernels}
    return {steps[step]: size for step, size in by_step.items() if step in steps}
