"""Reader of the operands' names in instruction lines.

XLA may or may not print the operands' types and `%`. Without types, as in most dumps, the
commas tell where each name is; otherwise regular expressions cut the types out.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .instructions import InstructionLines
from .lines import Bytes, Mask, Positions, as_numpy, slices

# Typed operands have parentheses in tiles and tuple shapes: `(f32[4]{0:T(128)}, u32[]) %x`.
_WITHIN = r"[^()]*"
for _ in range(8):
    _WITHIN = rf"(?:[^()]|\({_WITHIN}\))*"
_OPERANDS = rf"^(?P<operands>{_WITHIN})\)"
_NO_OPERANDS = ["parameter", "constant"]
# XLA numbers every fifth operand: `/*index=5*/%name`. Longer than any such comment.
_LONGEST_COMMENT = 24


class _Names(NamedTuple):
    """Operands' names, and the index of the line that each is in, in order of the lines."""

    texts: pa.LargeStringArray
    rows: Positions


def read_operands(instructions: InstructionLines) -> pa.Table:
    """Each operand by name: instruction, operand_number, operand. Raises DumpError."""
    lines = instructions.lines
    has_some = ~instructions.has_opcode(_NO_OPERANDS)
    has_some &= lines.content[instructions.operands] != ord(")")
    found, is_other = _plain_names(instructions, has_some)
    if is_other.any():
        found = _joined(found, _other_names(instructions, np.flatnonzero(is_other)))
    count = np.bincount(found.rows, minlength=len(lines))
    number = np.arange(len(found.rows)) - np.repeat(np.cumsum(count) - count, count)
    return pa.table(
        {
            "instruction": instructions.names.take(pa.array(found.rows)),
            "operand_number": pa.array(number, pa.int32()),
            "operand": found.texts,
        }
    )


def _joined(some: _Names, others: _Names) -> _Names:
    """The names of both, in order of the lines."""
    rows = np.concatenate([some.rows, others.rows])
    order = np.argsort(rows, kind="stable")
    texts = pa.concat_arrays([some.texts, others.texts])
    return _Names(texts.take(pa.array(order)), rows[order])


def _plain_names(instructions: InstructionLines, chosen: Mask) -> tuple[_Names, Mask]:
    """The names of those chosen lines whose operands all are like `%a` or `/*index=5*/%b`, and
    which chosen lines have others.
    """
    lines, commas, comma_rows = instructions.lines, instructions.commas, instructions.comma_rows
    content = lines.content
    # The parenthesis that closes the operands ends the line, or is the first with `, ` behind it.
    closes = lines.ends - 1
    closing = np.flatnonzero(content[commas - 2] == ord(")"))[::-1]
    closes[comma_rows[closing]] = commas[closing] - 2
    is_other = chosen & (content[closes] != ord(")"))
    rows = np.flatnonzero(chosen & ~is_other)
    closes[~chosen | is_other] = -1
    separates = commas < closes[comma_rows]
    # Both are in order already, so that to sort is to merge.
    starts = np.concatenate([instructions.operands[rows], commas[separates] + 1])
    starts.sort(kind="stable")
    rows = np.concatenate([rows, comma_rows[separates]])
    rows.sort(kind="stable")
    is_last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
    stops = np.append(starts[1:] - 2, 0)[: len(rows)]
    stops[is_last] = closes[rows[is_last]]
    starts += _comment_lengths(content, starts, stops)
    is_other[rows[content[starts] != ord("%")]] = True
    names = _named(content, starts, stops, rows, is_other)
    stray = pc.or_(pc.match_substring(names.texts, ")"), pc.match_substring(names.texts, " "))
    if pc.any(stray).as_py():
        is_other[names.rows[as_numpy(stray)]] = True
        names = _named(content, starts, stops, rows, is_other)
    return names, is_other


def _named(
    content: Bytes, starts: Positions, stops: Positions, rows: Positions, is_other: Mask
) -> _Names:
    """The texts without `%`, except of other lines."""
    kept = np.flatnonzero(~is_other[rows])
    return _Names(slices(content, starts[kept] + 1, stops[kept]), rows[kept])


def _comment_lengths(content: Bytes, starts: Positions, stops: Positions) -> Positions:
    """The length of the comment at each position, 0 where there is none."""
    lengths = np.zeros(len(starts), np.int64)
    at = np.flatnonzero(content[starts] == ord("/"))
    room = slices(content, starts[at], np.minimum(starts[at] + _LONGEST_COMMENT, stops[at]))
    lengths[at] = np.maximum(pc.find_substring(room, "*/%").to_numpy() + 2, 0)
    return lengths


def _other_names(instructions: InstructionLines, rows: Positions) -> _Names:
    """The names of the operands of any other form. Raises DumpError."""
    names = pc.split_pattern(_text_of_names(instructions, rows), pattern=", ")
    count = pc.list_value_length(names).to_numpy()
    return _Names(names.flatten(), np.repeat(rows, count))


def _text_of_names(instructions: InstructionLines, rows: Positions) -> pa.LargeStringArray:
    """The operands of these instructions as `a, b`, whether typed or not. Raises DumpError."""
    lines = instructions.lines
    starts, ends = instructions.operands[rows], lines.ends[rows]
    rest = slices(lines.content, starts, ends)
    close = pc.find_substring(rest, ")").to_numpy()
    text = slices(lines.content, starts, np.where(close < 0, ends, starts + close))
    # Types may hold parentheses. Then the first `)` does not end the operands.
    nested = pc.or_(pa.array(close < 0), pc.match_substring(text, "("))
    if pc.any(nested).as_py():
        whole = pc.struct_field(pc.extract_regex(rest.filter(nested), _OPERANDS), "operands")
        if whole.null_count:
            owner = rows[np.flatnonzero(nested.to_numpy(zero_copy_only=False))]
            lines.where(owner).refuse(as_numpy(pc.is_null(whole)), "the operands do not close")
        text = pc.replace_with_mask(text, nested, whole)
    # An empty tuple `()` is a type without brackets.
    typed = pc.or_(pc.match_substring(text, "["), pc.match_substring(text, ") "))
    if pc.any(typed).as_py():
        # `f32[2]{0} %a, /*index=5*/f32[2]{0} %b` becomes `a, b`.
        some = text.filter(typed)
        bare = pc.if_else(
            pc.match_substring(some, "%"),
            pc.replace_substring_regex(some, r"[^%]*%([^ ,)%]+)[^%]*", r"\1, "),
            # Without `%` a name is the word after the end of a shape.
            pc.replace_substring_regex(some, r".*?[\]})] ([^ ,(){}\[\]]+)(?:, |$)", r"\1, "),
        )
        text = pc.replace_with_mask(text, typed, pc.utf8_rtrim(bare, ", "))
    if pc.any(pc.match_substring(text, "/*")).as_py():
        text = pc.replace_substring_regex(text, pattern=r"/\*index=\d+\*/", replacement="")
    return pc.replace_substring(text, pattern="%", replacement="")
