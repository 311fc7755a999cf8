"""`.hlo.pb`: a module's binary gives the tables that its texts give."""

import random
import shutil
from collections import Counter
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from memhouse.ingest.readers import proto_schema
from memhouse.ingest.readers.hlo_proto import read_hlo_proto
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.proto_identity import identify_hlo_proto
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.xla.errors import DumpError
from memhouse.xla.parts import Parts
from tests.support.dumps import DATA, DUMPS
from tests.support.joined import joined
from tests.support.protos import changed, field, message, packed, pairs

BINARIES = DATA / "binaries"
# Where the texts of each folder of binaries lie.
TEXTS = {
    "cpu": DUMPS / "cpu/jax-0.10.2",
    "gpu": DUMPS / "gpu/decode-h100",
    "tpu-flash": DUMPS / "tpu/flash-v5e",
    "oom-pad": BINARIES / "oom-pad",
    "oom-vmemgrid": BINARIES / "oom-vmemgrid",
}
SAMPLES = sorted(
    path.relative_to(BINARIES).as_posix() for path in BINARIES.glob("*/*after_optimizations.hlo.pb")
)
OLD = "oom-vmemgrid/module_0001.jit__lambda_.cl_765218913.after_optimizations.hlo.pb"
MIXED = BINARIES / "cpu/module_0018.jit_mixed.cpu_after_optimizations.hlo.pb"
# XLA's order of positions and uses depends on addresses, and only a report names the spaces.
# Scopes are numbered in the order of computations, which text and binary print differently.
LEFT_OUT = ("position_index", "use_index", "space", "space_name", "scope_id")


def both(sample, folder):
    """The module from its texts, and from its binary."""
    file = BINARIES / sample
    name = file.name.split("after_optimizations")[0]
    for path in TEXTS[file.parent.name].glob(f"{name}after_optimizations*.txt"):
        shutil.copy(path, folder)
    with ExitStack() as cleanup:
        files = open_source(folder, is_wanted, cleanup, pytest.fail)
        (dump,) = find_dumps(files, lambda file, why: pytest.fail(str(why)))
        text = joined(dump.read(dump.fingerprint()), dump.key)
    program, assignment = read_hlo_proto(file.read_bytes())
    return text, joined(Parts(assignment, program=program, is_binary=True), dump.key)


def rows(module, table):
    """A table's rows, with the names of instructions in the place of their numbers."""
    names = module.tables["instructions"]["instruction"]
    columns = {}
    for name, column in zip(module.tables[table].column_names, module.tables[table], strict=True):
        if name.endswith("instruction_id"):
            column = names.take(column.combine_chunks())
        if name not in LEFT_OUT:
            columns[name] = column.to_pylist()
    ordered = [columns[name] for name in sorted(columns)]
    return Counter(zip(*ordered, strict=True))


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_binary_gives_the_tables_of_its_texts(sample, tmp_path):
    text, binary = both(sample, tmp_path)
    assert text.tables.keys() == binary.tables.keys() - {"live_ranges", "stack_frames"} | (
        text.tables.keys() & {"live_ranges", "stack_frames"}
    )
    for table in text.tables:
        apart = rows(text, table) - rows(binary, table)
        if table == "stack_frames":
            # The binary cannot tell column 0 from none.
            apart = {row: n for row, n in apart.items() if 0 not in row}
        elif sample == OLD and table in ("instructions", "reported_peak"):
            continue
        assert not apart, table
    same = {name: value for name, value in text.header.items() if name != "origin"}
    assert same == {name: binary.header[name] for name in same}
    assert binary.header["program_id"] is not None
    assert not binary.contradictions


def test_a_binary_of_old_jax_has_the_frames_that_its_text_lacks(tmp_path):
    text, binary = both(OLD, tmp_path)
    assert "stack_frames" not in text.tables
    assert binary.tables["stack_frames"]["function"].to_pylist() == ["<module>", "go", "<lambda>"]
    (kernel,) = pc.index_in(pa.array(["main"]), binary.tables["instructions"]["instruction"])
    assert binary.tables["instructions"]["stack_frame_id"][kernel.as_py()].as_py() == 3
    assert binary.tables["instructions"]["custom_call_target"][kernel.as_py()].as_py() == (
        "tpu_custom_call"
    )


