"""Reader of HLO text: header, computations, instructions, their attributes, stack frames."""

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...schema.arrow import module_rows
from ...xla.columns.bridge_p import kernel_parts
from ...xla.columns.dataflow import KNOWN_OPCODES
from ...xla.columns.parts import HloAttributes, HloText, NotUnderstoods, Unread
from ...xla.errors import LARGEST_ID, LARGEST_SIZE, DumpError
from ...xla.op_names import read_path
from ...xla.runs import starts_of
from ...xla.shapes import Shape, TupleShape, is_shape, logical_bytes, padded_bytes, parse_shape
from .line_columns import (
    Bytes,
    Lines,
    Mask,
    Positions,
    Words,
    as_numpy,
    column_lines,
    divided,
    excerpt,
    newer_words,
    positions_of,
    slices,
    standing,
    with_inserted,
    without_newer_tables,
    words,
)

# Lexer of instructions that are printed over several lines, or damaged.
#
# XLA prints the JSON in `frontend_attributes={kernel_metadata={…}}` of a Pallas kernel with its
# line ends (splash attention, JAX 0.10). Such an instruction ends with the line at whose end all
# braces, brackets, parentheses, quotes and comments are closed.

_Read = TypeVar("_Read")

# Readers check fewer things of a line, and each refuses all lines that are wrong.
_MOST_ROUNDS = 30

# A quote or a comment that does not close reaches to the end of the text, so that a hostile text
# takes no more than linear time.
_TOKEN = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<quote>"?)|/\*(?:[^*]|\*(?!/))*+(?P<comment>(?:\*/)?)'
    rb"|(?P<opening>[({\[])|(?P<closing>[)}\]])|(?P<end>\n)",
    re.DOTALL,
)
_PAIRS = {b"(": b")", b"{": b"}", b"[": b"]"}


def joined_lines(lines: Lines, instructions: Mask, others: Mask) -> Lines:
    """The lines, with each instruction on one line, which has the number of its first line.

    `lines` follow each other in the file. `instructions` are those at which an instruction
    starts, `others` those at which something else does for certain: an instruction that is still
    open there, or at the next instruction, is damaged and stays as it is.
    """
    starts = np.flatnonzero(instructions)
    stops = np.append(np.flatnonzero(instructions | others), len(lines))
    stops = stops[np.searchsorted(stops, starts, side="right")]
    # Most often nothing follows, or a blank line.
    said = np.cumsum(lines.ends > lines.starts)
    goes_on = said[stops - 1] > said[starts]
    is_brace = lines.equal("}")
    content = lines.content.copy()
    kept = np.ones(len(lines), bool)
    ends = lines.ends.copy()
    for start, stop in zip(starts[goes_on].tolist(), stops[goes_on].tolist(), strict=True):
        first, end = int(lines.ends[start]), int(lines.ends[stop - 1])
        end = _end(lines.content.data, int(lines.starts[start]), end) or first
        last = int(np.searchsorted(lines.ends, end))
        if is_brace[last] and last + 1 < stop and not is_brace[last + 1 : stop].any():
            continue  # This brace ends the computation.
        content[lines.ends[start:last]] = ord(" ")
        kept[start + 1 : last + 1] = False
        ends[start] = lines.ends[last]
    return Lines(content, lines.starts[kept], ends[kept], lines.numbers[kept])


def _end(content: memoryview, start: int, stop: int) -> int | None:
    """The end of the line with which the instruction ends, None if it does not end."""
    closing: list[bytes] = []
    for token in _TOKEN.finditer(content, start, stop):
        kind, text = token.lastgroup, token[0]
        if kind == "opening":
            closing.append(_PAIRS[bytes(text)])
        elif kind == "closing":
            if not closing or closing.pop() != text:
                return None
        elif kind == "end":
            if not closing:
                return token.start()
        elif not token[kind or 0]:
            return None
    return None if closing else stop


def read_the_rest(lines: Lines, read: Callable[[Lines], _Read]) -> tuple[_Read, list[DumpError]]:
    """What `read` makes of the lines without those that it refuses, and why it refuses them.

    Raises DumpError if it refuses the whole.
    """
    errors: list[DumpError] = []
    while True:
        try:
            return read(lines), errors
        except DumpError as error:
            errors.append(error)
            if not error.lines or len(errors) > _MOST_ROUNDS:
                raise errors[0] from None
            lines = lines.without(error.lines)


def unread_lines(errors: Sequence[DumpError], read: int, what: str) -> tuple[Unread, ...]:
    """What `read_the_rest` left out, beside `read` instructions that were read."""
    if not errors:
        return ()
    unread = sum(len(set(error.lines)) for error in errors)
    count = f"{unread} of {unread + read} {what} {'are' if unread > 1 else 'is'} not read"
    return (Unread(errors[0].line or 1, f"{count}: {errors[0]}"),)


# What memhouse reads in a backend_config, the JSON that a compiler adds to an instruction.

# The memory reserved for a TPU kernel and, if XLA says so, the memory that the kernel used: in an
# executable's text, while a dump has an empty `used_`.
_SCOPED = (
    r'"scoped_memory_configs":\[(?P<reserved>[^\]]*)\]'
    r'(?:.*?"used_scoped_memory_configs":\[(?P<used>[^\]]*)\])?'
)
_SIZE = re.compile(r'"size":"(\d+)"')
_SPACE = re.compile(r'"memory_space":"(\d{1,9})"')
# The newest TPU compilers' backend_config: which operands and results of an instruction share
# memory. Results count on after the operands, and both by their leaves.
_ALIASING_OPERANDS = '"aliasing_operands":{"lists":['
_ALIASING_LISTS = r"^(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"


class Scoped(NamedTuple):
    """The memory of instructions for themselves, null if not said.

    reserved and used are bytes, summed over the memory spaces; space is that of `reserved`, null if
    there are several. A size of too many digits counts as larger than LARGEST_SIZE.
    """

    reserved: pa.Int64Array
    space: pa.Int32Array
    used: pa.Int64Array

    def take(self, at: pa.Array) -> "Scoped":
        """The memory of the rows `at`."""
        return Scoped(*(column.take(at) for column in self))

    def placed(self, rows: Positions, count: int) -> dict[str, pa.Array]:
        """The columns of `instructions`, with `count` rows and null where not in `rows`."""
        names = ("scoped_bytes", "scoped_space", "used_scoped_bytes")
        columns = (placed(column, rows, count) for column in self)
        return dict(zip(names, columns, strict=True))


