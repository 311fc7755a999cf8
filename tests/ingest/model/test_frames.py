"""Whose line an instruction has: the innermost frame of the user's code, and the library's."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from memhouse.xla import frames

FILES = ["/me/train.py", "/v/site-packages/flax/nn.py", "/b/jax/_src/core.py", "/me/net.py", None]
LIBRARY = {FILES[1], FILES[2]}


@given(
    st.lists(st.tuples(st.sampled_from(FILES), st.integers(0, 12)), min_size=1, max_size=12),
    st.sampled_from([(), ("*/flax/*",)]),
)
def test_the_line_is_that_of_the_nearest_frame_outwards_that_is_no_library_s(stack, mine):
    """Frames are tied to any others, also in circles, as those of a damaged file may be."""
    ids = list(range(1, len(stack) + 1))
    file = {i: stack[i - 1][0] for i in ids}
    parent = {i: stack[i - 1][1] for i in ids}
    table = pa.table(
        {
            "stack_frame_id": pa.array(ids, pa.int32()),
            "parent_frame_id": pa.array([parent[i] or None for i in ids], pa.int32()),
            "file": pa.array([file[i] for i in ids], pa.large_string()),
            "line": pa.array([10 * i for i in ids], pa.int32()),
        }
    )
    instructions = pa.table(
        {
            "source_file": table["file"],
            "source_line": table["line"],
            "stack_frame_id": table["stack_frame_id"],
        }
    )
    library = LIBRARY - ({FILES[1]} if mine else set())
    found = frames.with_own_lines(instructions, table, mine).to_pylist()
    for i, row in zip(ids, found, strict=True):
        if file[i] not in library:
            assert (row["source_file"], row["source_line"]) == (file[i], 10 * i)
            assert row["library_file"] is row["library_line"] is None
            continue
        assert (row["library_file"], row["library_line"]) == (file[i], 10 * i)
        at, seen = i, set()
        while file.get(at) in library | {None} and at in file and at not in seen:
            seen.add(at)
            at = parent[at]
        is_own = file.get(at) is not None and file[at] not in library
        expected = (file[at], 10 * at, at) if is_own else (None, None, None)
        assert (row["source_file"], row["source_line"], row["source_frame_id"]) == expected