def test_numbers_of_frames_that_the_binary_lacks_mean_nothing():
    """As libtpu of changelist 804429027 writes a training step of Haiku."""
    data = (BINARIES / OLD).read_bytes()
    program, _ = read_hlo_proto(data)
    assert {metadata.stack_frame_id for metadata in program.metadata} > {None}
    program, _ = read_hlo_proto(changed(data, [(1, 0), (17, 0)], lambda _: None))
    assert program.frames == {}
    assert {metadata.stack_frame_id for metadata in program.metadata} == {None}


# The module, the schedule and its entries; the module's number.
MODULE, SCHEDULE, ENTRY, NUMBER = (1, 0), (7, 0), (1, 0), (5, 0)


def test_the_order_of_the_schedule_and_the_number_do_not_change_the_content():
    data = MIXED.read_bytes()
    reversed_ = changed(data, [MODULE, SCHEDULE], lambda map_: message(*reversed(pairs(map_))))
    renumbered = changed(data, [MODULE, NUMBER], lambda number: number + 1)
    assert data != reversed_ != renumbered
    identity = identify_hlo_proto(data)
    assert identity.module_name == "jit_mixed"
    assert identity.has_assignment
    assert identify_hlo_proto(reversed_) == identify_hlo_proto(renumbered) == identity
    assert identify_hlo_proto(memoryview(data)) == identity


def test_the_order_of_attributes_does_not_change_the_content():
    entries = [field(1, message((1, name), (2, b"x"))) for name in (b"a", b"b", b"c")]
    data = MIXED.read_bytes()

    def with_attributes(*order):
        def put(instruction):
            return instruction + field(68, b"".join(order))

        return changed(data, [MODULE, (3, 1), (2, 2)], put)

    one = identify_hlo_proto(with_attributes(*entries))
    assert one == identify_hlo_proto(with_attributes(*reversed(entries)))
    assert one.content != identify_hlo_proto(with_attributes(*entries[:2])).content
    assert one.content != identify_hlo_proto(data).content


def test_another_order_of_instructions_is_another_content():
    data = MIXED.read_bytes()
    other = changed(
        data, [MODULE, SCHEDULE, ENTRY, (2, 0), (1, 0)], lambda ids: packed(*reversed(ids))
    )
    assert identify_hlo_proto(other).content != identify_hlo_proto(data).content


def test_an_earlier_stage_has_no_assignment():
    (file,) = BINARIES.glob("*/*after_optimizations_after_buffer_assignment.hlo.pb")
    without_allocations = changed(MIXED.read_bytes(), [(3, 0)], lambda _: b"")
    for data in (file.read_bytes(), without_allocations):
        assert not identify_hlo_proto(data).has_assignment
        program, assignment = read_hlo_proto(data)
        assert assignment is None
        assert len(program)


def test_what_is_no_hlo_proto_is_refused():
    (report,) = BINARIES.glob("*/*-memory-usage-report.pb")
    for data, why in (
        (report.read_bytes(), "no module with a name and computations"),
        (b"HloModule jit_f, is_scheduled=true\n", "not a protocol buffer"),
        (MIXED.read_bytes()[:10000], "cut short or damaged"),
        (b"", None),
    ):
        for read in (identify_hlo_proto, read_hlo_proto):
            with pytest.raises(DumpError, match=why):
                read(data)


def test_an_unknown_opcode_and_an_unknown_field_are_read():
    data = changed(MIXED.read_bytes(), [MODULE, (3, 1), (2, 2), (2, 0)], lambda _: b"add-twice")
    data = changed(data, [MODULE, (3, 1), (2, 2)], lambda i: i + field(3000, b"new") + field(91, 7))
    program, _ = read_hlo_proto(data)
    assert "add-twice" in program.opcode