def scoped_memory(configs: pa.LargeStringArray) -> Scoped:
    """The memory that backend_configs reserve and use."""
    reserving = pc.match_substring(configs, pattern='scoped_memory_configs":[{')
    rows = np.flatnonzero(reserving.to_numpy(zero_copy_only=False))
    found = pc.extract_regex(configs.take(pa.array(rows)), pattern=_SCOPED)
    # Few texts are distinct, so a Python loop is fast enough.
    reserved, used = (found.field(name).dictionary_encode() for name in ("reserved", "used"))

    def placed_of(
        encoded: pa.DictionaryArray, of: Callable[[str], int | None], type_: pa.DataType
    ) -> pa.Array:
        values = pa.array(map(of, encoded.dictionary.to_pylist()), type_)
        return placed(values.take(encoded.indices), rows, len(configs))

    return Scoped(
        placed_of(reserved, _sum_of_sizes, pa.int64()),
        placed_of(reserved, _one_space, pa.int32()),
        placed_of(used, _sum_of_sizes, pa.int64()),
    )


def aliasing_operands(rows: Positions, configs: pa.LargeStringArray) -> pa.Table:
    """The instructions that record which operands share memory: row, lists.

    `configs` are the backend_configs of the instructions in `rows`.
    """
    at = pc.find_substring(configs, _ALIASING_OPERANDS).to_numpy()
    _, offsets, content = configs.buffers()
    bounds = np.frombuffer(offsets, np.int64)[configs.offset : configs.offset + len(configs) + 1]
    said = np.flatnonzero(at >= 0)
    starts = bounds[said] + at[said] + len(_ALIASING_OPERANDS)
    rest = slices(np.frombuffer(content or b"", np.uint8), starts, bounds[said + 1])
    found = pc.struct_field(pc.extract_regex(rest, pattern=_ALIASING_LISTS), "text")
    return pa.table({"row": rows[said], "lists": pc.fill_null(found, "").dictionary_encode()})


def placed(found: pa.Array, rows: Positions, count: int) -> pa.Array:
    """A column of `count` rows with `found` at the given rows and null elsewhere."""
    at = np.full(count, -1)
    at[rows] = np.arange(len(rows))
    return found.take(pa.array(at, mask=at < 0))


def _sum_of_sizes(configs: str) -> int | None:
    # Python refuses to parse thousands of digits.
    sizes = _SIZE.findall(configs)
    if not sizes:
        return None
    return sum(int(size) if len(size) <= 18 else LARGEST_SIZE + 1 for size in sizes)


def _one_space(configs: str) -> int | None:
    spaces = set(_SPACE.findall(configs))
    return int(spaces.pop()) if len(spaces) == 1 else None


# Reader of instruction lines, as HLO text and Used values print them.
#
# `[ROOT ][%]NAME = SHAPE opcode(operands), attributes`
#
# Such lines are about half of a dump, and most of a line is never needed. Therefore one pass
# finds the spaces, which delimit the parts of all lines at once.
#
# XLA may or may not print the operands' types and `%`. Without types, as in most dumps, the
# commas tell where each name is; otherwise regular expressions cut the types out.

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
        texts, codes = self._opcode_codes
        has: Mask = np.array([text in opcodes for text in texts], bool)[codes]
        return has

    @cached_property
    def _opcode_codes(self) -> tuple[list[str], Positions]:
        return self.opcodes.dictionary.to_pylist(), self.opcodes.indices.to_numpy()

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

    def part(self, start: int, stop: int) -> "InstructionLines":
        """The lines from `start` to `stop`."""
        if stop - start == len(self.lines):
            return self
        first, last = np.searchsorted(self.comma_rows, (start, stop))
        at = pa.array(np.arange(start, stop))
        return InstructionLines(
            self.lines.between(start, stop),
            self.names.take(at),
            self.shapes.take(at),
            self.opcodes.take(at),
            self.operands[start:stop],
            self.commas[first:last],
            self.comma_rows[first:last] - start,
        )

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
    lines = column_lines(lines)
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
            **_scoped(instructions),
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


def _scoped(instructions: InstructionLines) -> dict[str, pa.Array]:
    """The columns of the memory that instructions have for themselves; null if not said."""
    lines = instructions.lines
    rows, configs = instructions.backend_configs
    found = scoped_memory(configs.dictionary).take(configs.indices)
    for column in (found.reserved, found.used):
        wrong = as_numpy(pc.fill_null(pc.greater(column, LARGEST_SIZE), False))
        if wrong.any():
            lines.where(rows).refuse(wrong, f"a number is over {LARGEST_SIZE}")
    return found.placed(rows, len(lines))


def read_kernels(instructions: InstructionLines) -> pa.Table:
    """What Pallas kernels keep on chip, see `kernel_parts`."""
    rows, configs = instructions.backend_configs
    chosen = pa.array(np.flatnonzero(instructions.has_opcode(["custom-call"])[rows]))
    return kernel_parts(
        instructions.names.take(pa.array(rows)).take(chosen),
        configs.take(chosen).cast(pa.large_string()),
    )


class _Names(NamedTuple):
    """Operands' names, and the index of the line that each is in, in order of the lines."""

    texts: pa.LargeStringArray
    rows: Positions


def read_operands(instructions: InstructionLines) -> tuple[pa.Table, Positions]:
    """Each operand by name, and its line's index: instruction, operand_number, operand.

    Raises DumpError.
    """
    lines = instructions.lines
    has_some = ~instructions.has_opcode(_NO_OPERANDS)
    has_some &= lines.content[instructions.operands] != ord(")")
    found, is_other = _plain_names(instructions, has_some)
    if is_other.any():
        found = _joined(found, _other_names(instructions, np.flatnonzero(is_other)))
    count = np.bincount(found.rows, minlength=len(lines))
    number = np.arange(len(found.rows)) - np.repeat(np.cumsum(count) - count, count)
    table = pa.table(
        {
            "instruction": instructions.names.take(pa.array(found.rows)),
            "operand_number": pa.array(number, pa.int32()),
            "operand": found.texts,
        }
    )
    return table, found.rows


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


# Reader of the instructions' attributes.
#
# What makes the program is stored, see `program_columns`. What only liveness needs is read on
# demand, see `HloText.attributes`.

_Source = TypeVar("_Source")

