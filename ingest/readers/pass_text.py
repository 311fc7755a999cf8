"""Reader of HLO texts between two passes: of each instruction what following it needs."""

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.pass_programs import PassProgram
from ...xla.program import NONE, Header, Metadata
from .hlo_text import (
    COMPUTATION_NAME,
    called_computations,
    is_root,
    marked,
    read_operands,
    rejoined,
    split_instructions,
    tuple_indices,
)
from .line_columns import Lines, as_numpy, split_lines

_SUFFIX = re.compile(r"\.(?:gz|zst)$")
_NAME = re.compile(
    r"(?P<stem>(?:\d{10,20}\.)?module_\d{1,9}\..*?)\.(?P<step>\d{4,9})\.(?P<pipeline>.+?)"
    r"(?:\.after_(?P<after>.+?))?(?:\.before_(?P<before>.+))?\.txt"
)
_STEP = re.compile(r"^(?:\d{10,20}\.)?module_.*\.\d{4,9}\.")
_ELEMENT = r"#\d+$"


class PassName(NamedTuple):
    """What the name of a text says: its dump's stem, its number, the pipeline and the pass."""

    stem: str
    step: int
    pipeline: str
    compiler_pass: str | None


def pass_name(name: str) -> PassName | None:
    """What a file's name says, None if it is no text between two passes.

    >>> pass_name("module_0000.jit_f.0011.simplification.after_algsimp.before_dce.txt")
    PassName(stem='module_0000.jit_f', step=11, pipeline='simplification', compiler_pass='algsimp')
    """
    if not _STEP.search(name):
        return None
    found = _NAME.fullmatch(_SUFFIX.sub("", name))
    if found is None or (found["after"] is None and found["before"] is None):
        return None
    return PassName(found["stem"], int(found["step"]), found["pipeline"], found["after"])


def read_pass_text(text: bytes) -> PassProgram:
    """The program. Raises DumpError."""
    lines = split_lines(text)
    header, body = lines.first(), lines.between(1, len(lines))
    if not header.startswith("HloModule "):
        raise DumpError("not HLO text", 1)
    is_scheduled = ", is_scheduled=true" in header
    try:
        return _read(body, is_scheduled=is_scheduled)
    except DumpError:
        return _read(rejoined(body), is_scheduled=is_scheduled)


def _read(lines: Lines, *, is_scheduled: bool) -> PassProgram:
    body, marks, _ = marked(lines)
    opened = body.where(marks.is_open).extract(COMPUTATION_NAME, "a computation")
    computations = opened["computation"]
    entry = np.flatnonzero(as_numpy(pc.not_equal(opened["entry"], "")))
    if not len(entry):
        raise DumpError("the text has no entry computation", 1)
    instructions = split_instructions(body.where(marks.is_instruction))
    names = instructions.names
    operands, _ = read_operands(instructions)
    texts = operands["operand"].combine_chunks()
    elements = np.full(len(texts), -1, np.int64)
    of_element = as_numpy(pc.match_substring_regex(texts, _ELEMENT))
    if of_element.any():
        # Since JAX 0.12 `%x#1` is element 1 of the tuple x.
        split = pc.extract_regex(texts, r"^(?P<name>.*?)(?:#(?P<element>\d+))?$")
        texts = pc.struct_field(split, "name")
        numbers = pc.struct_field(split, "element").filter(pa.array(of_element))
        elements[of_element] = numbers.cast(pa.int64()).to_numpy()
    users = pc.index_in(operands["instruction"].combine_chunks(), value_set=names).to_numpy()
    places = pc.index_in(texts, value_set=names)
    known = as_numpy(pc.is_valid(places))
    places = pc.fill_null(places, 0).to_numpy()
    calls = called_computations(instructions, computations)
    rows, distinct = instructions.metadata
    op_names = pc.struct_field(
        pc.extract_regex(distinct.dictionary, r'\bop_name="(?P<name>(?:[^"\\]|\\.)*)"'), "name"
    )
    codes = np.full(len(names), -1, np.int32)
    codes[rows] = distinct.indices.to_numpy()
    program = PassProgram()
    program.header = Header(is_scheduled=is_scheduled)
    owner = ((np.cumsum(marks.is_open) - 1)[marks.is_instruction]).tolist()
    opcodes, shapes = instructions.opcodes.to_pylist(), instructions.shapes.to_pylist()
    lists: list[list[int]] = [[] for _ in owner]
    for user, place, is_known, element in zip(
        users.tolist(), places.tolist(), known.tolist(), elements.tolist(), strict=True
    ):
        if element >= 0:
            program.elements[user, len(lists[user])] = element
        lists[user].append(place if is_known else NONE)
    texts_of = [*op_names.to_pylist(), None]
    indices = pc.fill_null(tuple_indices(instructions), 0).to_numpy().tolist()
    roots = is_root(instructions).tolist()
    computation_names = computations.to_pylist()
    for row, name in enumerate(names.to_pylist()):
        while len(program.computation_names) <= owner[row]:
            program.add_computation(computation_names[len(program.computation_names)])
        program.add_instruction(
            name,
            opcodes[row],
            shapes[row],
            tuple(lists[row]),
            row,
            metadata=Metadata(op_name=texts_of[codes[row]]),
            tuple_index=indices[row],
        )
        if roots[row]:
            program.root[owner[row]] = row
    program.entry = int(entry[0])
    callers = pc.index_in(calls["instruction"].combine_chunks(), value_set=names).to_pylist()
    callees = pc.index_in(calls["computation"].combine_chunks(), value_set=computations)
    for row, attribute, callee in zip(
        callers, calls["attribute"].to_pylist(), callees.to_pylist(), strict=True
    ):
        program.calls.setdefault(row, []).append((attribute, callee))
    return program
