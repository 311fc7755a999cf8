"""Out-of-memory messages: every variant, damaged and wrapped; right figures or none."""

import functools
import json
import random
import re
import time

import pytest

from memhouse.ingest.readers.oom_message import read_oom_messages

from ...support.dumps import DATA
from ...support.oom_messages import OWN, PUBLIC, WRAPS, contradictions, read, said
from ...support.rounds import rounds

GIB = 1 << 30
LOG = b"I0912 12:00:00.123456 1234 train.py:88] step 12 loss 2.34 memory 12.3G of 15.75G\n"
# Of each own message: what it says beyond its names.
FIGURES = {
    "jax0.10.2-args": {"used_bytes": 18 * GIB, "exceeded_bytes": int(2.25 * GIB)},
    "jax0.10.2-pad": {"used_bytes": 33 * GIB, "exceeded_bytes": int(17.25 * GIB)},
    "jax0.10.2-temps": {"used_bytes": 28 * GIB, "exceeded_bytes": int(12.25 * GIB)},
    "llama7b-oom-v5e": {"used_bytes": round(59.89 * GIB), "space_name": "hbm"},
    "jax0.10.2-smem": {"requested_bytes": 4 << 20, "capacity_bytes": 1 << 20, "kind": "allocation"},
    "jax0.10.2-vmem": {"requested_bytes": 256 << 20, "capacity_bytes": 128 << 20},
    "jax0.9.2-vmemscratch": {"requested_bytes": 256 << 20, "tag": "scratch operand"},
    "jax0.5.3-vmemgrid": {"kind": "scoped", "requested_bytes": 48 << 20, "limit_bytes": 16 << 20},
    "jax0.5.3-args": {
        "used_bytes": 18 * GIB,
        "capacity_bytes": int(15.75 * GIB),
        "reserved_bytes": 258 << 20,
        "program_bytes": 16 << 10,
        "argument_bytes": 18 * GIB,
        "output_bytes": 512,
        "alias_bytes": 0,
    },
    "jax0.9.2-temps": {"used_bytes": 22 * GIB, "exceeded_bytes": int(6.25 * GIB)},
}


WIDTHS = (80, 120, 300)

# Of each message of our own: its bytes, and what is read of them.
MESSAGES = {path.stem: path.read_bytes() for path in OWN}


@functools.cache
def whole_of(name):
    (report,) = read(MESSAGES[name])
    return report


def test_own_messages_say_what_they_print():
    assert FIGURES.keys() == MESSAGES.keys()
    for name, figures in FIGURES.items():
        assert not whole_of(name).is_cut
        assert figures.items() <= said(whole_of(name)).items(), name


def test_a_list_has_exact_sizes_where_the_shape_is_whole():
    report = whole_of("jax0.9.2-temps")
    assert [buffer.rank for buffer in report.buffers] == list(range(1, 12))
    assert {buffer.size_bytes for buffer in report.buffers} == {2 * GIB}
    assert not any(buffer.is_rounded for buffer in report.buffers)
    first = report.buffers[0]
    assert (first.instruction, first.opcode) == ("convolution_tanh_fusion.10", "fusion")
    assert (first.op_name, first.stack_frame_id) == ("jit(f)/dot_general", 3)
    (only,) = whole_of("jax0.5.3-args").buffers
    assert (only.size_bytes, only.unpadded_bytes, only.padding_bytes) == (512, 4, 508)
    assert only.source_line == 15