_DIGITS_OF_INDEX = 10
_KIND = r"^(?P<text>k[A-Za-z]+)"
# The attributes of `attributes`, by what has them; XLA prints them in this order.
DIMENSION_ATTRIBUTES = (
    "dimensions",
    "iota_dimension",
    "slice",
    "padding",
    "dynamic_slice_sizes",
    "window",
    "dim_labels",
    "feature_group_count",
    "batch_group_count",
    "lhs_batch_dims",
    "lhs_contracting_dims",
    "rhs_batch_dims",
    "rhs_contracting_dims",
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "index_vector_dim",
    "slice_sizes",
    "output_to_operand_aliasing",
)
# The instructions with such attributes; any may have `output_to_operand_aliasing`.
_DIMENSIONED = [
    "all-gather",
    "all-gather-start",
    "all-to-all",
    "broadcast",
    "concatenate",
    "convolution",
    "custom-call",
    "dot",
    "dynamic-slice",
    "gather",
    "get-dimension-size",
    "iota",
    "map",
    "pad",
    "reduce",
    "reduce-scatter",
    "reduce-window",
    "reverse",
    "scatter",
    "select-and-scatter",
    "set-dimension-size",
    "slice",
    "sort",
    "transpose",
]
# What follows these is no such attribute, and differs from line to line.
_BEHIND = (b"metadata=", b"calls=", b"to_apply=", b"select=", b"sharding=", b"backend_config=")
_ATTRIBUTE = re.compile(
    rf"(?:^|, )((?:{'|'.join(DIMENSION_ATTRIBUTES)})="
    r"(?:\{(?:[^{}]|\{[^{}]*\})*\}|[^ ,{}]+))"
)
# What tells how often a loop runs.
_TRIP_COUNT = r'"known_trip_count":\{"n":"(?P<n>\d{1,18})"'
INTEGER_SCALAR = r"^[su](?:8|16|32|64)\[\]"
_INTEGER = r"^(?P<n>-?\d{1,18})\)"
_LONGEST_INTEGER = 20
_QUOTES = re.compile(r'"(?:[^"\\]|\\.)*"')
# What only a GPU's compiler writes into metadata and backend_config.
GPU_WORDS = (
    b"operation_queue_id",
    b"scheduling_name",
    b"fusion_backend_config",
    b"__cublas",
    b"__triton",
)
_OF_GPU = b"|".join(GPU_WORDS).decode()


def read_attributes(instructions: InstructionLines) -> HloAttributes:
    """Read the attributes; what an instruction does not say is null. Raises DumpError."""
    _, configs = instructions.backend_configs
    late = pc.any(pc.match_substring(configs.dictionary, '"dma_priority":')).as_py()
    return HloAttributes(
        pa.array(instructions.lines.numbers),
        _aliasing_operands(instructions),
        _loop_facts(instructions),
        _is_gpu(instructions),
        bool(late),
    )


def _attributes_of_all(source: tuple[InstructionLines, Positions]) -> list[HloAttributes]:
    """The attributes of several texts; the second says of which text each line is."""
    instructions, of = source
    count = int(of.max(initial=0)) + 1
    if count == 1:
        return [read_attributes(instructions)]
    bounds = np.searchsorted(of, np.arange(count + 1))
    rows, configs = instructions.backend_configs
    late = pc.match_substring(configs.dictionary, '"dma_priority":')
    is_late, is_gpu = np.zeros((2, count), bool)
    is_late[of[rows[as_numpy(late)[configs.indices.to_numpy()]]]] = True
    for at, encoded in _words_of_compilers(instructions):
        is_said = as_numpy(pc.match_substring_regex(encoded.dictionary, _OF_GPU))
        is_gpu[of[at[is_said[encoded.indices.to_numpy()]]]] = True
    facts = _loop_facts(instructions)
    # Without loops nothing else is a fact.
    has_loop = np.zeros(count, bool)
    has_loop[of[instructions.has_opcode(["while"])]] = True
    facts = facts.filter(pa.array(has_loop[of[facts["row"].to_numpy()]]))
    return [
        HloAttributes(*columns)
        for columns in zip(
            [pa.array(instructions.lines.numbers[a:b]) for a, b in pairwise(bounds.tolist())],
            _own_rows(_aliasing_operands(instructions), of, bounds),
            _own_rows(facts, of, bounds),
            is_gpu.tolist(),
            is_late.tolist(),
            strict=True,
        )
    ]


def _own_rows(table: pa.Table, of: Positions, bounds: Positions) -> list[pa.Table]:
    """A table by row of all lines as that of each text, by its own rows."""
    row = table["row"].to_numpy()
    order = np.argsort(of[row], kind="stable")
    table = table.take(pa.array(order))
    row = row[order]
    table = table.set_column(0, "row", pa.array(row - bounds[of[row]]))
    return divided(table, np.searchsorted(of[row], np.arange(len(bounds))))


def _attributes_of(read: Callable[[], list[HloAttributes]], number: int) -> HloAttributes:
    return read()[number]


def program_columns(instructions: InstructionLines) -> dict[str, pa.Array]:
    """The columns of the table `instructions` from is_root to attributes.

    What an instruction does not say is null. Raises DumpError.
    """
    return {
        "is_root": pa.array(is_root(instructions)),
        "parameter_number": _parameter_numbers(instructions),
        "tuple_index": tuple_indices(instructions),
        "fusion_kind": _fusion_kinds(instructions),
        "attributes": _dimension_attributes(instructions),
    }


def read_once(read: Callable[[_Source], _Read], source: _Source) -> Callable[[], _Read]:
    """A function that reads the attributes when first called, and then frees the source."""
    sources = [source]

    @cache
    def attributes() -> _Read:
        found = read(sources[0])
        sources.clear()
        return found

    return attributes


def _is_gpu(instructions: InstructionLines) -> bool:
    """Whether a GPU's compiler wrote the attributes."""
    return any(
        pc.any(pc.match_substring_regex(words.dictionary, _OF_GPU)).as_py()
        for _, words in _words_of_compilers(instructions)
    )


def _words_of_compilers(
    instructions: InstructionLines,
) -> list[tuple[Positions, pa.DictionaryArray]]:
    """Where a compiler's own words may stand: the lines, and their texts."""
    found = [instructions.metadata, instructions.backend_configs]
    rows, _ = instructions.attribute("custom_call_target")
    if len(rows):
        targets = pc.fill_null(instructions.custom_call_targets.take(pa.array(rows)), "")
        found.append((rows, targets.dictionary_encode()))
    return found


