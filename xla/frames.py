"""The source line of an instruction in the user's code, as opposed to a library's.

A user cannot change a line in a library: an instruction belongs to the innermost frame of the
user's code, and the library's innermost line is listed second.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from .program import Metadata, StackFrame

# Folders of installed packages, also within Bazel's runfiles and zipped applications; Python
# itself; modules that Python freezes into itself. A path of a notebook's cell has none of these.
_INSTALLED = (
    r"(?:^|/)(?:site|dist)-packages/|^<frozen |(?:^|/)lib(?:64)?/python\d[\d.]*/"
    r"|(?:^|/)python\d+\.zip/|\.runfiles/[^/]*(?:pip|pypi|python)[^/]*/|(?:^|/)external/"
)
# The inner folders of packages whose dumps come from machines that keep them elsewhere. A
# package's name alone may be a user's folder.
_INNER_FOLDERS = {
    "jax": "_src|experimental|lax|nn|numpy|scipy|interpreters|extend",
    "jaxlib": "[^/]+",
    "flax": "core|linen|nnx|training|struct",
    "optax": "_src|contrib|losses|projections|schedules|transforms|tree_utils",
    "chex": "_src",
    "haiku": "_src",
    "equinox": r"_\w+|internal|nn",
    "keras": "src|api",
    "keras_hub": "src|api",
    "tensorflow": "python|core|compiler|dtensor",
    "torch": "nn|_\\w+|autograd|optim|utils",
    "torch_xla": "[^/]+",
    "torchax": "[^/]+",
    "numpyro": r"[^/]+\.py|contrib|distributions|infer|nn|ops",
    "diffrax": r"_\w+",
    "jax_md": r"[^/]+\.py|_\w+",
    "mujoco": "mjx",
    "brax": "base\\.py|envs|training|mjx|generalized|positional|spring|kinematics\\.py",
}
_INNER = "|".join(rf"{name}/(?:{folders})(?:/|\Z)" for name, folders in _INNER_FOLDERS.items())
_LIBRARY = re.compile(rf"{_INSTALLED}|(?:^|/)(?:{_INNER})", re.ASCII)


class UserLine(NamedTuple):
    """The source line of an instruction: columns of `instructions`, None where unknown.

    Attributes:
        source_file, source_line, source_frame_id: the innermost frame of the user's code.
        library_file, library_line: the innermost frame, if that is a library's.
    """

    source_file: str | None
    source_line: int | None
    source_frame_id: int | None
    library_file: str | None
    library_line: int | None


@lru_cache(maxsize=4096)
def is_library(file: str | None, user_patterns: tuple[str, ...] = ()) -> bool:
    r"""Whether a file belongs to a library. A frame without a file does.

    Args:
        user_patterns: of paths that are the user's anywhere, with `*` for any text.

    >>> files = ["/home/me/train.py", "/venv/lib/python3.12/site-packages/flax/nn.py",
    ...     "/build/third_party/py/flax/linen/linear.py", "<ipython-input-3-0fa1>",
    ...     "ipykernel_7/12.py", "<frozen runpy>"]
    >>> [is_library(file) for file in files]
    [False, True, True, False, False, True]
    >>> is_library("/venv/site-packages/ours/model.py", ("*/ours/*",))
    False
    """
    if file is None:
        return True
    path = file.replace("\\", "/")
    if any(fnmatchcase(path, pattern) for pattern in user_patterns):
        return False
    return _LIBRARY.search(path) is not None


def find_user_lines(
    metadata: Sequence[Metadata],
    frames: dict[int, StackFrame],
    user_patterns: tuple[str, ...] = (),
) -> list[UserLine]:
    """The user's line of each instruction, by row. An instruction without a stack has one frame."""
    # Most instructions differ in nothing but their op_name, which comes first.
    distinct = {source[1:]: source for source in metadata}
    lines = {key: _user_line(source, frames, user_patterns) for key, source in distinct.items()}
    return [lines[source[1:]] for source in metadata]


def _user_line(
    metadata: Metadata, frames: dict[int, StackFrame], user_patterns: tuple[str, ...]
) -> UserLine:
    """The innermost frame outside of libraries; without one only the library's line.

    The reader has given metadata without a file that of its innermost frame (`fill_sources`).
    """
    file, line, frame_id = metadata.source_file, metadata.source_line, metadata.stack_frame_id
    if file is None or not is_library(file, user_patterns):
        return UserLine(file, line, frame_id, library_file=None, library_line=None)
    # A corrupt stack may form a cycle.
    visited = set[int]()
    while frame_id is not None and frame_id in frames and frame_id not in visited:
        frame = frames[frame_id]
        if not is_library(frame.file, user_patterns):
            return UserLine(frame.file, frame.line, frame_id, library_file=file, library_line=line)
        visited.add(frame_id)
        frame_id = frame.parent_frame_id
    return UserLine(None, None, None, library_file=file, library_line=line)
