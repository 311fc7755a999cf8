"""Reader of instruction lines, as HLO text and Used values print them.

`[ROOT ][%]NAME = SHAPE opcode(operands), attributes`

Such lines are about half of a dump, and most of a line is never needed. Therefore one pass
finds the spaces, which delimit the parts of all lines at once.

XLA may or may not print the operands' types and `%`. Without types, as in most dumps, the
commas tell where each name is; otherwise regular expressions cut the types out.
"""

import codecs
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.limits import LARGEST_SIZE
from .backend_configs import placed, scoped_bytes
from .lines import (
    Bytes,
    Lines,
    Mask,
    Positions,
    Words,
    as_numpy,
    positions_of,
    slices,
    standing,
    words,
)

# Beside none.
_PREFIXES = (b"  ", b"ROOT ", b"  ROOT ")
_OPCODE = r"^[a-z][a-z0-9\-]*$"
# Longer than any opcode of XLA; limits the search for the parenthesis after an opcode.
_LONGEST_OPCODE = 64
_QUOTED = r'"(?P<text>(?:[^"\\]|\\.)*)"'
# Few instructions have a long backend_config, but these make up most of the text.
_METADATA = r'^\{(?P<text>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\}'

# Typed operands have parentheses in tiles and tuple shapes: `(f32[4]{0:T(128)}, u32[]) %x`.
_WITHIN = r"[^()]*"
for _ in range(8):
    _WITHIN = rf"(?:[^()]|\({_WITHIN}\))*"
_OPERANDS = rf"^(?P<operands>{_WITHIN})\)"
_NO_OPERANDS = ["parameter", "constant"]
# XLA numbers every fifth operand: `/*index=5*/%name`. Longer than any such comment.
_LONGEST_COMMENT = 24


@dataclass(frozen=True)
class InstructionLines:
    """Instruction lines, split into parts but not yet read.

    `names`, `shapes` and `opcodes` are texts, one row a line. `operands` is the position in
    the file's bytes after the parenthesis that opens each line's operands. `commas` is the
    positions of the spaces after the commas behind it, outside of quotes, and `comma_rows` the
    index of each one's line.
    """

    lines: Lines
    names: pa.LargeStringArray
    shapes: pa.LargeStringArray
    opcodes: pa.DictionaryArray
    operands: Positions
    commas: Positions
    comma_rows: Positions

    def has_opcode(self, opcodes: list[str]) -> Mask:
        """Which lines have one of these opcodes."""
        chosen = pc.is_in(self.opcodes.dictionary, value_set=pa.array(opcodes, pa.large_string()))
        has: Mask = as_numpy(chosen)[self.opcodes.indices.to_numpy()]
        return has

    def attribute(self, name: str) -> tuple[Positions, Positions]:
        """The indices of the lines with `, NAME=`, and the positions of its values."""
        # A name does not contain a line end, so a match never spans two lines.
        wanted = f"{name}=".encode()
        found = np.flatnonzero(
            standing(self.lines.content, self.commas + 1, wanted, self._after_commas)
        )
        rows = self.comma_rows[found]
        is_first = np.append(True, rows[1:] != rows[:-1])[: len(rows)]
        return rows[is_first], self.commas[found[is_first]] + 1 + len(wanted)

    @cached_property
    def _after_commas(self) -> Words:
        return words(self.lines.content, self.commas + 1)

    @cached_property
    def metadata(self) -> tuple[Positions, pa.DictionaryArray]:
        """The indices of the lines with metadata, and the text from it to the next attribute.

        Many instructions share the same metadata, so each distinct text is read once.
        """
        rows, starts = self.attribute("metadata")
        content, ends = self.lines.content, self.lines.ends[rows]
        after = np.append(self.commas, len(content))
        stops = np.minimum(after[np.searchsorted(self.commas, starts)] - 1, ends)
        found = slices(content, starts, stops).dictionary_encode()
        if not pc.all(pc.ends_with(found.dictionary, "}")).as_py():
            # There is a comma within the metadata.
            found = slices(content, starts, ends).dictionary_encode()
        return rows, found

    @cached_property
    def backend_configs(self) -> tuple[Positions, pa.DictionaryArray]:
        """The indices of the lines with a backend_config, and the line's text from there.

        These are a quarter of the text of some modules, but few are distinct.
        """
        rows, starts = self.attribute("backend_config")
        texts = slices(self.lines.content, starts, self.lines.ends[rows])
        return rows, texts.dictionary_encode()

    @cached_property
    def custom_call_targets(self) -> pa.LargeStringArray:
        """What each custom call calls; null in all other lines. Raises DumpError."""
        lines = self.lines
        rows, starts = self.attribute("custom_call_target")
        texts = slices(lines.content, starts, lines.ends[rows])
        return placed(_quoted(lines.where(rows), texts, "^"), rows, len(lines))