def _aliasing_operands(instructions: InstructionLines) -> pa.Table:
    """The instructions whose backend_config says which operands share memory: row, lists."""
    rows, configs = instructions.backend_configs
    found = aliasing_operands(np.arange(len(configs.dictionary)), configs.dictionary)
    saying = np.full(len(configs.dictionary), -1)
    saying[found["row"].to_numpy()] = np.arange(len(found))
    at = saying[configs.indices.to_numpy()]
    lists = found["lists"].combine_chunks().take(pa.array(at[at >= 0]))
    return pa.table({"row": rows[at >= 0], "lists": lists})


def loop_facts(
    trip_counts: tuple[Positions, pa.Array],
    integers: tuple[Positions, pa.Array],
    less_than: Positions,
) -> pa.Table:
    """The table `loop_facts` of HloAttributes, each with its rows; nulls are no facts."""
    counted = pa.table({"row": trip_counts[0], "trip_count": trip_counts[1].cast(pa.int64())})
    numbers = pa.table({"row": integers[0], "integer": integers[1].cast(pa.int64())})
    compares = pa.table({"row": less_than, "is_less_than": np.ones(len(less_than), bool)})
    return pa.concat_tables([counted, numbers, compares], promote_options="default")


def known_trip_counts(configs: pa.LargeStringArray) -> pa.Array:
    """The trip counts that XLA writes into the backend_configs of loops; null where it does not."""
    return pc.struct_field(pc.extract_regex(configs, pattern=_TRIP_COUNT), "n")


def _loop_facts(instructions: InstructionLines) -> pa.Table:
    lines, shapes = instructions.lines, instructions.shapes
    is_while = instructions.has_opcode(["while"])
    if not is_while.any():
        nothing = np.empty(0, np.int64), pa.array([], pa.int64())
        return loop_facts(nothing, nothing, nothing[0])
    rows, configs = instructions.backend_configs
    whiles = np.flatnonzero(is_while[rows])
    counted = configs.dictionary.take(configs.indices.take(pa.array(whiles)))
    constants = np.flatnonzero(instructions.has_opcode(["constant"]))
    is_scalar = pc.match_substring_regex(shapes.take(pa.array(constants)), INTEGER_SCALAR)
    constants = constants[as_numpy(is_scalar)]
    starts = instructions.operands[constants]
    ends = np.minimum(starts + _LONGEST_INTEGER, lines.ends[constants])
    integers = pc.extract_regex(slices(lines.content, starts, ends), pattern=_INTEGER)
    compares, directions = instructions.attribute("direction")
    is_less = instructions.has_opcode(["compare"])[compares]
    is_less &= standing(lines.content, directions, b"LT")
    return loop_facts(
        (rows[whiles], known_trip_counts(counted)),
        (constants, pc.struct_field(integers, "n")),
        compares[is_less],
    )


def is_root(instructions: InstructionLines) -> Mask:
    """Which lines start with `ROOT `, and are not of an instruction called ROOT."""
    lines = instructions.lines
    at = lines.starts + 2 * lines.starting("  ")
    return standing(lines.content, at, b"ROOT ") & ~standing(lines.content, at, b"ROOT =")


def _byte(content: Bytes, at: Positions) -> Bytes:
    """The bytes at these positions; the last one for a position beyond the end."""
    found: Bytes = content[np.minimum(at, len(content) - 1)]
    return found


def _parameter_numbers(instructions: InstructionLines) -> pa.Int32Array:
    rows = np.flatnonzero(instructions.has_opcode(["parameter"]))
    return _numbers(instructions, rows, instructions.operands[rows])


def tuple_indices(instructions: InstructionLines) -> pa.Int32Array:
    """Which element each get-tuple-element takes; null of other instructions."""
    rows, starts = instructions.attribute("index")
    chosen = instructions.has_opcode(["get-tuple-element"])[rows]
    return _numbers(instructions, rows[chosen], starts[chosen])


def _numbers(instructions: InstructionLines, rows: Positions, starts: Positions) -> pa.Int32Array:
    """The decimal numbers that start at these bytes, in a column of all lines.

    Raises DumpError at the first that is not a number.
    """
    lines = instructions.lines
    numbers = np.zeros(len(rows), np.int64)
    digits = np.zeros(len(rows), np.int64)
    open_ = np.arange(len(rows))
    for place in range(_DIGITS_OF_INDEX):
        digit = _byte(lines.content, starts[open_] + place).astype(np.int64) - ord("0")
        is_digit = (digit >= 0) & (digit <= 9)
        open_, digit = open_[is_digit], digit[is_digit]
        numbers[open_] = numbers[open_] * 10 + digit
        digits[open_] = place + 1
    wrong = (digits == 0) | (digits == _DIGITS_OF_INDEX) | (numbers > LARGEST_ID)
    if wrong.any():
        lines.where(rows).refuse(wrong, "expected a number of at most nine digits")
    column = np.zeros(len(lines), np.int32)
    column[rows] = numbers
    missing = np.ones(len(lines), bool)
    missing[rows] = False
    return pa.array(column, mask=missing)


def _fusion_kinds(instructions: InstructionLines) -> pa.Array:
    """The kind of each fusion, a dictionary."""
    lines = instructions.lines
    rows, starts = instructions.attribute("kind")
    value = slices(lines.content, starts, lines.ends[rows])
    # struct_field keeps null what does not match.
    found = pc.struct_field(pc.extract_regex(value, pattern=_KIND), "text").dictionary_encode()
    return placed(found, rows, len(lines))


def _dimension_attributes(instructions: InstructionLines) -> pa.Array:
    """What each line says of DIMENSION_ATTRIBUTES, as XLA prints it: a dictionary."""
    lines, content = instructions.lines, instructions.lines.content
    chosen = instructions.has_opcode(_DIMENSIONED)
    chosen[instructions.attribute("output_to_operand_aliasing")[0]] = True
    at = np.flatnonzero(chosen[instructions.comma_rows])
    rows, commas = instructions.comma_rows[at], instructions.commas[at]
    first = words(content, commas + 1)
    # The operands' parenthesis closes before the first attribute.
    is_first = content[commas - 2] == ord(")")
    is_behind = np.logical_or.reduce(
        [standing(content, commas + 1, name, first) for name in _BEHIND]
    )
    begin = np.flatnonzero(is_first)
    begin = begin[np.append(True, rows[begin][1:] != rows[begin][:-1])[: len(begin)]]
    owner = rows[begin]
    stop = np.append(commas - 1, len(content))[_next(is_behind, begin)]
    starts = commas[begin] + 1
    texts = slices(content, starts, np.maximum(starts, np.minimum(stop, lines.ends[owner])))
    encoded = texts.dictionary_encode()
    # Few texts are distinct, so a Python loop is fast enough.
    named = [
        ", ".join(_ATTRIBUTE.findall(_QUOTES.sub("", text))) or None
        for text in encoded.dictionary.to_pylist()
    ]
    found = pa.array(named, pa.large_string()).take(encoded.indices).dictionary_encode()
    return placed(found, owner, len(lines))


