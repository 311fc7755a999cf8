"""Reader of instruction lines, as HLO text and Used values print them.

`[ROOT ][%]NAME = SHAPE opcode(operands), attributes`
"""

import codecs
import re

import pyarrow as pa
import pyarrow.compute as pc

from .lines import Lines, as_numpy

# A tuple's shape holds spaces, an array's does not; the first `) word(` ends a tuple's.
_INSTRUCTION = (
    r"^ *(?:ROOT )?%?(?P<instruction>[^ ]+) = (?P<shape>\(.*?\)|[^ (][^ ]*) "
    r"(?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$"
)
_QUOTED = r'="(?P<text>(?:[^"\\]|\\.)*)"'
# Few instructions have a long backend_config, but these make up most of the text.
_METADATA = r', metadata=\{(?P<text>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\}'
# TPU kernels: what is set aside for them and, where XLA says so, what they used of it. Every
# dump seen has an empty `used_`; the plain one is 64 MiB on collective fusions of `tpu/*`.
_SCOPED = (
    r'"scoped_memory_configs":\[(?P<reserved>[^\]]*)\]'
    r'(?:.*?"used_scoped_memory_configs":\[(?P<used>[^\]]*)\])?'
)
_SIZE = re.compile(r'"size":"(\d+)"')


def read_instructions(lines: Lines) -> pa.Table:
    """Take instruction lines apart, a row each.

    Columns: instruction, opcode, shape, op_name, source_file, source_line, stack_frame_id,
    custom_call_target, scoped_bytes as in the warehouse's table; `rest` is the text after
    the operands' opening parenthesis. What an instruction does not say is null.
    Raises DumpError.
    """
    found = lines.extract(_INSTRUCTION, "an instruction")
    rest = found["rest"]
    metadata = pc.struct_field(pc.extract_regex(rest, pattern=_METADATA), "text")
    return pa.table(
        {
            "instruction": found["instruction"],
            "opcode": found["opcode"],
            "shape": found["shape"],
            "op_name": _quoted(metadata, "op_name"),
            "source_file": _quoted(metadata, "source_file"),
            "source_line": _number(lines, metadata, "source_line"),
            "stack_frame_id": _number(lines, metadata, "stack_frame_id"),
            "custom_call_target": _quoted(rest, "custom_call_target"),
            "scoped_bytes": _scoped_bytes(rest),
            "rest": rest,
        }
    )


def _quoted(text: pa.LargeStringArray, attribute: str) -> pa.LargeStringArray:
    """An attribute's text without the quotes and the backslashes of C escapes."""
    # struct_field, not .field(): only the former keeps what does not match null.
    text = pc.struct_field(pc.extract_regex(text, pattern=rf"\b{attribute}{_QUOTED}"), "text")
    if not pc.any(pc.match_substring(text, pattern="\\")).as_py():
        return text
    if pc.any(pc.match_substring_regex(text, pattern=r"\\[0-7nrt]")).as_py():
        # Bytes outside of ASCII, and seldom anything else; a name stands many times.
        encoded = text.dictionary_encode()
        return pa.array(list(map(_unescaped, encoded.dictionary.to_pylist())), text.type).take(
            encoded.indices
        )
    return pc.replace_substring_regex(text, pattern=r"\\(.)", replacement=r"\1")


def _unescaped(text: str) -> str:
    """C escapes undone: `gr\\303\\266\\303\\237e` is größe."""
    plain: bytes = codecs.escape_decode(text.encode())[0]
    return plain.decode(errors="replace")


def _number(lines: Lines, text: pa.LargeStringArray, attribute: str) -> pa.Int64Array:
    found = pc.extract_regex(text, pattern=rf"\b{attribute}=(?P<number>\d+)").field("number")
    return lines.integers(found)


def _scoped_bytes(rest: pa.LargeStringArray) -> pa.Int64Array:
    """What a kernel reserves, added up over the memory spaces; null if it says nothing."""
    reserving = pc.match_substring(rest, pattern='scoped_memory_configs":[{')
    if not pc.any(reserving).as_py():
        return pa.nulls(len(rest), pa.int64())
    found = pc.extract_regex(rest.filter(reserving), pattern=_SCOPED)
    reserved, used = found.field("reserved"), found.field("used")
    configs = pc.if_else(pc.equal(pc.fill_null(used, ""), ""), reserved, used)
    # A handful of distinct texts however many kernels, so a Python loop over these is enough.
    encoded = configs.dictionary_encode()
    sums = pa.array([_sum_of_sizes(text) for text in encoded.dictionary.to_pylist()], pa.int64())
    return pc.replace_with_mask(
        pa.nulls(len(rest), pa.int64()), pa.array(as_numpy(reserving)), sums.take(encoded.indices)
    )


def _sum_of_sizes(configs: str) -> int:
    return sum(int(size) for size in _SIZE.findall(configs))
