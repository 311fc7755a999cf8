"""Reader of the GPU runtime's list of steps: the shared memory of each kernel.

`thunk_sequence.txt` says it of a step, `thunk_metadata.txt` which instruction the step is for.
"""

import re

from ...xla.errors import DumpError

_SUFFIX = re.compile(r"\.(?:gz|zst)$")
_NAME = re.compile(r"(?P<stem>(?:\d{10,20}\.)?module_\d{1,9}\..*)\.thunk_(?P<part>[a-z]+)\.txt")
SEQUENCE, METADATA = "sequence", "metadata"
_KERNEL = re.compile(r"^ *(\d{1,9}): k\w*Kernel .* shared_memory: (\d{1,12}) bytes *\r?$", re.M)
_STEP = re.compile(r'profile_annotation: "([^"\n]*)"\s+thunk_id: (\d{1,9})\s')


def thunks_name(name: str) -> tuple[str, str] | None:
    """The stem of a file's dump, and which of the two files it is; None if neither.

    >>> thunks_name("module_0001.jit_f.thunk_sequence.txt")
    ('module_0001.jit_f', 'sequence')
    """
    found = _NAME.fullmatch(_SUFFIX.sub("", name)) if ".thunk_" in name else None
    if found is None or found["part"] not in (SEQUENCE, METADATA):
        return None
    return found["stem"], found["part"]


def read_shared_memory(sequence: bytes, metadata: bytes) -> dict[str, int]:
    """The bytes of shared memory that a block of threads of each kernel takes, by instruction.

    Empty for a CPU, and of XLA that does not say it. Raises DumpError.
    """
    try:
        kernels = _KERNEL.findall(sequence.decode())
        steps = {step: name for name, step in _STEP.findall(metadata.decode())} if kernels else {}
    except UnicodeDecodeError:
        raise DumpError("the runtime's list of steps is not UTF-8") from None
    # The same steps are listed again as command buffers have them.
    by_step = {str(int(step)): int(size) for step, size in kernels}
    return {steps[step]: size for step, size in by_step.items() if step in steps}
