"""Reader of HLO text: the header, computations, instructions and stack frames."""

import re
import string
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.dataflow import KNOWN_OPCODES
from ...xla.errors import DumpError
from ...xla.parts import HloText, NotUnderstoods, Unread
from ...xla.shapes import Shape, TupleShape, is_shape, parse_shape
from .attributes import program_columns, read_attributes, read_once
from .entry_shapes import entry_shapes, read_entry_parameters
from .instructions import (
    InstructionLines,
    read_instructions,
    read_operands,
    split_instructions,
)
from .lexer import joined_lines, read_the_rest, unread_lines
from .lines import Lines, Mask, as_numpy, excerpt, slices, with_inserted
from .newer_text import newer_words, without_newer_tables

# To cut a name out of a whole long line takes five times as long as to check the line.
_COMPUTATION_NAME = r"^(?P<entry>ENTRY )?%?(?P<computation>[^ (][^ ]*) "
_COMPUTATION = r"^(?:ENTRY )?%?[^ (][^ ]* (?:\(.*\) -> .* )?\{$"
_INSTRUCTION = r"^  (?:ROOT )?%?[^ ]+ = "
_HEADER_NAME = re.compile(r"^HloModule ([^ ,]+)")
# Attributes that name one called computation; those of _CALL_LISTS name several.
_CALLS = (
    "calls",
    "to_apply",
    "condition",
    "body",
    "select",
    "scatter",
    "true_computation",
    "false_computation",
)
_CALL_LISTS = ("branch_computations", "called_computations")

# How a computation ends that other cores run, such as a TPU's sparse cores.
_ON_A_THREAD = '}, execution_thread="'
# A number of more digits is none of XLA's, and slow to read.
_MOST_DIGITS = 9

FRAME_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

_NEWER_ATTRIBUTES = r"(?P<newer>(?: [a-z_]+=[^ {}]+)*)"
_ROW_NAME = r'^(?P<id>\d+) "(?P<name>.*)"$'
_LOCATION = (
    r"^(?P<id>\d+) \{file_name_id=(?P<file>\d+) function_name_id=(?P<function>\d+)"
    r" line=(?P<line>\d+)(?: end_line=(?P<end_line>\d+))?"
    r"(?: column=(?P<column_start>\d+))?(?: end_column=(?P<column_end>\d+))?"
    rf"{_NEWER_ATTRIBUTES}\}}$"
)
_FRAME = (
    r"^(?P<id>\d+) \{file_location_id=(?P<location>\d+)(?: parent_frame_id=(?P<parent>\d+))?"
    rf"{_NEWER_ATTRIBUTES}\}}$"
)


def read_hlo_text(lines: Lines) -> HloText:
    """Read a module's HLO text, without the instructions that cannot be read.

    Raises DumpError if the text has no header, no entry computation or no end.
    """
    header = _header(lines)
    body = lines.between(1, len(lines))
    try:
        return _read_body(header, body)
    except DumpError:
        # Few texts have instructions of several lines, so that others pay nothing.
        joined = _joined_instructions(body)
    text, errors = read_the_rest(joined, partial(_read_body, header))
    if not len(text.instructions):
        raise errors[0]
    unread = unread_lines(errors, len(text.instructions), "instructions")
    return replace(text, unread=(*unread, *text.unread))


def _joined_instructions(body: Lines) -> Lines:
    """The lines, with each instruction of several lines on one."""
    is_instruction = body.starting("  ")
    texts = body.where(is_instruction).text
    is_instruction[is_instruction] = as_numpy(pc.match_substring_regex(texts, _INSTRUCTION))
    return joined_lines(body, is_instruction, np.zeros(len(body), bool))