def _next(mask: Mask, at: Positions) -> Positions:
    """The first place of the mask at or behind each of these; its length if there is none."""
    places = np.flatnonzero(mask)
    found: Positions = np.append(places, len(mask))[np.searchsorted(places, at)]
    return found


# The entry computation's arguments and result: their arrays, names and shardings.

# A tuple's sharding holds those of its arrays, and each may hold one more list in braces.
_BRACED = r"^\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_ELEMENT = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")


@dataclass(frozen=True)
class EntryParameter:
    """An argument's name in the framework, and its sharding as XLA prints it."""

    name: str | None = None
    sharding: str | None = None

    def leaf_shardings(self, count: int) -> list[str | None]:
        """The sharding of each of the argument's arrays: a tuple's may be a list of these."""
        if self.sharding is not None and self.sharding.startswith("{{"):
            leaves = _ELEMENT.findall(self.sharding[1:-1])
            if len(leaves) == count:
                return list(leaves)
        return [self.sharding] * count


def read_entry_parameters(
    instructions: InstructionLines, op_names: pa.ChunkedArray, in_entry: Mask, of: Positions
) -> dict[int, dict[int, EntryParameter]]:
    """The entry computations' parameters by text and number; lines without a number are left out.

    `of` is the text of each line.
    """
    lines = instructions.lines
    rows = np.flatnonzero(instructions.has_opcode(["parameter"]) & in_entry)
    rest = slices(lines.content, instructions.operands[rows], lines.ends[rows])
    numbers = pc.struct_field(pc.extract_regex(rest, r"^(?P<number>[0-9]{1,9})\)"), "number")
    sharded, starts = instructions.attribute("sharding")
    chosen = np.isin(sharded, rows)
    sharded, starts = sharded[chosen], starts[chosen]
    value = slices(lines.content, starts, lines.ends[sharded])
    texts = pc.struct_field(pc.extract_regex(value, f"(?P<text>{_BRACED})"), "text")
    sharding = dict(zip(sharded.tolist(), texts.to_pylist(), strict=True))
    names = op_names.take(pa.array(rows)).to_pylist()
    found: dict[int, dict[int, EntryParameter]] = {}
    for row, text, number, name in zip(
        rows.tolist(), of[rows].tolist(), numbers.to_pylist(), names, strict=True
    ):
        if number is not None:
            parameter = EntryParameter(argument_name(name), sharding.get(row))
            found.setdefault(text, {})[int(number)] = parameter
    return found


def argument_name(op_name: str | None) -> str | None:
    """The op_name of a parameter, unless XLA made the parameter of what moves one."""
    return None if op_name is None or read_path(op_name).has_program else op_name


def entry_shapes(signature: str, parameters: Mapping[int, EntryParameter]) -> pa.Table:
    """Rows of the warehouse's `entry_shapes` for an entry_computation_layout.

    `parameters` says by number what the text says of the arguments elsewhere. Raises DumpError.
    """
    arguments, arrow, result = signature.partition(")->")
    try:
        if not arrow:
            raise ValueError("there is no '->'")
        shapes = parse_shape(arguments + ")")
        if not isinstance(shapes, TupleShape):
            raise ValueError("the arguments are not in parentheses")
        rows = [
            row
            for number, shape in enumerate(shapes.elements)
            for row in _argument_rows(shape, number, parameters.get(number, EntryParameter()))
        ]
        rows += _rows(parse_shape(result), None)
    except ValueError as error:
        raise DumpError(f"the entry computation's signature is wrong: {error}", 1) from None
    return module_rows("entry_shapes", rows)


def _argument_rows(
    shape: Shape, number: int, parameter: EntryParameter
) -> Iterator[dict[str, object]]:
    rows = list(_rows(shape, number))
    shardings = parameter.leaf_shardings(len(rows))
    for row, sharding in zip(rows, shardings, strict=True):
        yield {**row, "argument_name": parameter.name, "sharding": sharding}


def _rows(shape: Shape, parameter_number: int | None) -> Iterator[dict[str, object]]:
    for index, leaf in _leaves(shape, ()):
        yield {
            "is_output": parameter_number is None,
            "parameter_number": parameter_number,
            "shape_index": "{" + ",".join(map(str, index)) + "}",
            **_described(leaf),
        }


# Cached, because a model's layers have the same shapes.
@lru_cache(maxsize=1000)
def _described(shape: Shape) -> dict[str, object]:
    logical, padded = _sizes(shape)
    return {
        "shape": str(shape),
        "element_type": getattr(shape, "element_type", None),
        "logical_bytes": logical,
        "padded_bytes": padded,
    }


def _leaves(shape: Shape, index: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Shape]]:
    if not isinstance(shape, TupleShape):
        yield index, shape
        return
    for number, element in enumerate(shape.elements):
        yield from _leaves(element, (*index, number))


def _sizes(shape: Shape) -> tuple[int | None, int | None]:
    """Logical and padded bytes; None for a shape of unbounded size. Raises ValueError."""
    try:
        logical, padded = logical_bytes(shape), padded_bytes(shape)
    except ValueError:
        return None, None
    if padded > LARGEST_SIZE:
        raise ValueError(f"{excerpt(str(shape))} takes over {LARGEST_SIZE} bytes")
    return logical, padded


# Reader of HLO text: the header, computations, instructions and stack frames.

# To cut a name out of a whole long line takes five times as long as to check the line.
COMPUTATION_NAME = r"^(?P<entry>ENTRY )?%?(?P<computation>[^ (][^ ]*) "
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
_NAME, _LIST = r"^(?P<names>[^ ,]+)", r"^\{(?P<names>[^}]*)\}"

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
    lines = column_lines(lines)
    header = _header(lines)
    body = lines.between(1, len(lines))
    try:
        return _read_body(header, body)
    except DumpError:
        # Few texts have instructions of several lines, so that others pay nothing.
        joined = rejoined(body)
    text, errors = read_the_rest(joined, partial(_read_body, header))
    if not len(text.instructions):
        raise errors[0]
    unread = unread_lines(errors, len(text.instructions), "instructions")
    return replace(text, unread=(*unread, *text.unread))


