"""What a report tells of each value, and which buffers its table lists, as in the warehouse."""

from itertools import accumulate

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhouse.queries.reporting.module.buffer_table import buffer_table
from memhouse.queries.reporting.module.module_buffers import module_buffers
from memhouse.queries.reporting.module.value_details import (
    NAMED_READERS,
    pinned_panel,
    value_details,
)
from memhouse.queries.reporting.packed_columns import packed

from ..support.warehouse import reading

SPACES = """
SELECT DISTINCT "values".module_id, "values".memory_space
FROM "values" INNER JOIN dumps USING (module_id)
"""
LLAMA = "SELECT module_id FROM dumps WHERE workload = 'llama-v5e'"
VALUES = """
SELECT "values".*, made.instruction, made.opcode, origin.instruction AS origin, start_time,
    end_time
FROM "values"
INNER JOIN instructions AS made USING (module_id, instruction_id)
LEFT JOIN instructions AS origin
    ON origin.module_id = made.module_id
        AND origin.instruction_id = "values".origin_instruction_id
LEFT JOIN live_ranges
    ON live_ranges.module_id = made.module_id AND live_ranges.value_id = "values".value_id
WHERE made.module_id = $1 AND memory_space = $2
ORDER BY "values".value_id
"""
READERS = """
SELECT value_id, LIST(instruction ORDER BY schedule_time NULLS LAST, instruction_id) AS readers
FROM (
    SELECT DISTINCT uses.value_id, uses.instruction_id, instruction, schedule_time
    FROM uses
    INNER JOIN "values" ON "values".module_id = uses.module_id
        AND "values".value_id = uses.value_id
    INNER JOIN instructions ON instructions.module_id = uses.module_id
        AND instructions.instruction_id = uses.instruction_id
    WHERE uses.module_id = $1 AND memory_space = $2
)
GROUP BY value_id
"""


@pytest.fixture(scope="module")
def store(filled):
    with reading(filled) as opened:
        yield opened


def unpacked(column):
    """A column as it was: what `pages/columns.js` does."""
    if isinstance(column, list):
        return list(accumulate(column))
    return [None if row < 0 else column["texts"][row] for row in accumulate(column["rows"])]


def details_of(store, module_id, space=0):
    """The details of a memory space with their columns unpacked."""
    buffers = module_buffers(store, module_id, space)
    details = value_details(store, module_id, space, buffers)
    details["readers"] = unpacked(details["readers"])
    for name in ("values", "instructions", "frames", "allocations"):
        details[name] = {key: unpacked(column) for key, column in details[name].items()}
    return details


def names(instructions):
    numbers = ("" if number < 0 else str(number) for number in instructions["number"])
    return [stem + number for stem, number in zip(instructions["stem"], numbers, strict=True)]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 2**53)),
            st.one_of(st.none(), st.text(st.characters(categories=["L", "P"]))),
        )
    )
)
def test_what_is_packed_comes_out_again(rows):
    numbers = pa.array([number for number, _ in rows], pa.int64())
    texts = pa.array([text for _, text in rows], pa.string())
    columns = packed(pa.table({"number": numbers, "text": texts}))
    assert unpacked(columns["number"]) == [-1 if n is None else n for n in numbers.to_pylist()]
    assert unpacked(columns["text"]) == texts.to_pylist()


def test_control_characters_do_not_reach_the_page():
    columns = packed(pa.table({"text": ["a\u202eb\x1b"]}))
    assert unpacked(columns["text"]) == ["a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"]


@pytest.mark.slow
def test_each_value_is_told_as_the_warehouse_has_it(store):
    spaces = store.rows(SPACES).to_pylist()
    assert len(spaces) > 20
    for space in spaces:
        parameters = [space["module_id"], space["memory_space"]]
        details = details_of(store, *parameters)
        values, instruction = details["values"], names(details["instructions"])
        wanted = store.rows(VALUES, parameters)
        for column in ("value_id", "size_bytes", "shape", "shape_index", "origin_rule", "pass"):
            assert values[column] == wanted[column].to_pylist()
        for column in ("start_time", "end_time", "last_use_time", "offset_bytes"):
            assert values[column] == wanted[column].fill_null(-1).to_pylist()
        assert [instruction[row] for row in values["made_by"]] == wanted["instruction"].to_pylist()
        origins = [None if row < 0 else instruction[row] for row in values["origin"]]
        assert origins == wanted["origin"].to_pylist()
        opcodes = details["instructions"]["opcode"]
        assert [opcodes[row] for row in values["made_by"]] == wanted["opcode"].to_pylist()