def _read_body(header: dict[str, object], lines: Lines) -> HloText:
    """Read what follows the header.

    Raises DumpError; if its lines are wrong and no more, `lines` without them can be read.
    """
    body, marks, newer = _marked(lines)
    is_open, is_instruction, is_frame, unclosed = marks
    opening = body.where(is_open)
    is_right = as_numpy(pc.match_substring_regex(opening.text, pattern=_COMPUTATION))
    if not is_right.all():
        opening.refuse(~is_right, "expected a computation")
    opened = opening.extract(_COMPUTATION_NAME, "a computation")
    computations = pa.table(
        {
            "computation": opened["computation"],
            "is_entry": pc.not_equal(opened["entry"], ""),
        }
    )
    if pc.sum(computations["is_entry"]).as_py() != 1:
        raise DumpError(
            "the text has no entry computation: it is cut short, dump it again",
            int(lines.numbers[-1]) if len(lines) else 1,
        )
    instructions = split_instructions(body.where(is_instruction))
    _check_names(instructions)
    operands = read_operands(instructions)
    whole = _written_out(lines, instructions, operands)
    if whole is not lines:
        return _read_body(header, whole)
    owner = (np.cumsum(is_open) - 1)[is_instruction]
    frames, newer_frames, unread = _read_frames(body.where(is_frame))
    table = with_sources(read_instructions(instructions), frames)
    in_entry = as_numpy(computations["is_entry"])[owner]
    parameters = read_entry_parameters(instructions, table["op_name"], in_entry)
    signature = header["entry_signature"]
    return HloText(
        header=header,
        computations=computations,
        instructions=pa.table(
            dict(zip(table.column_names, table.columns, strict=True))
            | {"computation": computations["computation"].take(pa.array(owner))}
            | program_columns(instructions)
        ),
        operands=operands,
        calls=_calls(instructions, computations["computation"].combine_chunks()),
        stack_frames=frames,
        entry_shapes=(entry_shapes(str(signature), parameters) if signature is not None else None),
        attributes=read_once(read_attributes, instructions),
        not_understood=newer + newer_frames + _newer_opcodes(instructions),
        unread=(*unclosed, *unread),
    )


class _Marks(NamedTuple):
    """Which lines open a computation, are instructions or are of the stack frames.

    `unclosed` is the first computation that does not end before the next one.
    """

    is_open: Mask
    is_instruction: Mask
    is_frame: Mask
    unclosed: tuple[Unread, ...]


def _marked(body: Lines) -> tuple[Lines, _Marks, NotUnderstoods]:
    """The lines below the header, what they are, and the tables that were passed over.

    Raises DumpError for a line that is none of these, and if the last computation does not end.
    """
    is_instruction = body.starting("  ")
    is_close = body.starting("}")
    if is_close.any():
        closing = body.where(is_close)
        is_close[is_close] = np.logical_or.reduce(
            [closing.equal("}"), closing.starting("} // "), closing.starting(_ON_A_THREAD)]
        )
    is_open = body.ending("{") & ~is_instruction & ~body.starting("}")
    is_edge = is_open | is_close
    # Before each line, whether the last edge above it opens a computation.
    at = np.maximum.accumulate(np.where(is_edge, np.arange(1, len(body) + 1), 0))
    is_inside = np.append(False, is_open)[at]
    was_inside = np.append(False, is_inside)[: len(body)]
    is_outside = ~(is_inside | is_close)
    is_frame_row = is_outside & np.logical_or.reduce(
        [body.starting(digit) for digit in string.digits]
    )
    is_frame_table = np.logical_or.reduce([body.equal(name) for name in FRAME_TABLES])
    is_frame = is_frame_row | is_frame_table
    other = ~(is_instruction | is_close | is_open | is_frame | body.equal(""))
    if other.any():
        known, newer = without_newer_tables(
            body, is_open, is_close, is_frame_table, other & is_outside
        )
        if len(known) == len(body):
            body.refuse(other, "expected a computation or an instruction")
        found, marks, more = _marked(known)
        return found, marks, newer + more
    wrong = (is_instruction & ~is_inside) | (is_close & ~was_inside)
    if wrong.any():
        body.refuse(wrong, "expected an instruction of an open computation")
    if len(body) and is_inside[-1]:
        raise DumpError(
            "the text ends within a computation: it is cut short, dump it again",
            int(body.numbers[-1]),
        )
    doubled = body.numbers[is_open & was_inside]
    why = "a computation starts before the one above it ends"
    unclosed = tuple(Unread(int(number), why) for number in doubled[:1])
    return body, _Marks(is_open, is_instruction, is_frame, unclosed), ()


