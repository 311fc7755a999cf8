"""The parts of one instruction's line, as HLO text and the definitions of used values print it.

[ROOT ][%]NAME = SHAPE OPCODE(OPERANDS), ATTRIBUTE=VALUE, ATTRIBUTE=VALUE
"""

import codecs
import re
from typing import Final, NamedTuple

from ...xla.errors import DumpError
from ...xla.program import NO_METADATA, Metadata
from .lines import read_integer

# An array's shape contains no space, and a tuple's no `) ` but at its end.
_LINE: Final = re.compile(
    r"(  ROOT |  |ROOT |)%?+([^ ]+) = (\([^)]*+(?:\)(?! )[^)]*+)*+\)|[^ (][^ ]*) "
    r"([a-z][a-z0-9\-]*+)\(([^()]*)(\)?)"
)
_PARENTHESIS: Final = re.compile(r"[()]")
# XLA numbers every fifth operand of a long list: `/*index=5*/%name`.
_COMMENT: Final = re.compile(r"/\*index=[0-9]+\*/")
_NAME_AFTER_PERCENT: Final = re.compile(r"%([^ ,)%]+)")
_NAME_AFTER_SHAPE: Final = re.compile(r"[\]})] ([^ ,(){}\[\]]+)(?=, |$)")
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# A string, in which no attribute starts, or the start of an attribute. A string that does not
# close extends to the end of the text, so that a hostile text takes linear time.
_ATTRIBUTE: Final = re.compile(rf"{_STRING}?|, ([a-z_\-]+)=")
_LEADING_STRING: Final = re.compile(_STRING)
_METADATA_FIELD: Final = re.compile(rf"([a-z_]+)=(?:({_STRING})|([0-9]+))")
_SMALL_NUMBER: Final = re.compile(r"([0-9]{1,9})(?![0-9])")


class InstructionLine(NamedTuple):
    """The parts of a line, not yet read.

    Attributes:
        name: without `%`.
        operands: the text between the parentheses; of a parameter its number, of a constant its
            value.
        attributes: the text after the operands.
    """

    is_root: bool
    name: str
    shape: str
    opcode: str
    operands: str
    attributes: str


def split_instruction(line: str) -> InstructionLine:
    """The parts of an instruction's line. Raises DumpError if it is not an instruction.

    >>> split_instruction("  ROOT %a.1 = f32[2]{0} add(%x, %y), metadata={}")
    InstructionLine(is_root=True, name='a.1', shape='f32[2]{0}', opcode='add', \
operands='%x, %y', attributes=', metadata={}')
    """
    match = _LINE.match(line)
    if match is None:
        raise DumpError("expected an instruction")
    prefix, name, shape, opcode, operands, closing = match.groups()
    end = match.end()
    if not closing:
        # The types of operands contain parentheses: `(f32[4]{0:T(128)}, u32[]) %x`.
        end = _end_of_operands(line, match.start(5))
        operands = line[match.start(5) : end - 1]
    return InstructionLine(prefix.endswith("ROOT "), name, shape, opcode, operands, line[end:])


def _end_of_operands(line: str, start: int) -> int:
    """The index after the parenthesis that closes the operands, which begin at `start`.

    Raises DumpError if none does.
    """
    depth = 1
    for parenthesis in _PARENTHESIS.finditer(line, start):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            return parenthesis.end()
    raise DumpError("the operands do not close")


def operand_names(operands: str) -> list[str]:
    """The names in a list of operands, which may have types, comments and `%`.

    >>> operand_names("%a, /*index=5*/%b")
    ['a', 'b']
    >>> operand_names("(s32[], f32[2]{0:T(128)}) t, f32[2]{0} x#1")
    ['t', 'x#1']
    """
    if not operands:
        return []
    if "[" in operands or ") " in operands:
        pattern = _NAME_AFTER_PERCENT if "%" in operands else _NAME_AFTER_SHAPE
        return pattern.findall(operands)
    if "/*" in operands:
        operands = _COMMENT.sub("", operands)
    if operands.startswith("%"):
        return operands[1:].split(", %")
    return operands.split(", ")


def split_attributes(text: str) -> dict[str, str]:
    """The values of an instruction's attributes as text, in order.

    A value extends to the next attribute.

    >>> split_attributes(', dimensions={0,1}, metadata={op_name="a, b=c"}')
    {'dimensions': '{0,1}', 'metadata': '{op_name="a, b=c"}'}
    """
    attributes: dict[str, str] = {}
    name, start = "", 0
    for match in _ATTRIBUTE.finditer(text):
        if match[1] is None:
            continue
        if name:
            attributes.setdefault(name, text[start : match.start()])
        name, start = match[1], match.end()
    if name:
        attributes.setdefault(name, text[start:])
    return attributes


def read_metadata(text: str) -> Metadata:
    """The metadata in the value of an attribute. Raises DumpError.

    >>> read_metadata('{op_type="add" op_name="jit(f)/add" source_line=7}')
    Metadata(op_name='jit(f)/add', source_file=None, source_line=7, stack_frame_id=None)
    """
    if "}" not in text:
        raise DumpError("the metadata does not close")
    op_name = source_file = source_line = stack_frame_id = None
    for name, string, digits in _METADATA_FIELD.findall(text):
        if name == "op_name":
            op_name = read_string(string)
        elif name == "source_file":
            source_file = read_string(string)
        elif name == "source_line" and digits:
            source_line = read_integer(digits)
        elif name == "stack_frame_id" and digits:
            stack_frame_id = read_integer(digits)
    metadata = Metadata(op_name, source_file, source_line, stack_frame_id)
    return metadata if metadata != NO_METADATA else NO_METADATA


def read_string(text: str) -> str | None:
    r"""The string in quotes at the start of a value, with C escapes resolved; None without one.

    XLA prints `größe` as `gr\303\266\303\237e`. Raises DumpError for an invalid escape.
    """
    match = _LEADING_STRING.match(text)
    if match is None:
        return None
    content = match[0][1:-1]
    if "\\" not in content:
        return content
    try:
        unescaped: bytes = codecs.escape_decode(content.encode())[0]
    except ValueError:
        raise DumpError("a backslash in quotes is not a C escape") from None
    return unescaped.decode(errors="replace")


def read_small_number(text: str) -> int:
    """The number at the start of a text. Raises DumpError."""
    match = _SMALL_NUMBER.match(text)
    if match is None:
        raise DumpError("expected a number of at most nine digits")
    return int(match[1])