def split_instructions(lines: Lines) -> InstructionLines:
    """Split instruction lines into parts. Raises DumpError at the first invalid line."""
    content, starts, ends = lines.content, lines.starts, lines.ends
    extent = slice(starts[0], ends[-1]) if len(lines) else slice(0, 0)
    spaces = positions_of(" ", content[extent]) + (extent.start or 0)

    # NAME = SHAPE: the first ` = ` of the line.
    equals = np.flatnonzero(content[np.minimum(spaces + 1, len(content) - 1)] == ord("="))
    equals = equals[standing(content, spaces[equals], b" = ")]
    at = np.append(equals, len(spaces))[np.searchsorted(spaces[equals], starts)]
    # Three more, so that there is a space behind every one.
    spaces = np.append(spaces, np.full(3, len(content)))
    name_end = spaces[at]
    shape_start = name_end + 3
    _check(lines, shape_start < ends)
    name_start = np.maximum(np.where(at > 0, spaces[at - 1], -1) + 1, starts)
    _check(lines, _has_prefix(content, starts, name_start))
    name_start = name_start + (content[name_start] == ord("%"))
    _check(lines, name_start < name_end)
    # An array's shape has no spaces and ends at the first space; a tuple's ends at the first `) `.
    shape_end = spaces[at + 2]
    is_tuple = content[shape_start] == ord("(")
    closing = spaces[:-3][content[spaces[:-3] - 1] == ord(")")]
    shape_end[is_tuple] = _first_from(closing, shape_start[is_tuple], len(content))
    _check(lines, (shape_start < shape_end) & (shape_end < ends))
    opcode_start = shape_end + 1
    room = slices(content, opcode_start, np.minimum(opcode_start + _LONGEST_OPCODE, ends))
    opcode_end = opcode_start + pc.find_substring(room, "(").to_numpy()
    _check(lines, opcode_start < opcode_end)
    opcodes = slices(content, opcode_start, opcode_end).dictionary_encode()
    valid = as_numpy(pc.match_substring_regex(opcodes.dictionary, _OPCODE))
    _check(lines, valid[opcodes.indices.to_numpy()])
    operands = opcode_end + 1
    commas, comma_rows = _commas(lines, operands, spaces[:-3])
    return InstructionLines(
        lines,
        names=slices(content, name_start, name_end),
        shapes=slices(content, shape_start, shape_end),
        opcodes=opcodes,
        operands=operands,
        commas=commas,
        comma_rows=comma_rows,
    )


def _first_from(candidates: Positions, at: Positions, beyond: int) -> Positions:
    """The first candidate at or after each position, or `beyond`."""
    return np.append(candidates, beyond)[np.searchsorted(candidates, at)]


def _has_prefix(content: Bytes, starts: Positions, name_starts: Positions) -> Mask:
    """Whether each line has one of the known prefixes before its name."""
    lengths, first = name_starts - starts, words(content, starts)
    has: Mask = lengths == 0
    for prefix in _PREFIXES:
        has |= (lengths == len(prefix)) & standing(content, starts, prefix, first)
    return has


def _commas(lines: Lines, operands: Positions, spaces: Positions) -> tuple[Positions, Positions]:
    """`commas` and `comma_rows` of InstructionLines."""
    content = lines.content
    found = spaces[content[spaces - 1] == ord(",")]
    rows = np.searchsorted(lines.starts, found, side="right") - 1
    behind = (found > operands[rows]) & (found < lines.ends[rows])
    found, rows = found[behind], rows[behind]
    # Text in quotes, for example in frontend_attributes, is not an attribute.
    quotes = positions_of('"', content)
    quotes = quotes[~_is_escaped(content, quotes)]
    first = np.searchsorted(quotes, operands)
    outside = np.ones(len(found), bool)
    # Most commas precede the line's first quote.
    late = np.flatnonzero(found > np.append(quotes, len(content))[first][rows])
    outside[late] = (np.searchsorted(quotes, found[late]) - first[rows[late]]) % 2 == 0
    return found[outside], rows[outside]


def _is_escaped(content: Bytes, at: Positions) -> Mask:
    """Which positions stand after an odd number of backslashes."""
    is_escaped: Mask = content[at - 1] == ord("\\")
    several = np.flatnonzero(is_escaped)
    several = several[content[at[several] - 2] == ord("\\")]
    if len(several):
        backslashes = positions_of("\\", content)
        runs = backslashes[np.append(True, np.diff(backslashes) > 1)]
        first = runs[np.searchsorted(runs, at[several]) - 1]
        is_escaped[several] = (at[several] - first) % 2 == 1
    return is_escaped