def _check_names(instructions: InstructionLines) -> None:
    """Raise DumpError at the first instruction whose name is taken or whose shape is none."""
    lines = instructions.lines
    if len(pc.unique(instructions.names)) < len(lines):
        codes = instructions.names.dictionary_encode().indices.to_numpy()
        taken = np.ones(len(lines), bool)
        taken[np.unique(codes, return_index=True)[1]] = False
        lines.refuse(taken, "two instructions have one name")
    shapes = instructions.shapes.dictionary_encode()
    wrong = np.array([not is_shape(text) for text in shapes.dictionary.to_pylist()], bool)
    if wrong.any():
        lines.refuse(wrong[shapes.indices.to_numpy()], "an instruction has no shape of XLA")


def _read_frames(lines: Lines) -> tuple[pa.Table, NotUnderstoods, tuple[Unread, ...]]:
    """The stack frames, none of them if one cannot be read."""
    try:
        return *read_stack_frames(lines), ()
    except DumpError as error:
        frames, newer = read_stack_frames(lines.between(0, 0))
        what = f"the stack frames are not read: {error}"
        return frames, newer, (Unread(error.line or int(lines.numbers[0]), what),)


def _newer_opcodes(instructions: InstructionLines) -> NotUnderstoods:
    """The opcodes that no rule of dataflow covers."""
    opcodes = instructions.opcodes
    known = pa.array(sorted(KNOWN_OPCODES), opcodes.dictionary.type)
    newer = opcodes.dictionary.filter(pc.invert(pc.is_in(opcodes.dictionary, value_set=known)))
    if not len(newer):
        return ()
    texts = opcodes.cast(newer.type)
    nothing = pa.scalar("", newer.type)
    texts = pc.if_else(pc.is_in(texts, value_set=newer), texts, nothing)
    return newer_words(instructions.lines, texts, "opcode")


def header_name(text: str) -> str | None:
    """The module's name in the first line of HLO text, None if the text is not HLO."""
    found = _HEADER_NAME.match(text)
    return found[1] if found else None


def _header(lines: Lines) -> dict[str, object]:
    """The first line's attributes, as columns of `modules`."""
    text = lines.first()
    if header_name(text) is None:
        raise DumpError(f"not HLO text: it starts with {excerpt(text)}", int(lines.numbers[0]))
    return {
        "is_scheduled": ", is_scheduled=true" in text,
        "entry_signature": _braced(text, "entry_computation_layout"),
        "input_output_alias": _braced(text, "input_output_alias"),
        "buffer_donor": _braced(text, "buffer_donor"),
        "num_partitions": _count(text, "num_partitions"),
        "replica_count": _count(text, "replica_count"),
    }


def _braced(text: str, attribute: str) -> str | None:
    """The text between an attribute's braces, None without the attribute."""
    start = text.find(f", {attribute}={{")
    if start < 0:
        return None
    start += len(attribute) + 4
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start : start + brace.start()].strip()
    raise DumpError(f"the braces of {attribute} do not close", 1)


def _count(text: str, attribute: str) -> int:
    """The number of partitions or replicas, which XLA prints only if greater than 1."""
    found = re.search(rf", {attribute}=([0-9]+)\b", text)
    if found is None:
        return 1
    if len(found[1]) > 9:
        raise DumpError(f"{attribute} is over 32 bits: {excerpt(found[1])}", 1)
    return int(found[1])