def test_cut_anywhere_nothing_is_invented():
    step = 45 // rounds(1) or 1
    for name, text in MESSAGES.items():
        whole = whole_of(name)
        for at in range(len(text) % step, len(text), step):
            for part in (text[:at], text[at:], text[:at] + b"\n... [cut]\n" + text[-at // 2 :]):
                for report in read(part):
                    assert contradictions(report, whole) == [], (name, at, part)
            for report in read(text[:at]):
                # What is missing is said.
                if said(report) != said(whole) and whole.kind != "program":
                    assert report.is_cut, text[:at]


def test_lines_that_are_left_out_are_noticed():
    lines = MESSAGES["jax0.9.2-temps"].splitlines(keepends=True)
    whole = whole_of("jax0.9.2-temps")
    chance = random.Random(1)
    for _ in range(rounds(50)):
        first, last = sorted(chance.sample(range(1, len(lines)), 2))
        (report,) = read(b"".join([*lines[:first], b"...\n", *lines[last:]]))
        assert contradictions(report, whole) == [], (first, last)


def test_whatever_a_log_puts_around_it():
    """Each message in each wrap."""
    failures = []
    for name, text in MESSAGES.items():
        whole = whole_of(name)
        lines = text.decode().rstrip("\n").split("\n")
        for wrap, wrapped in WRAPS.items():
            found = read("\n".join(["before", *wrapped(lines), "after", ""]).encode())
            as_whole = [
                said(report) == said(whole)
                and report.buffers == whole.buffers
                and report.is_cut == whole.is_cut
                for report in found
            ]
            failures += [(name, wrap)] if as_whole != [True] else []
    assert failures == []


def test_it_does_not_matter_where_lines_end():
    """Joined into one line, or wrapped at any width."""
    for name, text in MESSAGES.items():
        whole = whole_of(name)
        lines = text.decode().rstrip("\n").split("\n")
        for wrapped in (
            " ".join(lines),
            *(
                "\n".join(re.sub(f"(.{{{width}}})", "\\1\n", line) for line in lines)
                for width in WIDTHS
            ),
        ):
            (report,) = read(f"step 1\n{wrapped}\nstep 2\n".encode())
            assert contradictions(report, whole) == [], (name, wrapped)
            assert said(report) == said(whole), (name, wrapped)
            assert [b.size_bytes for b in report.buffers] == [b.size_bytes for b in whole.buffers]


def test_twice_in_a_long_log_in_pieces_of_any_size_it_is_one_message():
    for name, text in MESSAGES.items():
        whole = whole_of(name)
        (report,) = read(text + b"\nThe above exception was the direct cause\n\n" + text)
        assert (said(report), report.times) == (said(whole), 2)
        (report,) = read(text[: len(text) * 2 // 3] + b"\n" + text)
        assert (said(report), report.is_cut) == (said(whole), False)
        (report,) = read(LOG * 2000, text, LOG * 2000)
        assert (said(report), report.line) == (said(whole), 2001)
        assert report.buffers == whole.buffers
        log = LOG * 100 + text + LOG * 100
        for size in (1 << 10, 4096, 65536):
            (report,) = read(*(log[at : at + size] for at in range(0, len(log), size)))
            assert said(report) == said(whole), (name, size)


def test_a_line_of_any_length_is_no_trouble():
    (report,) = read(b"x" * (20 << 20), b" Out of memory while trying to allocate 1024 bytes.\n")
    assert report.requested_bytes == 1024


def test_what_is_no_message_is_none():
    for text in (
        b"",
        b"\0\xff" * 1000,
        LOG,
        b"Ran out of memory, said the user\n",
        b"Ran out of memory on this machine\n",
        # The allocator tries again after this.
        b"Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.97GiB. The caller "
        b"indicates that this is not a failure\n",
    ):
        assert read_oom_messages([text]) == []


def test_a_figure_that_a_line_ends_in_is_missing_and_the_message_is_not():
    (report,) = read(
        b"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 21\n10783616 bytes.\n"
    )
    assert (said(report), report.is_cut) == ({"kind": "runtime", "space_name": "gpu"}, True)


def test_figures_that_contradict_each_other_are_dropped():
    (report,) = read(
        b"Ran out of memory in memory space hbm. Used 22.00G of 15.75G hbm. Exceeded hbm "
        b"capacity by 7.25G.\n"
    )
    assert report.is_cut
    assert report.used_bytes is None


# --- messages that others have published -----------------------------------------------------

# Of each: kind, the size asked for or used, what there is, buffers.
PUBLISHED = {
    "t2019": ("program", 17.60, 16.00, 2),  # A TensorFlow run of 2019.
    "ptxla": ("program", 9.08, 7.48, 1),  # pytorch/xla#1965
    "colabfold": ("program", 9.08, 7.48, 2),  # sokrypton/ColabFold#62
    "easydel": ("program", 63.80, 30.75, 2),  # erfanzar/EasyDeL#166, cut there
    "enzyme": ("program", 215.17, 31.25, 0),  # EnzymeAD/Enzyme-JAX#2422
    "docs1000": ("program", 49.34, 32.00, 0),  # XLA's page of error 1000, on one line
    "wrapped": ("program", 36.99, 31.25, 0),  # Wrapped by hand.
    "tpurt": ("runtime", 8.00 / 1024, 6.43 / 1024, 0),  # XLA's page of error 0100
    "tpuload": ("runtime", 29.49, 147.64 / 1024, 0),  # XLA's page of error 0101
    "tpuload2": ("runtime", 6.14, None, 0),  # AI-Hypercomputer/tpu-recipes#151
    "frag": ("runtime", 8.00 / 1024, 6.43, 0),  # libtpu's newer text
    "hbmblock": ("allocation", 107374182400 / GIB, 16.0, 0),  # XLA's page on debugging
    "hbmblock2": ("allocation", 21474836480 / GIB, 16.0, 0),
    "scopedmem": ("allocation", 0.125, 0.0625, 0),  # XLA's page of error 1001
    "vmem": ("scoped", 36.25 / 1024, 32.00 / 1024, 0),
    "old-gpu": ("runtime", 5520758552 / GIB, None, 0),  # jax-ml/jax#788
    "new-gpu": ("runtime", 8.00, None, 0),
    "privacy": ("runtime", 184549376 / GIB, None, 0),  # google-deepmind/jax_privacy#10
}


def test_published_messages():
    assert {path.stem for path in PUBLIC.iterdir()} == set(PUBLISHED)
    for name, (kind, asked, there, buffers) in PUBLISHED.items():
        (report,) = read((PUBLIC / f"{name}.txt").read_bytes())
        assert (name, report.kind, len(report.buffers)) == (name, kind, buffers)
        size = report.requested_bytes if report.requested_bytes is not None else report.used_bytes
        found = [size, report.limit_bytes or report.free_bytes or report.capacity_bytes]
        assert found[0] == pytest.approx(asked * GIB, abs=2), name
        assert found[1] == (None if there is None else pytest.approx(there * GIB, abs=2)), name


def test_old_lists_have_exact_sizes_and_padding():
    (report,) = read((PUBLIC / "t2019.txt").read_bytes())
    first = report.buffers[0]
    assert (first.size_bytes, first.padding_bytes) == (512 << 20, 494403584)
    assert (first.instruction, first.op_name, first.is_rounded) == ("fusion.1668", "one_hot", False)
    assert report.argument_bytes is None


# --- messages as people paste them -----------------------------------------------------------


# Read by eye. Of each: whether it is whole, all that it says of itself, and of each buffer the
# rank, the size, and what makes it.
PASTED = json.loads((DATA / "oom/pasted.json").read_text())
# Copied from a page: line numbers, escapes without their ESC; entities.
PASTED["alpa759-page.txt"] = PASTED["alpa759.txt"]
PASTED["torchxla3041.html"] = PASTED["torchxla3041.txt"]
# Buffer assignments are no messages.
NONE = {"no-torchxla.txt", "no-isdf.txt", "no-eigh.txt"}
TEXTS = {path.name: path.read_bytes() for path in (DATA / "oom/pasted").iterdir()}


def made_by(buffer):
    """What a person would name a buffer by."""
    line = buffer.source_file and f"{buffer.source_file}:{buffer.source_line}"
    names = (line, buffer.instruction, buffer.op_name, buffer.allocation_type, buffer.opcode)
    return next(name for name in names if name)


def test_pasted_messages_say_all_that_they_hold():
    assert TEXTS.keys() == PASTED.keys() | NONE
    for name, told in PASTED.items():
        (report,) = read(TEXTS[name])
        assert (said(report), report.is_cut) == (told["says"], not told["is_whole"]), name
        listed = [[buffer.rank, buffer.size_bytes, made_by(buffer)] for buffer in report.buffers]
        assert listed == told["buffers"], name
    for name in NONE:
        assert read(TEXTS[name]) == []


def test_pasted_messages_cut_anywhere_say_nothing_else():
    step = 50 // rounds(1) or 1
    for name, text in TEXTS.items():
        wholes = read(text)
        for at in range(step, len(text), step):
            for part in (text[:at], text[at:], text[:at] + b"\n... [cut]\n" + text[-at // 2 :]):
                for report in read(part):
                    assert contradictions(report, wholes[0]) == [], (name, at, part)


def test_time_grows_with_the_log_not_with_its_square():
    beginnings = (
        b"(Worker pid=1) RESOURCE_EXHAUSTED\n[x] Shape: f\n",
        b'  1. Size: 2.00G\n     Operator: op_name="a\n     XLA label: %x = (f32[1,2]{1,0}\n',
        b"Ran out of memory in memory space vmem while allocating on stack for (",
        MESSAGES["jax0.5.3-args"],
    )
    for text in beginnings:
        taken = []
        for size in (1 << 16, 1 << 19):
            began = time.process_time()
            read_oom_messages([text * (size // len(text))])
            taken.append(time.process_time() - began)
        assert taken[1] < 16 * taken[0] + 0.1, text
