"""The memory usage report: the names of the memory spaces."""

import pytest

from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.usage_report import read_usage_report
from memhouse.xla.errors import DumpError

from ...support.dumps import lines

TPU = [(0, "default"), (1, "vmem"), (2, "smem"), (6, "color_6")]


def test_a_report_names_the_spaces_and_older_ones_name_none():
    for pattern, expected in (
        ("tpu/llama-v5e/*-report*", TPU),
        ("tpu/flash-v5e/*-report*", TPU[:2]),
        ("gpu/decode-h100/*-report*", TPU[:1]),
        ("cpu/jax-0.10.2/module_0018*-report*", TPU[:1]),
        ("tpu/llama-v5e-jax0.7.0/*-report*", []),
        ("cpu/jax-0.4.35/module_0019*-report*", []),
    ):
        assert list(read_usage_report(lines(pattern)).items()) == expected, pattern


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("BufferAssignment:\n", 1),
        ("Memory Space: hbm (color=0)\nMemory Space: vmem\n", 2),
        ("\nMemory Space: hbm (color=4294967296)\n", 2),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(text, line):
    with pytest.raises(DumpError) as error:
        read_usage_report(split_lines(text.encode()))
    assert error.value.line == line