@pytest.mark.slow
def test_the_readers_of_each_value_are_its_uses(store):
    for space in store.rows(SPACES).to_pylist():
        parameters = [space["module_id"], space["memory_space"]]
        details = details_of(store, *parameters)
        instruction, values = names(details["instructions"]), details["values"]
        wanted = {
            row["value_id"]: row["readers"] for row in store.rows(READERS, parameters).to_pylist()
        }
        ends = list(accumulate(values["named_readers"]))
        assert ends[-1:] == [len(details["readers"])]
        for value_id, count, named, end in zip(
            values["value_id"], values["readers_count"], values["named_readers"], ends, strict=True
        ):
            told = [instruction[row] for row in details["readers"][end - named : end]]
            assert told == wanted.get(value_id, [])[:NAMED_READERS]
            assert count == len(wanted.get(value_id, []))


def test_a_value_of_llama(store):
    """What a loop of the forward pass stacks: the value while.47{2} keeps it for the backward."""
    ((module_id,),) = store.connection.sql(LLAMA).fetchall()
    details = details_of(store, module_id)
    values, frames, instructions = (details[name] for name in ("values", "frames", "instructions"))
    instruction = names(instructions)
    told = [instruction[row] for row in values["made_by"]]
    row = told.index("bitcast_dynamic-update-slice_fusion.5")
    assert values["origin_rule"][row] == "loop"
    origin = values["origin"][row]
    assert instruction[origin] == "add.510"

    stack, frame = [], instructions["frame"][origin]
    while frame >= 0:
        stack.append((frames["place"][frame], frames["function"][frame]))
        frame = frames["caller"][frame]
    assert stack[0] == ("/train/zoo/zoo.py:35", "layer")
    assert stack[-1] == ("/train/zoo/zoo.py:52", "<module>")

    aliases = [
        at for at, name in enumerate(values["alias_set"]) if name == values["alias_set"][row]
    ]
    assert {told[at] + values["shape_index"][at] for at in aliases} == {
        "custom-call.6{}",
        "wide.param.42{2}",
        "wide.param.1{2}",
        "bitcast_dynamic-update-slice_fusion.5{}",
        "while.47{2}",
    }


def test_a_buffer_is_where_the_map_draws_it(store):
    ((module_id,),) = store.connection.sql(LLAMA).fetchall()
    buffers = module_buffers(store, module_id)
    details = details_of(store, module_id)
    base = dict(
        zip(*(details["allocations"][k] for k in ("allocation_index", "base")), strict=True)
    )
    for row in buffers.to_pylist():
        assert base[row["allocation_index"]] + row["offset_bytes"] == row["address"]
    largest = max(buffers.to_pylist(), key=lambda row: row["peak_counted_bytes"])
    assert details["first"] == largest["value_id"]


def test_the_table_lists_every_buffer(store):
    ((module_id,),) = store.connection.sql(LLAMA).fetchall()
    buffers = module_buffers(store, module_id)
    columns = buffer_table(buffers, 437).data["buffers"]["columns"]
    assert sum(unpacked(columns["peak_counted_bytes"])) == sum(
        buffers["peak_counted_bytes"].to_pylist()
    )
    assert unpacked(columns["value_id"]) == sorted(buffers["value_id"].to_pylist())


def test_a_memory_space_without_values_has_no_details(store):
    ((module_id,),) = store.connection.sql(LLAMA).fetchall()
    details = value_details(store, module_id, 99, module_buffers(store, module_id, 99))
    assert details["values"]["value_id"] == []
    assert details["first"] == -1
    assert pinned_panel(details, "99", 0, is_estimated=False).data["values"]["readers"] == []