def _calls(instructions: InstructionLines, computations: pa.LargeStringArray) -> pa.Table:
    """The computations that each instruction calls, with the attribute that names them."""
    lines = instructions.lines
    tables = []
    for attribute in (*_CALLS, *_CALL_LISTS):
        rows, starts = instructions.attribute(attribute)
        value = slices(lines.content, starts, lines.ends[rows])
        pattern = r"^\{(?P<names>[^}]*)\}" if attribute in _CALL_LISTS else r"^(?P<names>[^ ,]+)"
        found = pc.struct_field(pc.extract_regex(value, pattern=pattern), "names")
        names = pc.replace_substring(pc.fill_null(found, ""), pattern="%", replacement="")
        lists = pc.split_pattern(names, pattern=", ")
        owner = np.repeat(rows, pc.list_value_length(lists).to_numpy())
        tables.append(
            pa.table(
                {
                    "instruction": instructions.names.take(pa.array(owner)),
                    "attribute": pa.repeat(pa.scalar(attribute, pa.large_string()), len(owner)),
                    "computation": lists.flatten(),
                }
            )
        )
    calls = pa.concat_tables(tables)
    # An op_name may contain `, select=`, so only an existing computation's name is a call.
    return calls.filter(pc.is_in(calls["computation"], value_set=computations))


def _written_out(lines: Lines, instructions: InstructionLines, operands: pa.Table) -> Lines:
    """The text with a get-tuple-element for each element that is only an operand.

    Since JAX 0.12 `%x#1` is element 1 of the tuple x, and XLA leaves the get-tuple-element out of
    the text (`--xla_dump_compact_gte`). The readers and the model know instructions only.
    It is called as the operand is printed, `x#1`, because the text tells no name of its own,
    and has the number of the line that uses it first. Without such operands these are the same
    lines. `instructions` and `operands` are what the lines hold. Raises DumpError.
    """
    within = operands["operand"].filter(pc.match_substring(operands["operand"], "#"))
    names = pc.unique(within)
    names = names.filter(pc.is_null(pc.index_in(names, value_set=instructions.names)))
    # What has no tuple is left to the model, which says what is not defined.
    tuples = pc.list_element(pc.split_pattern(names, "#", max_splits=1), 0)
    at = pc.index_in(tuples, value_set=instructions.names)
    names, at = names.filter(pc.is_valid(at)), at.drop_null()
    if not len(names):
        return lines
    shapes = instructions.shapes.take(at).to_pylist()
    first = pc.index_in(names, value_set=operands["operand"].combine_chunks())
    users = pc.index_in(operands["instruction"].take(first), value_set=instructions.names)
    texts: dict[str, str] = {}
    places = []
    for name, shape, row in zip(names.to_pylist(), shapes, users.to_pylist(), strict=True):
        for element, text in _element_instructions(
            name, shape, int(instructions.lines.numbers[row])
        ):
            if element not in texts:
                texts[element] = text
                places.append(row)
    before = np.searchsorted(lines.starts, instructions.lines.starts[places])
    return with_inserted(lines, before, list(texts.values()))


def _element_instructions(name: str, shape_text: str, line: int) -> list[tuple[str, str]]:
    """`x#1#0` as instructions: the names x#1 and x#1#0, each with the line that defines it."""
    found = []
    of, *numbers = name.split("#")
    try:
        shape: Shape = parse_shape(shape_text)
    except ValueError as error:
        raise DumpError(f"operand {name}: {error}", line, [line]) from None
    for number in numbers:
        elements = shape.elements if isinstance(shape, TupleShape) else ()
        is_number = number.isdecimal() and len(number) <= _MOST_DIGITS
        if not is_number or int(number) >= len(elements):
            raise DumpError(f"operand {name}: {of} has {len(elements)} elements", line, [line])
        shape = elements[int(number)]
        element = f"{of}#{number}"
        found.append((element, f"  %{element} = {shape} get-tuple-element(%{of}), index={number}"))
        of = element
    return found


