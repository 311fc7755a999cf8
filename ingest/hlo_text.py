"""Reader of HLO text: the header, the computations, every instruction, the stack frames."""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .entry_shapes import entry_shapes
from .instructions import read_instructions
from .lines import DumpError, Lines, as_numpy, excerpt
from .stack_frames import FRAME_TABLES, read_stack_frames

_COMPUTATION = r"^(?P<entry>ENTRY )?%?(?P<computation>[^ ]+) (?:\(.*\) -> .* )?\{$"
_HEADER_NAME = re.compile(r"^HloModule ([^ ,]+)")
# Attributes by which an instruction calls computations; the last two name several.
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
# Typed operands hold parentheses of tiles and of tuple shapes: `(f32[4]{0:T(128)}, u32[]) %x`.
_OPERANDS = r"^(?P<operands>(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)"
_NO_OPERANDS = ["parameter", "constant"]


@dataclass(frozen=True)
class HloText:
    """A module's HLO text as columns, in the text's order.

    header: columns of `modules`; computations: computation, is_entry; instructions: those
    of `read_instructions` but for `rest`, and computation; operands: instruction,
    operand_number, operand; calls: instruction, attribute, computation; stack_frames as in
    the warehouse's table; entry_shapes likewise, None if the text has no signature.
    """

    header: dict[str, object]
    computations: pa.Table
    instructions: pa.Table
    operands: pa.Table
    calls: pa.Table
    stack_frames: pa.Table
    entry_shapes: pa.Table | None


def read_hlo_text(lines: Lines) -> HloText:
    """Read a module printed as text. Raises DumpError."""
    header = _header(lines)
    body = lines.between(1, len(lines))
    is_instruction = body.starting("  ")
    is_close = body.starting("}")
    is_open = body.ending("{") & ~is_instruction
    is_frame_row = as_numpy(pc.match_substring_regex(body.raw, pattern=r"^\d"))
    is_frame_table = np.logical_or.reduce([body.equal(name) for name in FRAME_TABLES])
    other = ~(is_instruction | is_close | is_open | is_frame_row | is_frame_table | body.equal(""))
    if other.any():
        body.refuse(other, "expected a computation or an instruction")
    _check_braces(body, is_open, is_close, is_instruction)

    opened = body.where(is_open).extract(_COMPUTATION, "a computation")
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
    instructions = read_instructions(body.where(is_instruction))
    owner = pa.array((np.cumsum(is_open) - 1)[is_instruction])
    signature = header["entry_signature"]
    frames = read_stack_frames(body.where(is_frame_row | is_frame_table))
    return HloText(
        header=header,
        computations=computations,
        instructions=_with_sources(instructions, frames)
        .drop_columns("rest")
        .append_column("computation", computations["computation"].take(owner)),
        operands=_operands(instructions),
        calls=_calls(instructions, computations["computation"].combine_chunks()),
        stack_frames=frames,
        entry_shapes=entry_shapes(str(signature)) if signature is not None else None,
    )


def header_name(text: str) -> str | None:
    """The module's name by HLO text's first line, None if this is no HLO text."""
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
        "num_partitions": _count(text, "num_partitions"),
        "replica_count": _count(text, "replica_count"),
    }


def _braced(text: str, attribute: str) -> str | None:
    """What stands between an attribute's braces, None if it is not there."""
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
    """XLA prints partitions and replicas only if there is more than one."""
    found = re.search(rf", {attribute}=(\d{{1,9}})\b", text)
    return int(found[1]) if found else 1


def _check_braces(body: Lines, *marks: npt.NDArray[np.bool_]) -> None:
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


def _with_sources(instructions: pa.Table, frames: pa.Table) -> pa.Table:
    """Fill file and line from the innermost frame where the metadata has none."""
    at = pc.index_in(
        instructions["stack_frame_id"], value_set=frames["stack_frame_id"].combine_chunks()
    )
    for column, of_frame in (("source_file", "file"), ("source_line", "line")):
        filled = pc.coalesce(instructions[column], frames[of_frame].take(at))
        at_column = instructions.schema.get_field_index(column)
        instructions = instructions.set_column(at_column, column, filled)
    return instructions


def _operands(instructions: pa.Table) -> pa.Table:
    """Each operand by name, whether XLA printed the operands' types and `%` or not."""
    has_some = pc.invert(
        pc.or_(
            pc.is_in(instructions["opcode"], value_set=pa.array(_NO_OPERANDS, pa.large_string())),
            pc.starts_with(instructions["rest"], pattern=")"),
        )
    )
    chosen = instructions.filter(has_some)
    # Ordinary operands are names and end at the first parenthesis: only types hold others.
    text = pc.extract_regex(chosen["rest"], pattern=r"^(?P<operands>[^()]*)\)").combine_chunks()
    typed = pc.is_null(text)
    text = text.field("operands")
    if pc.any(typed).as_py():
        whole = pc.extract_regex(chosen["rest"].filter(typed), pattern=_OPERANDS)
        text = pc.replace_with_mask(text, typed, whole.combine_chunks().field("operands"))
    has_percent = pc.fill_null(pc.match_substring(text, pattern="%"), False)
    # `f32[2]{0} %a, /*index=5*/f32[2]{0} %b` and `%a, %b` become `a, b`.
    bare = pc.replace_substring_regex(text, pattern=r"[^%]*%([^ ,)%]+)[^%]*", replacement=r"\1, ")
    plain = pc.replace_substring_regex(text, pattern=r"/\*index=\d+\*/", replacement="")
    names = pc.split_pattern(
        pc.utf8_rtrim(pc.if_else(has_percent, bare, plain), ", "), pattern=", "
    )
    count = pc.fill_null(pc.list_value_length(names), 0).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(count)), count)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return pa.table(
        {
            "instruction": chosen["instruction"].take(pa.array(owner)),
            "operand_number": pa.array(number, pa.int32()),
            "operand": names.flatten(),
        }
    )


def _calls(instructions: pa.Table, computations: pa.LargeStringArray) -> pa.Table:
    """Which computations each instruction calls, and as what."""
    any_call = "|".join((*_CALLS, *_CALL_LISTS))
    callers = instructions.filter(
        pc.match_substring_regex(instructions["rest"], pattern=f", (?:{any_call})=")
    )
    tables = []
    for attribute in (*_CALLS, *_CALL_LISTS):
        calling = callers.filter(pc.match_substring(callers["rest"], pattern=f", {attribute}="))
        if not len(calling):
            continue
        value = r"\{(?P<names>[^}]*)\}" if attribute in _CALL_LISTS else r"(?P<names>[^ ,]+)"
        found = pc.extract_regex(calling["rest"], pattern=f", {attribute}={value}")
        names = pc.replace_substring(pc.struct_field(found, "names"), pattern="%", replacement="")
        lists = pc.split_pattern(pc.fill_null(names, ""), pattern=", ").combine_chunks()
        count = pc.list_value_length(lists).to_numpy()
        tables.append(
            pa.table(
                {
                    "instruction": calling["instruction"].take(
                        pa.array(np.repeat(np.arange(len(count)), count))
                    ),
                    "attribute": pa.repeat(pa.scalar(attribute), int(count.sum())),
                    "computation": lists.flatten(),
                }
            )
        )
    if not tables:
        return pa.table(
            {
                name: pa.array([], pa.large_string())
                for name in ("instruction", "attribute", "computation")
            }
        )
    calls = pa.concat_tables(tables)
    # An op_name may hold the like of `select=`: only what names a computation is a call.
    return calls.filter(pc.is_in(calls["computation"], value_set=computations))