def read_hlo_texts(texts: Sequence[Lines]) -> list[HloText]:
    """Read the HLO texts of several modules at once, because small ones cost the calls.

    Raises DumpError if one of them needs to be read alone: it is damaged, or says what is not
    known.
    """
    headers = [_header(lines) for lines in texts]
    bodies = [lines.between(1, len(lines)) for lines in texts]
    starts = starts_of(np.array([len(lines.content) for lines in texts]))[:-1]
    shifted = list(zip(bodies, starts.tolist(), strict=True))
    lines = Lines(
        np.concatenate([lines.content for lines in texts]),
        np.concatenate([body.starts + start for body, start in shifted]),
        np.concatenate([body.ends + start for body, start in shifted]),
        np.concatenate([body.numbers for body in bodies]),
    )
    found = _read_bodies(headers, lines, starts)
    if any(text.not_understood or text.unread for text in found):
        raise DumpError("a text says what is not known")
    return found


def rejoined(body: Lines) -> Lines:
    """The lines, with each instruction of several lines on one."""
    is_instruction = body.starting("  ")
    texts = body.where(is_instruction).text
    is_instruction[is_instruction] = as_numpy(pc.match_substring_regex(texts, _INSTRUCTION))
    return joined_lines(body, is_instruction, np.zeros(len(body), bool))


def _read_body(header: dict[str, object], lines: Lines) -> HloText:
    """Read what follows the header.

    Raises DumpError; if its lines are wrong and no more, `lines` without them can be read.
    """
    (text,) = _read_bodies([header], lines, np.zeros(1, np.int64))
    return text


def _read_bodies(
    headers: Sequence[dict[str, object]], lines: Lines, starts: Positions
) -> list[HloText]:
    """Read what follows the headers of texts, which start at `starts` in the lines' content.

    What a line says is read of all lines at once. Raises DumpError.
    """
    body, marks, newer = marked(lines)
    is_open, is_instruction, is_frame, unclosed = marks
    opening = body.where(is_open)
    is_right = as_numpy(pc.match_substring_regex(opening.text, pattern=_COMPUTATION))
    if not is_right.all():
        opening.refuse(~is_right, "expected a computation")
    opened = opening.extract(COMPUTATION_NAME, "a computation")
    computations = pa.table(
        {
            "computation": opened["computation"],
            "is_entry": pc.not_equal(opened["entry"], ""),
        }
    )
    of_opening = np.searchsorted(starts, opening.starts, side="right") - 1
    is_entry = as_numpy(computations["is_entry"])
    if (np.bincount(of_opening[is_entry], minlength=len(headers)) != 1).any():
        raise DumpError(
            "the text has no entry computation: it is cut short, dump it again",
            int(lines.numbers[-1]) if len(lines) else 1,
        )
    instructions = split_instructions(body.where(is_instruction))
    frame_lines = body.where(is_frame)
    bounds, frame_bounds, opening_bounds = (
        np.append(np.searchsorted(some.starts, starts), len(some)).tolist()
        for some in (instructions.lines, frame_lines, opening)
    )
    parts = [instructions.part(*bounds[n : n + 2]) for n in range(len(headers))]
    for part in parts:
        _check_names(part)
    operands, operand_rows = read_operands(instructions)
    operand_bounds = np.searchsorted(operand_rows, bounds).tolist()
    of_operands = [_part(operands, operand_bounds, n) for n in range(len(headers))]
    left_out = [
        element
        for part, own in zip(parts, of_operands, strict=True)
        for element in _left_out(part, own)
    ]
    if left_out:
        texts = [text for _, text in left_out]
        cuts = np.array([start for start, _ in left_out])
        longer = starts_of(np.array([len(text.encode()) + 1 for text in texts]))
        before = np.searchsorted(lines.starts, cuts)
        whole = with_inserted(lines, before, texts)
        return _read_bodies(headers, whole, starts + longer[np.searchsorted(cuts, starts)])
    owner = (np.cumsum(is_open) - 1)[is_instruction]
    numbers = np.arange(len(headers))
    of = np.repeat(numbers, np.diff(bounds))
    frames, of_frames, newer_frames, unread = _read_frames(
        frame_lines, np.repeat(numbers, np.diff(frame_bounds))
    )
    own_frames = divided(frames, np.searchsorted(of_frames, np.arange(len(headers) + 1)))
    plain = with_sources(read_instructions(instructions), frames, of, of_frames)
    calls = _divided_calls(instructions, of, computations["computation"], of_opening)
    attributes = read_once(_attributes_of_all, (instructions, of))
    has_kernels, has_control = _having(instructions, of, len(headers))
    no_kernels = read_kernels(instructions.part(0, 0))
    parameters = read_entry_parameters(instructions, plain["op_name"], is_entry[owner], of)
    columns = {"computation": computations["computation"].take(pa.array(owner))}
    columns |= program_columns(instructions)
    found = []
    for number, (header, part) in enumerate(zip(headers, parts, strict=True)):
        own_computations = _part(computations, opening_bounds, number)
        table = _part(plain, bounds, number)
        signature = header["entry_signature"]
        own_columns = _part(pa.table(columns), bounds, number)
        found.append(
            HloText(
                header=header,
                computations=own_computations,
                instructions=pa.table(
                    dict(zip(table.column_names, table.columns, strict=True))
                    | dict(zip(own_columns.column_names, own_columns.columns, strict=True))
                ),
                operands=of_operands[number],
                calls=calls[number],
                stack_frames=own_frames[number],
                entry_shapes=(
                    entry_shapes(str(signature), parameters.get(number, {}))
                    if signature is not None
                    else None
                ),
                attributes=partial(_attributes_of, attributes, number),
                kernels=read_kernels(part) if has_kernels[number] else no_kernels,
                control=control_dependencies(part) if has_control[number] else _NO_CONTROL,
                not_understood=newer + newer_frames + _newer_opcodes(part),
                unread=(*unclosed, *unread),
            )
        )
    return found


def _part(table: pa.Table, bounds: Sequence[int], number: int) -> pa.Table:
    """The rows of one text. Copied, because what others have beside them is not for this one."""
    start, stop = bounds[number : number + 2]
    if stop - start == len(table):
        return table
    part = table.take(pa.array(np.arange(start, stop)))
    # Nor are the words of others.
    for at, field in enumerate(part.schema):
        if pa.types.is_dictionary(field.type):
            texts = part.column(at).cast(field.type.value_type).combine_chunks()
            part = part.set_column(at, field.name, texts.dictionary_encode())
    return part