def _check(lines: Lines, right: Mask) -> None:
    if not right.all():
        lines.refuse(~right, "expected an instruction")


def read_instructions(instructions: InstructionLines) -> pa.Table:
    """The instructions, one row a line.

    Columns: instruction, opcode, shape, op_name, source_file, source_line, stack_frame_id,
    custom_call_target, scoped_bytes as in the warehouse's table. Missing values are
    null. Raises DumpError.
    """
    lines = instructions.lines
    rows, metadata = instructions.metadata
    _, first = np.unique(metadata.indices.to_numpy(), return_index=True)
    stands = np.zeros(len(lines), bool)
    stands[rows[first]] = True
    at = placed(metadata.indices, rows, len(lines))

    firsts = lines.where(stands)
    distinct = _metadata(firsts, metadata.dictionary)

    def number(attribute: str) -> pa.Array:
        found = pc.extract_regex(distinct, pattern=rf"\b{attribute}=(?P<number>\d+)")
        return firsts.integers(found.field("number")).take(at)

    return pa.table(
        {
            "instruction": instructions.names,
            "opcode": instructions.opcodes.cast(pa.large_string()),
            "shape": instructions.shapes,
            "op_name": _quoted(firsts, distinct, r"\bop_name=").take(at),
            "source_file": _quoted(firsts, distinct, r"\bsource_file=").take(at),
            "source_line": number("source_line"),
            "stack_frame_id": number("stack_frame_id"),
            "custom_call_target": instructions.custom_call_targets,
            "scoped_bytes": _scoped_bytes(instructions),
        }
    )


def _metadata(lines: Lines, rest: pa.LargeStringArray) -> pa.LargeStringArray:
    """The text between the braces at the start of each `rest`; row k is of line k.

    Raises DumpError.
    """
    end = pc.find_substring(rest, "}").to_numpy()
    if (end < 0).any():
        lines.refuse(end < 0, "the metadata does not close")
    _, offsets, content = rest.buffers()
    starts = np.frombuffer(offsets, np.int64)[: len(rest)]
    found = slices(np.frombuffer(content or b"", np.uint8), starts, starts + end)
    # A brace within quotes does not end the metadata.
    cut = pc.or_(
        pc.not_equal(pc.bit_wise_and(pc.count_substring(found, '"'), 1), 0),
        pc.match_substring(found, "\\"),
    )
    if not pc.any(cut).as_py():
        return found
    whole = pc.struct_field(pc.extract_regex(rest.filter(cut), pattern=_METADATA), "text")
    return pc.replace_with_mask(found, cut, pc.fill_null(whole, ""))


def _quoted(lines: Lines, text: pa.LargeStringArray, before: str) -> pa.LargeStringArray:
    """The quoted text after `before`, with C escapes undone; null if there is none.

    Row k of `text` is of line k. Raises DumpError.
    """
    # struct_field, not .field(): only struct_field returns null for rows that do not match.
    text = pc.struct_field(pc.extract_regex(text, pattern=before + _QUOTED), "text")
    if not pc.any(pc.match_substring(text, pattern="\\")).as_py():
        return text
    if pc.any(pc.match_substring_regex(text, pattern=r"\\[0-7nrt]")).as_py():
        # Mostly bytes outside of ASCII.
        plain = pa.array(list(map(_unescaped, text.to_pylist())), text.type)
        wrong = as_numpy(pc.and_(pc.is_valid(text), pc.is_null(plain)))
        if wrong.any():
            lines.refuse(wrong, "a backslash in quotes is not a C escape")
        return plain
    return pc.replace_substring_regex(text, pattern=r"\\(.)", replacement=r"\1")


def _unescaped(text: str | None) -> str | None:
    """The text with C escapes undone: `gr\\303\\266\\303\\237e` is größe. None if invalid."""
    if text is None:
        return None
    try:
        plain: bytes = codecs.escape_decode(text.encode())[0]
    except ValueError:
        return None
    return plain.decode(errors="replace")


def _scoped_bytes(instructions: InstructionLines) -> pa.Int64Array:
    """The bytes that a kernel reserves, summed over the memory spaces; null if not said."""
    lines = instructions.lines
    rows, configs = instructions.backend_configs
    found = scoped_bytes(configs.dictionary).take(configs.indices)
    wrong = as_numpy(pc.fill_null(pc.greater(found, LARGEST_SIZE), False))
    if wrong.any():
        lines.where(rows).refuse(wrong, f"a number is over {LARGEST_SIZE}")
    return placed(found, rows, len(lines))


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
