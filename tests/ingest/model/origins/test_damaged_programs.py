"""Attribution of odd and of damaged programs: an answer or a DumpError, and nothing else."""

import random

import pytest

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.attribution import attribute
from memhouse.xla.errors import DumpError
from memhouse.xla.liveness import analyse

from ....support.dumps import DUMPS
from ....support.mutations import change_number, drop_lines, insert_token, swap_lines
from ....support.rounds import rounds

SEEDS = rounds(40)
SAMPLES = sorted(DUMPS.glob("cpu/*/*jit_mixed*after_optimizations.txt"))
OPCODES = (
    *("copy", "convert", "dynamic-update-slice", "dynamic-slice", "all-gather", "concatenate"),
    *("slice", "while", "fusion", "copy-start", "constant", "tuple", "parameter", "conditional"),
)


def other_opcode(chance, text):
    """Let an instruction be another one."""
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    before, bracket, after = lines[at].partition(b"(")
    words = before.rpartition(b" ")
    lines[at] = words[0] + words[1] + chance.choice(OPCODES).encode() + bracket + after
    return b"".join(lines)


def other_operand(chance, text):
    """Let a name be another one."""
    words = text.split(b"%")
    at, other = (chance.randrange(1, len(words)) for _ in range(2)) if len(words) > 1 else (0, 0)
    name = words[other].split(b" ")[0].split(b",")[0].split(b")")[0]
    words[at] = name + words[at][len(words[at].split(b" ")[0].split(b",")[0].split(b")")[0]) :]
    return b"%".join(words)


CHANGES = (
    *(other_opcode, other_opcode, other_operand, other_operand),
    *(change_number, drop_lines, insert_token, swap_lines),
)


def attributed(text):
    """Whether a text could be read at all."""
    try:
        attribute(analyse(read_hlo_text(split_lines(text))))
    except DumpError:
        return False
    return True


def test_damaged_programs():
    whole = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        text = chance.choice(SAMPLES).read_bytes()
        for _ in range(chance.choice((1, 1, 2, 4))):
            text = chance.choice(CHANGES)(chance, text)
        whole += attributed(text)
    assert whole > SEEDS // 10


HEAD = "HloModule m, is_scheduled=true\n\n"


@pytest.mark.parametrize(
    "entry",
    [
        "ENTRY %main () -> () {\n  ROOT %t = () tuple()\n}\n",
        "ENTRY %main () -> f32[] {\n  ROOT %c = f32[] constant(0)\n}\n",
        "ENTRY %main () -> token[] {\n  ROOT %t = token[] after-all()\n}\n",
        "ENTRY %main (p: (f32[2], (s32[]))) -> (f32[2], (s32[])) {\n"
        "  ROOT %p = (f32[2]{0}, (s32[])) parameter(0)\n}\n",
        "ENTRY %main (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0} parameter(0)\n"
        '  ROOT %n = f32[2]{0} negate(%p), metadata={op_name=""}\n}\n',
    ],
)
def test_odd_programs(entry):
    assert attributed((HEAD + entry).encode())


def test_a_shape_in_a_fusion_that_is_none():
    fused = "%f (a: f32[2]) -> f32[2] {\n  %a = xx[2]{0} parameter(0)\n"
    fused += "  ROOT %n = f32[2]{0} negate(%a)\n}\n\n"
    entry = "ENTRY %main (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0} parameter(0)\n"
    entry += "  ROOT %y = f32[2]{0} fusion(%p), kind=kLoop, calls=%f\n}\n"
    assert attributed((HEAD + fused.replace("xx", "f32") + entry).encode())
    assert not attributed((HEAD + fused + entry).encode())