class _Marks(NamedTuple):
    """Which lines open a computation, are instructions or are of the stack frames.

    `unclosed` is the first computation that does not end before the next one.
    """

    is_open: Mask
    is_instruction: Mask
    is_frame: Mask
    unclosed: tuple[Unread, ...]


def marked(body: Lines) -> tuple[Lines, _Marks, NotUnderstoods]:
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
    first = body.content[body.starts]
    is_frame_row = is_outside & (first >= ord("0")) & (first <= ord("9"))
    is_frame_table = np.logical_or.reduce([body.equal(name) for name in FRAME_TABLES])
    is_frame = is_frame_row | is_frame_table
    other = ~(is_instruction | is_close | is_open | is_frame | body.equal(""))
    if other.any():
        known, newer = without_newer_tables(
            body, is_open, is_close, is_frame_table, other & is_outside
        )
        if len(known) == len(body):
            body.refuse(other, "expected a computation or an instruction")
        found, marks, more = marked(known)
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


def _read_frames(
    lines: Lines, of: Positions
) -> tuple[pa.Table, Positions, NotUnderstoods, tuple[Unread, ...]]:
    """The stack frames, none of them if one cannot be read; see `_frames_of_all`.

    Raises DumpError if one of several texts' cannot be read.
    """
    try:
        return *_frames_of_all(lines, of), ()
    except DumpError as error:
        if len(of) and of[0] != of[-1]:
            raise
        what = f"the stack frames are not read: {error}"
        unread = Unread(error.line or int(lines.numbers[0]), what)
        return *_frames_of_all(lines.between(0, 0), of[:0]), (unread,)


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


_NOTHING_NAMED = pa.table(
    {name: pa.array([], pa.large_string()) for name in ("instruction", "attribute", "name")}
)


def called_computations(
    instructions: InstructionLines, computations: pa.LargeStringArray
) -> pa.Table:
    """The computations that each instruction calls, with the attribute that names them."""
    _, calls = _calls(instructions)
    # An op_name may contain `, select=`, so only an existing computation's name is a call.
    return calls.filter(pc.is_in(calls["computation"], value_set=computations))


def _calls(instructions: InstructionLines) -> tuple[Positions, pa.Table]:
    """What may be calls: the line of each, and instruction, attribute, computation."""
    named = _named_by(instructions, _CALLS, _NAME), _named_by(instructions, _CALL_LISTS, _LIST)
    calls = pa.concat_tables([table for _, table in named])
    rows = np.concatenate([rows for rows, _ in named])
    return rows, calls.rename_columns(["instruction", "attribute", "computation"])


def _divided_calls(
    instructions: InstructionLines, of: Positions, names: pa.ChunkedArray, of_names: Positions
) -> list[pa.Table]:
    """The calls of each of several texts: `of` and `of_names` say of which lines and names are."""
    count = int(of_names[-1]) + 1
    if count == 1:
        return [called_computations(instructions, names.combine_chunks())]
    rows, calls = _calls(instructions)
    distinct = pc.unique(names)
    known, wanted = (
        pc.fill_null(pc.index_in(column, value_set=distinct), -1).to_numpy() + 1
        for column in (names, calls["computation"])
    )
    width = len(distinct) + 1
    is_call = np.isin(of[rows] * width + wanted, of_names * width + known)
    chosen = np.flatnonzero(is_call)
    chosen = chosen[np.argsort(of[rows[chosen]], kind="stable")]
    bounds = np.searchsorted(of[rows[chosen]], np.arange(count + 1))
    return divided(calls.take(pa.array(chosen)), bounds)


def _having(instructions: InstructionLines, of: Positions, count: int) -> tuple[Mask, Mask]:
    """Which texts may have Pallas kernels, and which control dependencies."""
    kernels, control = np.zeros((2, count), bool)
    with_config, _ = instructions.backend_configs
    is_custom = instructions.has_opcode(["custom-call"])[with_config]
    kernels[of[with_config[is_custom]]] = True
    control[of[instructions.attribute("control-predecessors")[0]]] = True
    return kernels, control


_NO_CONTROL = pa.table(
    {name: pa.array([], pa.large_string()) for name in ("instruction", "predecessor")}
)


def control_dependencies(instructions: InstructionLines) -> pa.Table:
    """What must run before each instruction, though nothing is read: instruction, predecessor."""
    _, found = _named_by(instructions, ("control-predecessors",), _LIST)
    found = found.select(["instruction", "name"]).rename_columns(["instruction", "predecessor"])
    if not len(found):
        return found
    return found.filter(pc.is_in(found["predecessor"], value_set=instructions.names))


def _named_by(
    instructions: InstructionLines, attributes: Sequence[str], pattern: str
) -> tuple[Positions, pa.Table]:
    """What instructions name by attributes, one after the other: instruction, attribute, name.

    And the line of each.
    """
    content = instructions.lines.content
    found = [instructions.attribute(attribute) for attribute in attributes]
    rows, starts = (np.concatenate(columns) for columns in zip(*found, strict=True))
    if not len(rows):
        return rows, _NOTHING_NAMED
    # Texts are cut out in their order, each up to the next one.
    order = np.argsort(starts)
    stops = np.append(starts[order][1:], len(content))
    values = slices(content, starts[order], np.minimum(stops, instructions.lines.ends[rows[order]]))
    texts = pc.struct_field(pc.extract_regex(values, pattern=pattern), "names")
    texts = pc.replace_substring(pc.fill_null(texts, ""), pattern="%", replacement="")
    lists = pc.split_pattern(texts.take(pa.array(np.argsort(order))), pattern=", ")
    counts = pc.list_value_length(lists).to_numpy()
    number = np.repeat(np.arange(len(found)), [len(of) for of, _ in found])
    rows = np.repeat(rows, counts)
    return rows, pa.table(
        {
            "instruction": instructions.names.take(pa.array(rows)),
            "attribute": pa.array(attributes, pa.large_string()).take(
                pa.array(np.repeat(number, counts))
            ),
            "name": lists.flatten(),
        }
    )


