"""Reader of instruction lines, as HLO text and Used values print them.

`[ROOT ][%]NAME = SHAPE opcode(operands), attributes`

Such lines are about half of a dump, and most of a line is never needed. Therefore one pass
finds the spaces, which delimit the parts of all lines at once.
"""

import codecs
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..limits import LARGEST_SIZE
from .backend_configs import placed, scoped_bytes
from .lines import Bytes, Lines, Mask, Positions, as_numpy, positions_of, slices

_PREFIXES = ("", "  ", "ROOT ", "  ROOT ")
_OPCODE = r"^[a-z][a-z0-9\-]*$"
# Longer than any opcode of XLA; limits the search for the parenthesis after an opcode.
_LONGEST_OPCODE = 64
_QUOTED = r'"(?P<text>(?:[^"\\]|\\.)*)"'
# Few instructions have a long backend_config, but these make up most of the text.
_METADATA = r'^\{(?P<text>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\}'


@dataclass(frozen=True)
class InstructionLines:
    """Instruction lines, split into parts but not yet read.

    `names`, `shapes` and `opcodes` are texts, one row a line. `operands` is the position in
    the file's bytes after the parenthesis that opens each line's operands. `spaces` is the
    positions of all spaces in the lines.
    """

    lines: Lines
    names: pa.LargeStringArray
    shapes: pa.LargeStringArray
    opcodes: pa.DictionaryArray
    operands: Positions
    spaces: Positions

    def has_opcode(self, opcodes: list[str]) -> Mask:
        """Which lines have one of these opcodes."""
        chosen = pc.is_in(self.opcodes.dictionary, value_set=pa.array(opcodes, pa.large_string()))
        has: Mask = as_numpy(chosen)[self.opcodes.indices.to_numpy()]
        return has

    def attribute(self, name: str) -> tuple[Positions, Positions]:
        """The indices of the lines with `, NAME=`, and the positions of its values."""
        content = self.lines.content
        wanted = f"{name}=".encode()
        found = self._commas[self._after_commas == wanted[0]]
        found = found[found < len(content) - len(wanted)]
        # A name does not contain a line end, so a match never spans two lines.
        for offset, byte in enumerate(wanted[1:], start=2):
            found = found[content[found + offset] == byte]
        owner = np.searchsorted(self.lines.starts, found, side="right") - 1
        # Text in quotes, for example in frontend_attributes, is not an attribute.
        quotes = np.searchsorted(self._quotes, found)
        quotes -= np.searchsorted(self._quotes, self.operands[owner])
        found, owner = found[quotes % 2 == 0], owner[quotes % 2 == 0]
        rows, first = np.unique(owner, return_index=True)
        return rows, found[first] + len(name) + 2

    @cached_property
    def _commas(self) -> Positions:
        """The spaces after a comma that follows the parenthesis of the operands."""
        found = self.spaces[self.lines.content[self.spaces - 1] == ord(",")]
        owner = np.searchsorted(self.lines.starts, found, side="right") - 1
        behind = (found > self.operands[owner]) & (found < self.lines.ends[owner])
        commas: Positions = found[behind]
        return commas

    @cached_property
    def _quotes(self) -> Positions:
        """The quotes without a backslash before them."""
        found = positions_of('"', self.lines.content)
        plain: Positions = found[self.lines.content[found - 1] != ord("\\")]
        return plain

    @cached_property
    def _after_commas(self) -> Bytes:
        return self.lines.content[self._commas + 1]


def split_instructions(lines: Lines) -> InstructionLines:
    """Split instruction lines into parts. Raises DumpError at the first invalid line."""
    content, starts, ends = lines.content, lines.starts, lines.ends
    extent = slice(starts[0], ends[-1]) if len(lines) else slice(0, 0)
    spaces = positions_of(" ", content[extent]) + (extent.start or 0)
    beyond = len(content)

    def first_from(candidates: Positions, at: Positions) -> Positions:
        """The first candidate at or after each position."""
        return np.append(candidates, beyond)[np.searchsorted(candidates, at)]

    # NAME = SHAPE: the first ` = ` of the line.
    followed = spaces[spaces < beyond - 2]
    equals = followed[(content[followed + 1] == ord("=")) & (content[followed + 2] == ord(" "))]
    name_end = first_from(equals, starts)
    shape_start = name_end + 3
    _check(lines, shape_start < ends)
    name_start = np.append(-1, spaces)[np.searchsorted(spaces, name_end)] + 1
    name_start = np.maximum(name_start, starts)
    prefixes = slices(content, starts, name_start)
    _check(lines, as_numpy(pc.is_in(prefixes, value_set=pa.array(_PREFIXES, prefixes.type))))
    name_start = name_start + (content[name_start] == ord("%"))
    _check(lines, name_start < name_end)
    # An array's shape has no spaces and ends at the first space; a tuple's ends at the first `) `.
    is_tuple = content[shape_start] == ord("(")
    closing = spaces[content[spaces - 1] == ord(")")]
    shape_end = first_from(spaces, shape_start)
    shape_end[is_tuple] = first_from(closing, shape_start[is_tuple])
    _check(lines, (shape_start < shape_end) & (shape_end < ends))
    opcode_start = shape_end + 1
    room = slices(content, opcode_start, np.minimum(opcode_start + _LONGEST_OPCODE, ends))
    opcode_end = opcode_start + pc.find_substring(room, "(").to_numpy()
    _check(lines, opcode_start < opcode_end)
    opcodes = slices(content, opcode_start, opcode_end).dictionary_encode()
    valid = as_numpy(pc.match_substring_regex(opcodes.dictionary, _OPCODE))
    _check(lines, valid[opcodes.indices.to_numpy()])
    return InstructionLines(
        lines,
        names=slices(content, name_start, name_end),
        shapes=slices(content, shape_start, shape_end),
        opcodes=opcodes,
        operands=opcode_end + 1,
        spaces=spaces,
    )


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
    rows, starts = instructions.attribute("metadata")
    # Many instructions share the same metadata, so each distinct text is read once.
    rest = slices(lines.content, starts, lines.ends[rows])
    metadata = _metadata(lines.where(rows), rest).dictionary_encode()
    distinct = metadata.dictionary
    _, first = np.unique(metadata.indices.to_numpy(), return_index=True)
    stands = np.zeros(len(lines), bool)
    stands[rows[first]] = True
    at = placed(metadata.indices, rows, len(lines))

    firsts = lines.where(stands)

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
            "custom_call_target": _custom_call_targets(instructions),
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


def _custom_call_targets(instructions: InstructionLines) -> pa.LargeStringArray:
    lines = instructions.lines
    rows, starts = instructions.attribute("custom_call_target")
    return placed(
        _quoted(lines.where(rows), slices(lines.content, starts, lines.ends[rows]), "^"),
        rows,
        len(lines),
    )


def _scoped_bytes(instructions: InstructionLines) -> pa.Int64Array:
    """The bytes that a kernel reserves, summed over the memory spaces; null if not said."""
    lines = instructions.lines
    rows, starts = instructions.attribute("backend_config")
    found = scoped_bytes(slices(lines.content, starts, lines.ends[rows]))
    wrong = as_numpy(pc.fill_null(pc.greater(found, LARGEST_SIZE), False))
    if wrong.any():
        lines.where(rows).refuse(wrong, f"a number is over {LARGEST_SIZE}")
    return placed(found, rows, len(lines))
