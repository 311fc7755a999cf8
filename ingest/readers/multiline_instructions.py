"""Instructions that XLA prints over several lines.

XLA prints the JSON in `frontend_attributes={kernel_metadata={…}}` of a Pallas kernel with its line
ends (splash attention, JAX 0.10). Such an instruction ends with the first line at whose end all
braces, brackets, parentheses, quotes and comments are closed.
"""

import re

# A quote or a comment without an end extends to the end of the text, so that a hostile text takes
# only linear time.
_TOKEN = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<quote>"?)|/\*(?:[^*]|\*(?!/))*+(?P<comment>(?:\*/)?)'
    r"|(?P<opening>[({\[])|(?P<closing>[)}\]])|(?P<line_end>\n)",
    re.DOTALL,
)
_CLOSING = {"(": ")", "{": "}", "[": "]"}


def end_of_instruction(text: list[str], start: int, stop: int) -> int:
    """Index after the last line of the instruction that starts at line `start`.

    It is at most `stop`. An instruction that is still open there, or that closes what it did not
    open, is corrupt and has one line.
    """
    instruction = "\n".join(text[start:stop])
    open_brackets: list[str] = []
    for token in _TOKEN.finditer(instruction):
        kind = token.lastgroup
        if kind == "opening":
            open_brackets.append(token[0])
        elif kind == "closing":
            if not open_brackets or _CLOSING[open_brackets.pop()] != token[0]:
                return start + 1
        elif kind == "line_end":
            if not open_brackets:
                return start + 1 + instruction.count("\n", 0, token.start())
        elif kind is not None and not token[kind]:
            return start + 1
    return start + 1 if open_brackets else stop