def test_control_dependencies_are_those_of_the_text():
    """Of an instruction that is there: the second waits for the first, and for none of the file."""
    instructions = [MODULE, (3, 1), (2, 0)]
    names, ids = {}, {}
    for place in (0, 1):
        found = dict(pairs_at(MIXED.read_bytes(), [*instructions[:2], (2, place)]))
        names[place], ids[place] = found[1].decode(), found[35]
    waits = field(37, packed(ids[0], 2**40))
    data = changed(MIXED.read_bytes(), [*instructions[:2], (2, 1)], lambda i: i + waits)
    program, _ = read_hlo_proto(data)
    row_of = program.row_of
    assert program.control_predecessors == {row_of[names[1]]: [row_of[names[0]]]}
    text = (
        "HloModule made, is_scheduled=true\n\nENTRY %main () -> f32[1] {\n"
        '  %a = f32[1]{0} custom-call(), custom_call_target="f"\n'
        '  %b = f32[1]{0} custom-call(), custom_call_target="f"\n'
        '  ROOT %c = f32[1]{0} custom-call(%a), custom_call_target="f",'
        ' control-predecessors={%a, %b}, metadata={op_name="x"}\n}\n'
    )
    assert read_hlo_text(split_lines(text.encode())).control_predecessors == {2: [0, 1]}


def pairs_at(data, path):
    """The fields of the message at a path."""
    for number, place in path:
        data = [value for n, value in pairs(data) if n == number][place]
    return pairs(data)


def test_an_unknown_element_type_is_refused_where_a_size_depends_on_it():
    file = next(BINARIES.glob("*/*_after_buffer_assignment.hlo.pb")).read_bytes()
    data = changed(file, [MODULE, (3, 0), (2, 0), (3, 0), (2, 0)], lambda _: 99)
    program, _ = read_hlo_proto(data)
    assert any(shape.startswith("type99[") for shape in program.shape)
    data = changed(file, [MODULE, (4, 0), (1, 0), (2, 0)], lambda _: 99)
    with pytest.raises(DumpError, match=r"signature.*type99"):
        read_hlo_proto(data)


# Protocol buffers do not write what has its default, but they may.


# By message and number, whether a field is repeated and its type, a map's entry included.
FIELDS = {}
for _message, _body in proto_schema._MESSAGE.findall(proto_schema._SCHEMA):
    FIELDS[_message] = known = {}
    for repeated, _, key, value, type_, name, number in proto_schema._FIELD.findall(_body):
        if key:
            type_ = f"{name} entry"
            FIELDS[type_] = {1: (False, key), 2: (False, value)}
        known[int(number)] = bool(repeated or key), type_


def with_defaults(data, type_, *, written, chance):
    """The message with some of its fields that have the default written, or with none of them."""
    known = FIELDS[type_]
    found = []
    for number, value in pairs(data):
        is_repeated, field_type = known.get(number, (True, None))
        if field_type in FIELDS:
            value = with_defaults(value, field_type, written=written, chance=chance)
        may_miss = field_type not in FIELDS and not is_repeated
        if not may_miss or value not in (0, b""):
            found.append((number, value))
    if written:
        there = {number for number, _ in found}
        absent = [
            (number, 0 if field_type == "int64" else b"")
            for number, (is_repeated, field_type) in known.items()
            if number not in there and not is_repeated and field_type not in FIELDS
        ]
        found += chance.sample(absent, chance.randint(0, len(absent)))
    return message(*found)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_default_is_read_whether_it_is_written_or_not(sample):
    data = (BINARIES / sample).read_bytes()
    chance = random.Random(sample)
    program, assignment = read_hlo_proto(data)
    for written in (False, True, True):
        other = with_defaults(data, "HloProto", written=written, chance=chance)
        other_program, other_assignment = read_hlo_proto(other)
        assert other_assignment == assignment
        assert vars(other_program) == vars(program)