def _left_out(instructions: InstructionLines, operands: pa.Table) -> list[tuple[int, str]]:
    """A get-tuple-element for each element that is only an operand, and where it is to stand.

    Since JAX 0.12 `%x#1` is element 1 of the tuple x, and XLA leaves the get-tuple-element out of
    the text (`--xla_dump_compact_gte`). The readers and the model know instructions only.
    It is called as the operand is printed, `x#1`, because the text tells no name of its own,
    and stands at the start of the line that uses it first. Raises DumpError.
    """
    within = operands["operand"].filter(pc.match_substring(operands["operand"], "#"))
    names = pc.unique(within)
    names = names.filter(pc.is_null(pc.index_in(names, value_set=instructions.names)))
    # What has no tuple is left to the model, which says what is not defined.
    tuples = pc.list_element(pc.split_pattern(names, "#", max_splits=1), 0)
    at = pc.index_in(tuples, value_set=instructions.names)
    names, at = names.filter(pc.is_valid(at)), at.drop_null()
    if not len(names):
        return []
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
    return list(zip(instructions.lines.starts[places].tolist(), texts.values(), strict=True))


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
    lines = column_lines(lines)
    table, _, newer = _frames_of_all(lines, np.zeros(len(lines), np.int64))
    return table, newer


def _frames_of_all(lines: Lines, of: Positions) -> tuple[pa.Table, Positions, NotUnderstoods]:
    """The same of several texts, `of` which each line is; the second are those of the frames."""
    tables = _frame_tables(lines, of)
    files = _names_by_id(*tables["FileNames"])
    functions = _names_by_id(*tables["FunctionNames"])
    places, of_places = tables["FileLocations"]
    locations, newer = _locations(places)
    frames, of_frames = tables["StackFrames"]
    found = frames.extract(_FRAME, "a stack frame")
    ids = frames.integers(found["id"])
    wanted = _keys(frames.integers(found["location"]), of_frames)
    at = pc.index_in(wanted, value_set=_keys(locations["id"], of_places))
    if at.null_count:
        frames.refuse(pc.is_null(at).to_numpy(zero_copy_only=False), "no such file location")
    location = {name: column.take(at) for name, column in locations.items()}

    def name_of(names: dict[str, pa.Array], numbers: pa.Array) -> pa.Array:
        return names["name"].take(pc.index_in(_keys(numbers, of_frames), value_set=names["key"]))

    newer += _newer_attributes(frames, found["newer"])
    table = pa.table(
        {
            "stack_frame_id": ids,
            "parent_frame_id": _parents(frames.integers(found["parent"]), ids, of_frames),
            "file": name_of(files, location["file"]),
            "function": name_of(functions, location["function"]),
            "line": location["line"],
            "end_line": location["end_line"],
            "column_start": location["column_start"],
            "column_end": location["column_end"],
        }
    )
    return table, of_frames, newer


def _keys(numbers: pa.Array, of: Positions) -> pa.Int64Array:
    """Numbers that texts have for themselves, as numbers of all of them."""
    return pc.add(numbers.cast(pa.int64()), pa.array(of * (LARGEST_ID + 1)))


def _newer_attributes(lines: Lines, texts: pa.Array) -> NotUnderstoods:
    """The attributes of a frame or a location that are not known."""
    names = pc.replace_substring_regex(texts, pattern="=[^ ]*", replacement="")
    return newer_words(lines, pc.utf8_ltrim(names, " "), "attribute of a stack frame")


def with_sources(
    instructions: pa.Table,
    frames: pa.Table,
    of: Positions | None = None,
    of_frames: Positions | None = None,
) -> pa.Table:
    """Take file and line from the innermost frame if the metadata has none.

    Of several texts, `of` and `of_frames` say which one each instruction and frame is of.
    """
    ids, known = (table["stack_frame_id"].combine_chunks() for table in (instructions, frames))
    if of is not None and of_frames is not None:
        ids, known = _keys(ids, of), _keys(known, of_frames)
    at = pc.index_in(ids, value_set=known)
    for column, of_frame in (("source_file", "file"), ("source_line", "line")):
        filled = pc.coalesce(instructions[column], frames[of_frame].take(at))
        at_column = instructions.schema.get_field_index(column)
        instructions = instructions.set_column(at_column, column, filled)
    return instructions


def _frame_tables(lines: Lines, of: Positions) -> dict[str, tuple[Lines, Positions]]:
    """The rows under each heading, and of which text each row is."""
    heading = np.full(len(lines), -1)
    texts, first = np.unique(of, return_index=True)
    for number, name in enumerate(FRAME_TABLES):
        at = np.flatnonzero(lines.equal(name))
        if not np.array_equal(of[at], texts):
            raise DumpError(
                f"the stack frame table {name} is missing or repeated", int(lines.numbers[0])
            )
        heading[at] = number
    if len(texts) > 1 and (heading[first] < 0).any():
        raise DumpError("a row stands before the stack frame tables")
    above = np.maximum.accumulate(np.where(heading >= 0, np.arange(len(lines)), 0))
    table = np.where(heading < 0, heading[above], -1)
    rows = [np.flatnonzero(table == number) for number in range(len(FRAME_TABLES))]
    return {name: (lines.where(at), of[at]) for name, at in zip(FRAME_TABLES, rows, strict=True)}


def _names_by_id(lines: Lines, of: Positions) -> dict[str, pa.Array]:
    found = lines.extract(_ROW_NAME, "a number and a quoted name")
    return {"key": _keys(lines.integers(found["id"]), of), "name": found["name"]}


def _locations(lines: Lines) -> tuple[dict[str, pa.Array], NotUnderstoods]:
    found = lines.extract(_LOCATION, "a file location")
    newer = _newer_attributes(lines, found.pop("newer"))
    return {name: lines.integers(texts) for name, texts in found.items()}, newer


def _parents(parents: pa.Int32Array, ids: pa.Int32Array, of: Positions) -> pa.Int32Array:
    """Parent ids, null at a root.

    Some versions of XLA print ids one too high: 1 means a root, and frame 1 seems to be its
    own parent (`tpu/llama-v5e`). Other versions print 0 for a root. Frame 1 shows which.
    """
    ones = np.flatnonzero(pc.equal(ids, 1).to_numpy(zero_copy_only=False))
    texts, at = np.unique(of[ones], return_index=True)
    too_high = texts[parents.to_numpy(zero_copy_only=False)[ones[at]] == 1]
    if len(too_high):
        parents = pc.subtract(parents, pa.array(np.isin(of, too_high).astype(np.int32)))
    null = pa.scalar(None, pa.int32())
    return pc.if_else(pc.equal(parents, 0), null, parents)
