"""Which frame of a Python stack is the user's own code, and which is a library's.

A line in a library says what runs, but nobody can change it: an instruction belongs to the
innermost frame of the user's code, and the library's innermost line stands second.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Where installed packages lie, also within Bazel's runfiles and zipped applications; Python itself;
# what Python freezes into itself. A path of a notebook's cell has none of these.
_INSTALLED = (
    r"(?:^|/)(?:site|dist)-packages/|^<frozen |(?:^|/)lib(?:64)?/python\d[\d.]*/"
    r"|(?:^|/)python\d+\.zip/|\.runfiles/[^/]*(?:pip|pypi|python)[^/]*/|(?:^|/)external/"
)
# The inner folders of packages whose dumps come from machines that keep them elsewhere. A
# package's name alone may be a user's folder.
_KNOWN = {
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
_LIBRARY = "|".join(
    [_INSTALLED, *(f"(?:^|/){package}/(?:{inner})(?:/|$)" for package, inner in _KNOWN.items())]
)


def are_library(files: pa.Array, mine: Sequence[str] = ()) -> np.ndarray:
    r"""Whether each file is a library's and no user's: a mask. A file of null is.

    mine: patterns of paths, with `*` for any text, that are the user's wherever they lie.

    >>> are_library(pa.array(["/home/me/train.py", "/venv/lib/python3.12/site-packages/flax/nn.py",
    ...     "/build/third_party/py/flax/linen/linear.py", "<ipython-input-3-0fa1>",
    ...     "ipykernel_7/12.py", "<frozen runpy>"])).tolist()
    [False, True, True, False, False, True]
    >>> are_library(pa.array(["/venv/site-packages/ours/model.py"]), ["*/ours/*"]).tolist()
    [False]
    """
    paths = pc.replace_substring(files.cast(pa.large_string()), "\\", "/")
    library = pc.fill_null(pc.match_substring_regex(paths, _LIBRARY), True)
    found: np.ndarray = library.to_numpy(zero_copy_only=False)
    if mine:
        own = [path is not None and _is_any(path, mine) for path in paths.to_pylist()]
        found = found & ~np.array(own, dtype=bool)
    return found


def _is_any(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def with_own_lines(
    instructions: pa.Table, frames: pa.Table | None, mine: Sequence[str] = ()
) -> pa.Table:
    """Instructions whose line is that of the user's code.

    `instructions` have source_file, source_line and stack_frame_id, of the innermost frame, and
    `frames` are `stack_frames`. source_file, source_line and source_frame_id then are those of the
    innermost frame of the user's, null if there is none; library_file and library_line are the
    innermost frame if that is a library's. An instruction without a stack has one frame.
    """
    names = ("source_file", "source_line", "stack_frame_id")
    file, line, frame = (instructions[name].combine_chunks() for name in names)
    is_library = _by_row(file, mine, without_file=False)
    library_file = pc.if_else(is_library, file, pa.scalar(None, file.type))
    library_line = pc.if_else(is_library, line, pa.scalar(None, line.type))
    own_file = pc.if_else(is_library, pa.scalar(None, file.type), file)
    own_line = pc.if_else(is_library, pa.scalar(None, line.type), line)
    own_frame = pc.if_else(is_library, pa.scalar(None, frame.type), frame)
    if frames is not None and len(frames) and is_library.any():
        at = _own_frames(frames, mine)
        row = pc.index_in(frame, value_set=frames["stack_frame_id"].combine_chunks())
        own = np.append(at, -1)[pc.fill_null(row, len(at)).to_numpy()]
        own = pa.array(own, mask=~is_library | (own < 0))
        own_file = pc.coalesce(own_file, frames["file"].combine_chunks().take(own).cast(file.type))
        own_line = pc.coalesce(own_line, frames["line"].combine_chunks().take(own).cast(line.type))
        found = frames["stack_frame_id"].combine_chunks().take(own).cast(frame.type)
        own_frame = pc.coalesce(own_frame, found)
    columns = {
        "source_file": own_file,
        "source_line": own_line,
        "source_frame_id": own_frame,
        "library_file": library_file,
        "library_line": library_line,
    }
    for name, column in columns.items():
        if name in instructions.column_names:
            at = instructions.schema.get_field_index(name)
            instructions = instructions.set_column(at, name, column)
        else:
            instructions = instructions.append_column(name, column)
    return instructions


def _by_row(files: pa.Array, mine: Sequence[str], *, without_file: bool) -> np.ndarray:
    """Whether each row's file is a library's; each distinct file is looked at once."""
    codes = files.dictionary_encode()
    by_file = np.append(are_library(codes.dictionary, mine), without_file)
    found: np.ndarray = by_file[pc.fill_null(codes.indices, len(codes.dictionary)).to_numpy()]
    return found


def _own_frames(frames: pa.Table, mine: Sequence[str]) -> np.ndarray:
    """The row of the nearest frame outwards, itself included, that is the user's; else -1."""
    ids = frames["stack_frame_id"].combine_chunks()
    callers = frames["parent_frame_id"].combine_chunks()
    parent = np.append(pc.fill_null(pc.index_in(callers, value_set=ids), len(ids)), len(ids))
    is_library = _by_row(frames["file"].combine_chunks(), mine, without_file=True)
    # The last row is the end of a stack.
    is_library = np.append(is_library, False)
    # Each step goes twice as far, so a stack that a damaged file ties to itself ends as well.
    outwards = np.where(is_library, parent, np.arange(len(parent)))
    for _ in range(len(ids).bit_length()):
        outwards = outwards[outwards]
    return np.where(is_library[outwards] | (outwards == len(ids)), -1, outwards)[:-1]
