"""Stack frames: both ways to print a parent, and the Python line behind a buffer."""

import re

import pytest

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.stack_frames import read_stack_frames
from memhouse.xla.errors import DumpError
from memhouse.xla.program import StackFrame

from ...support.dumps import content

LLAMA = "tpu/llama-v5e/*optimizations.txt.gz"
LLAMA_OLD = "tpu/llama-v5e-jax0.7.0/*optimizations.txt.gz"
FRAMES = """\
FileNames
1 "/train/zoo.py"
2 "/train/lib.py"
FunctionNames
1 "<module>"
2 "loss.<locals>.<lambda>"
FileLocations
1 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=0 end_column=45}
2 {file_name_id=2 function_name_id=2 line=3}
StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
"""


def read(text: str) -> dict[int, StackFrame]:
    frames, _ = read_stack_frames(list(enumerate(text.splitlines(), 1)))
    return frames


def parents(frames: dict[int, StackFrame]) -> dict[int, int | None]:
    return {frame_id: frame.parent_frame_id for frame_id, frame in frames.items()}


def test_a_frame_is_a_place_in_a_file():
    assert read(FRAMES) == {
        1: StackFrame(1, None, "/train/zoo.py", "<module>", 9, 9, 0, 45),
        2: StackFrame(2, 1, "/train/lib.py", "loss.<locals>.<lambda>", 3, None, None, None),
    }


def test_no_tables_are_no_frames():
    assert read("") == {}
    assert read_hlo_text(split_lines(content(LLAMA_OLD))).frames == {}


def test_both_printings_of_a_parent_are_read_alike():
    one_too_high = content(LLAMA).decode()
    assert "\n1 {file_location_id=1 parent_frame_id=1}\n" in one_too_high

    def lowered(match: re.Match[str]) -> str:
        return f"parent_frame_id={int(match[1]) - 1}"

    as_it_is = re.sub(r"parent_frame_id=(\d+)", lowered, one_too_high)
    assert "\n1 {file_location_id=1 parent_frame_id=0}\n" in as_it_is
    assert (
        read_hlo_text(split_lines(as_it_is.encode())).frames
        == read_hlo_text(split_lines(one_too_high.encode())).frames
    )


def test_every_parent_comes_before_its_child():
    frames = read_hlo_text(split_lines(content(LLAMA))).frames
    # Printed `parent_frame_id=1`: `<module>`, and frames that XLA tore from their callers.
    roots = [child for child, parent in parents(frames).items() if parent is None]
    assert roots == [1, 22, 34, 41, 63]
    assert all(parent is None or parent < child for child, parent in parents(frames).items())


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("FunctionNames\n", "", 1),
        ("StackFrames\n", "StackFrames\nStackFrames\n", 1),
        ('2 "/train/lib.py"', "2 /train/lib.py", 3),
        ("line=3}", "line=three}", 9),
        ("2 {file_location_id=2", "2 {file_location=2", 12),
        ("2 {file_location_id=2", "2 {file_location_id=7", 12),
        ("line=9 end", "line=4294967296 end", 8),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, line):
    assert old in FRAMES
    with pytest.raises(DumpError) as error:
        read(FRAMES.replace(old, new, 1))
    assert error.value.line == line
