"""Reader of HLO text: the header, computations, instructions and stack frames."""

import re
import string

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.dataflow import KNOWN_OPCODES
from ...xla.errors import DumpError
from ...xla.parts import HloText, NotUnderstoods
from .attributes import program_columns, read_attributes, read_once
from .entry_parameters import read_entry_parameters
from .entry_shapes import entry_shapes
from .instructions import InstructionLines, read_instructions, split_instructions
from .lines import Lines, Mask, as_numpy, excerpt, slices
from .newer_text import newer_words, without_newer_tables
from .operand_names import read_operands
from .stack_frames import FRAME_TABLES, read_stack_frames, with_sources
from .tuple_elements import written_out

# To cut a name out of a whole long line takes five times as long as to check the line.
_COMPUTATION_NAME = r"^(?P<entry>ENTRY )?%?(?P<computation>[^ (][^ ]*) "
_COMPUTATION = r"^(?:ENTRY )?%?[^ (][^ ]* (?:\(.*\) -> .* )?\{$"
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


def read_hlo_text(lines: Lines) -> HloText:
    """Read a module's HLO text. Raises DumpError."""
    header = _header(lines)
    body, marks, newer = _marked(lines.between(1, len(lines)))
    is_open, is_close, is_instruction, is_frame = marks
    _check_braces(body, is_open, is_close, is_instruction)

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
            int(lines.numbers[-1]),
        )
    instructions = split_instructions(body.where(is_instruction))
    operands = read_operands(instructions)
    whole = written_out(lines, instructions, operands)
    if whole is not lines:
        return read_hlo_text(whole)
    owner = (np.cumsum(is_open) - 1)[is_instruction]
    signature = header["entry_signature"]
    frames, newer_frames = read_stack_frames(body.where(is_frame))
    table = with_sources(read_instructions(instructions), frames)
    in_entry = as_numpy(computations["is_entry"])[owner]
    parameters = read_entry_parameters(instructions, table["op_name"], in_entry)
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
    )


_Marks = tuple[Mask, Mask, Mask, Mask]


def _marked(body: Lines) -> tuple[Lines, _Marks, NotUnderstoods]:
    """The lines below the header, which of them open a computation, close one, are
    instructions or are of the stack frames, and the tables that were passed over.
    """
    is_instruction = body.starting("  ")
    is_close = body.starting("}")
    is_open = body.ending("{") & ~is_instruction
    is_frame_row = np.logical_or.reduce([body.starting(digit) for digit in string.digits])
    is_frame_table = np.logical_or.reduce([body.equal(name) for name in FRAME_TABLES])
    is_frame = is_frame_row | is_frame_table
    other = ~(is_instruction | is_close | is_open | is_frame | body.equal(""))
    if not other.any():
        return body, (is_open, is_close, is_instruction, is_frame), ()
    known, newer = without_newer_tables(body, is_open, is_close, is_frame_table, other)
    if len(known) == len(body):
        body.refuse(other, "expected a computation or an instruction")
    found, marks, more = _marked(known)
    return found, marks, newer + more


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


def _check_braces(body: Lines, *marks: Mask) -> None:
    """Raise DumpError unless every computation closes and holds all instructions."""
    is_open, is_close, is_instruction = marks
    depth = np.cumsum(is_open.astype(np.int64) - is_close)
    wrong = (depth < 0) | (depth > 1) | (is_instruction & (depth != 1))
    if wrong.any():
        body.refuse(wrong, "expected an instruction of an open computation")
    if len(depth) and depth[-1]:
        raise DumpError(
            "the text ends within a computation: it is cut short, dump it again",
            int(body.numbers[-1]),
        )


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
