"""Names and places in messages: metadata and instructions as in HLO text, maybe cut short."""

import codecs
import re

_QUOTED = r'"((?:[^"\\]|\\.){0,20000})"'
_TEXTS = {
    name: re.compile(rf"\b{name}={_QUOTED}", re.DOTALL) for name in ("op_name", "source_file")
}
# A number at the end of a text may lack digits.
_NUMBERS = {
    name: re.compile(rf"\b{name}=(\d{{1,9}})(?!\d)") for name in ("source_line", "stack_frame_id")
}
_NAMED = re.compile(r"%?(?P<name>[\w.<>-]{1,1000}) = (?P<rest>.*)", re.DOTALL)
_ARRAY = r"[a-z][a-z0-9]*\[[^\]]*\](?:\{[^}]*\})?"
_SHAPED = re.compile(rf"(?P<shape>{_ARRAY}|\(.*?\)) (?P<opcode>[a-z][\w-]*)\(", re.DOTALL)
_OPCODE = re.compile(r"(?P<opcode>[a-z][\w-]*)\(")


def parse_metadata(text: str, *, is_whole: bool) -> dict[str, str | int]:
    """op_name, source_file, source_line, stack_frame_id, as far as the text has them whole."""
    found: dict[str, str | int] = {}
    for name, pattern in _TEXTS.items():
        if match := pattern.search(text):
            found[name] = _plain(match[1])
    for name, pattern in _NUMBERS.items():
        if (match := pattern.search(text)) and (is_whole or match.end() < len(text)):
            found[name] = int(match[1])
    return found


def parse_instruction(text: str) -> dict[str, str]:
    """instruction, opcode and shape of `NAME = [SHAPE] OPCODE(…`, as far as they are there."""
    match = _NAMED.match(text)
    if match is None:
        return {}
    found = {"instruction": match["name"]}
    if shaped := _SHAPED.match(match["rest"]):
        found |= {"shape": shaped["shape"], "opcode": shaped["opcode"]}
    elif plain := _OPCODE.match(match["rest"]):
        found |= {"opcode": plain["opcode"]}
    return found


def _plain(text: str) -> str:
    """A quoted text with C escapes undone, as in the warehouse; as it is if they are wrong."""
    if "\\" not in text:
        return text
    try:
        plain: bytes = codecs.escape_decode(text.encode())[0]
        return plain.decode()
    except ValueError:
        return text
