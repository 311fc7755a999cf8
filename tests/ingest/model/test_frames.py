"""Whose line an instruction has: the innermost frame of the user's code, and the library's."""

from hypothesis import given
from hypothesis import strategies as st

from memhouse.xla.frames import find_user_lines
from memhouse.xla.program import Metadata, StackFrame

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
    table = {
        i: StackFrame(i, parent[i] or None, file[i], None, 10 * i, None, None, None) for i in ids
    }
    metadata = [Metadata(None, file[i], 10 * i, i) for i in ids]
    library = LIBRARY - ({FILES[1]} if mine else set())
    for i, line in zip(ids, find_user_lines(metadata, table, mine), strict=True):
        if file[i] not in library:
            assert line == (file[i], 10 * i, i, None, None)
            continue
        at, seen = i, set()
        while file.get(at) in library | {None} and at in file and at not in seen:
            seen.add(at)
            at = parent[at]
        is_own = file.get(at) is not None and file[at] not in library
        expected = (file[at], 10 * at, at) if is_own else (None, None, None)
        assert line == (*expected, file[i], 10 * i)