def read_stack_frames(lines: Lines) -> tuple[pa.Table, NotUnderstoods]:
    """The frames as in the warehouse's table, in order of their ids, and what is not known.

    `lines` are the four headings and their rows; empty lines give an empty table.
    Raises DumpError.
    """
    tables = _frame_tables(lines)
    files = _names_by_id(tables["FileNames"])
    functions = _names_by_id(tables["FunctionNames"])
    locations, newer = _locations(tables["FileLocations"])
    frames = tables["StackFrames"]
    found = frames.extract(_FRAME, "a stack frame")
    ids = frames.integers(found["id"])
    at = pc.index_in(frames.integers(found["location"]), value_set=locations["id"])
    if at.null_count:
        frames.refuse(pc.is_null(at).to_numpy(zero_copy_only=False), "no such file location")
    location = {name: column.take(at) for name, column in locations.items()}

    def name_of(names: dict[str, pa.Array], numbers: pa.Array) -> pa.Array:
        return names["name"].take(pc.index_in(numbers, value_set=names["id"]))

    newer += _newer_attributes(frames, found["newer"])
    table = pa.table(
        {
            "stack_frame_id": ids,
            "parent_frame_id": _parents(frames.integers(found["parent"]), ids),
            "file": name_of(files, location["file"]),
            "function": name_of(functions, location["function"]),
            "line": location["line"],
            "end_line": location["end_line"],
            "column_start": location["column_start"],
            "column_end": location["column_end"],
        }
    )
    return table, newer


def _newer_attributes(lines: Lines, texts: pa.Array) -> NotUnderstoods:
    """The attributes of a frame or a location that are not known."""
    names = pc.replace_substring_regex(texts, pattern="=[^ ]*", replacement="")
    return newer_words(lines, pc.utf8_ltrim(names, " "), "attribute of a stack frame")


def with_sources(instructions: pa.Table, frames: pa.Table) -> pa.Table:
    """Take file and line from the innermost frame if the metadata has none."""
    at = pc.index_in(
        instructions["stack_frame_id"], value_set=frames["stack_frame_id"].combine_chunks()
    )
    for column, of_frame in (("source_file", "file"), ("source_line", "line")):
        filled = pc.coalesce(instructions[column], frames[of_frame].take(at))
        at_column = instructions.schema.get_field_index(column)
        instructions = instructions.set_column(at_column, column, filled)
    return instructions


def _frame_tables(lines: Lines) -> dict[str, Lines]:
    """The rows under each heading."""
    at = {name: lines.equal(name).nonzero()[0] for name in FRAME_TABLES}
    if not len(lines):
        return dict.fromkeys(FRAME_TABLES, lines)
    missing = [name for name in FRAME_TABLES if len(at[name]) != 1]
    if missing:
        raise DumpError(
            f"the stack frame table {missing[0]} is missing or repeated", int(lines.numbers[0])
        )
    starts = sorted((int(found[0]), name) for name, found in at.items())
    stops = [start for start, _ in starts[1:]] + [len(lines)]
    return {
        name: lines.between(start + 1, stop)
        for (start, name), stop in zip(starts, stops, strict=True)
    }


def _names_by_id(lines: Lines) -> dict[str, pa.Array]:
    found = lines.extract(_ROW_NAME, "a number and a quoted name")
    return {"id": lines.integers(found["id"]), "name": found["name"]}


def _locations(lines: Lines) -> tuple[dict[str, pa.Array], NotUnderstoods]:
    found = lines.extract(_LOCATION, "a file location")
    newer = _newer_attributes(lines, found.pop("newer"))
    return {name: lines.integers(texts) for name, texts in found.items()}, newer


def _parents(parents: pa.Int32Array, ids: pa.Int32Array) -> pa.Int32Array:
    """Parent ids, null at a root.

    Some versions of XLA print ids one too high: 1 means a root, and frame 1 seems to be its
    own parent (`tpu/llama-v5e`). Other versions print 0 for a root. Frame 1 shows which.
    """
    first = parents.filter(pc.equal(ids, 1))
    if len(first) and first[0].as_py() == 1:
        parents = pc.subtract(parents, pa.scalar(1, pa.int32()))
    null = pa.scalar(None, pa.int32())
    return pc.if_else(pc.equal(parents, 0), null, parents)
